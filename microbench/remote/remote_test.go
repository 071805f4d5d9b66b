package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/internal/version"
	"nicprof/microbench"
	"nicprof/microbench/microbenchtest"
	_ "nicprof/microbench/nfp"
	"nicprof/program"
	"nicprof/traffic"
)

// stub is a driver whose measurements the test makes up.
type stub struct {
	board   *board.Board
	measure func(context.Context, program.Program) (microbench.Sample, error)
}

func (s stub) Board() *board.Board { return s.board }

func (s stub) Measure(ctx context.Context, p program.Program, t traffic.Traffic, o microbench.Options) (microbench.Sample, error) {
	x, err := s.measure(ctx, p)
	x.Board, x.Program, x.Traffic, x.Seed = s.board.Name, p, t, o.Seed
	return x, err
}

// nfp is a board that nobody changes.
func nfp(t testing.TB) *board.Board {
	t.Helper()
	b, err := loadNFP()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var loadNFP = sync.OnceValues(func() (*board.Board, error) { return board.Load("nfp") })

// stubbed is an agent whose every board is measured by measure.
func stubbed(backend string, measure func(context.Context, program.Program) (microbench.Sample, error)) *Agent {
	return &Agent{Backend: backend, Open: func(b *board.Board, _ string) (microbench.Driver, error) {
		return stub{b, measure}, nil
	}}
}

// ok is a sample of a measurement that went well.
func ok(backend string) microbench.Sample {
	return microbench.Sample{Backend: backend, Status: microbench.StatusOK, Mpps: 2, Low: 1, High: 3, Runs: 1}
}

// wire connects a session to what serves on the other ends of two pipes. The
// link is cut by closing the pipes; status is how the other side ended when it
// did so by itself.
func wire(t testing.TB, serve func(in io.Reader, out io.Writer) (status string)) *link {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan string, 1)
	go func() {
		status := serve(inR, outW)
		ended <- status
		inR.Close()
		outW.Close()
	}()
	cut := make(chan struct{})
	l := &link{in: inW, out: outR, stderr: new(tail), close: sync.OnceFunc(func() {
		close(cut)
		inW.Close()
		outR.CloseWithError(io.EOF)
	})}
	l.wait = func() (string, bool) {
		select {
		case status := <-ended:
			select {
			case <-cut: // no status comes through a link that was cut before
				return "", false
			default:
				return status, status != ""
			}
		case <-cut:
			return "", false
		}
	}
	t.Cleanup(l.close)
	return l
}

// served is a link to an agent.
func served(t testing.TB, a *Agent) *link {
	return wire(t, func(in io.Reader, out io.Writer) string {
		if err := a.Serve(t.Context(), in, out); err != nil {
			return err.Error()
		}
		return "exit status 0"
	})
}

// driver is one whose links dial makes.
func driver(t testing.TB, c Config, dial func() *link) (*Driver, error) {
	t.Helper()
	data, err := json.Marshal(nfp(t))
	if err != nil {
		t.Fatal(err)
	}
	c.Host = "card"
	d, err := openDriver(t.Context(), data, c, func(ctx context.Context) (*session, error) {
		l := dial()
		if l == nil {
			return nil, fault.Missingf("down: %w", &linkError{errors.New("nobody answers"), false})
		}
		return newSession(ctx, l)
	})
	if err == nil {
		t.Cleanup(d.Close)
	}
	return d, err
}

func mustDriver(t testing.TB, c Config, dial func() *link) *Driver {
	t.Helper()
	d, err := driver(t, c, dial)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func measureBare(t testing.TB, d *Driver) (microbench.Sample, error) {
	t.Helper()
	return d.Measure(t.Context(), program.Program{}, traffic.Traffic{}, microbench.Options{Seed: 1})
}

// wantFault checks the kind of an error and what it says.
func wantFault(t testing.TB, err error, kind fault.Kind, texts ...string) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind {
		t.Fatalf("%v (kind %d), want kind %d", err, fault.KindOf(err), kind)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
}

// An emulated board far away passes the same suite as one at hand.
func TestConformance(t *testing.T) {
	microbenchtest.Run(t, func(t *testing.T) microbench.Driver {
		return mustDriver(t, Config{}, func() *link { return served(t, &Agent{Backend: microbench.Emulated}) })
	})
}

// The sample of an emulated board far away is that of the board at hand, to
// the byte, with its profile; what was measured natively is remote here, and
// the machine that did it is known.
func TestSamples(t *testing.T) {
	b := nfp(t)
	here, err := microbench.Open(b, microbench.Emulated)
	if err != nil {
		t.Fatal(err)
	}
	d := mustDriver(t, Config{}, func() *link { return served(t, &Agent{Backend: microbench.Emulated}) })
	if d.Machine() != microbench.ThisMachine() {
		t.Errorf("measured on %v", d.Machine())
	}
	lock := program.Lock{Name: "l", Elements: 64}
	p := program.Program{Name: "p", Locks: []program.Lock{lock}, Flows: &traffic.Flows{Count: 100, Popularity: "zipf", Alpha: 0.9}}
	tr := traffic.Traffic{RateMpps: 0.3, Sizes: &traffic.Sizes{Bytes: []float64{64, 1518}, P: []float64{0.25, 1}}}
	o := microbench.Options{Seed: 1<<63 + 1, Cores: 7, Precision: 0.02, MaxRuns: 2, Profile: true}
	var text [2]string
	for i, d := range []microbench.Driver{here, d} {
		s, err := d.Measure(t.Context(), p, tr, o)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(struct {
			microbench.Sample
			Profile *microbench.Profile
		}{s, s.Profile})
		if err != nil {
			t.Fatal(err)
		}
		text[i] = string(data)
	}
	if text[0] != text[1] || !strings.Contains(text[0], `"Stacks":[{`) {
		t.Errorf("here\n%s\nthere\n%s", text[0], text[1])
	}
	native := mustDriver(t, Config{}, func() *link {
		return served(t, stubbed(microbench.Native, func(context.Context, program.Program) (microbench.Sample, error) {
			return ok(microbench.Native), nil
		}))
	})
	if s, err := measureBare(t, native); err != nil || s.Backend != microbench.Remote {
		t.Errorf("backend %q, %v; want remote", s.Backend, err)
	}
}

// Each kind of fault crosses the link, and with it the exit code.
func TestFaultsCross(t *testing.T) {
	var next error
	d := mustDriver(t, Config{}, func() *link {
		return served(t, stubbed(microbench.Emulated, func(context.Context, program.Program) (microbench.Sample, error) {
			return microbench.Sample{}, next
		}))
	})
	for _, next = range []error{fault.Checkf("noise"), fault.Inputf("nonsense"), fault.Missingf("tools"), errors.New("a bug")} {
		_, err := measureBare(t, d)
		wantFault(t, err, fault.KindOf(next), next.Error())
		if errors.Is(err, microbench.ErrLost) {
			t.Errorf("%v counts as a lost board", err)
		}
	}
	_, err := driver(t, Config{}, func() *link {
		return served(t, &Agent{Backend: microbench.Native, Open: func(b *board.Board, backend string) (microbench.Driver, error) {
			return nil, fault.Missingf("no card for backend %s", backend)
		}})
	})
	wantFault(t, err, fault.Missing, "card: no card for backend native")
}

// greeting is a hello of this version with a field set to another value.
func greeting(field, value string) string {
	h := map[string]any{
		"protocol": Protocol, "version": version.Version, "backend": "emulated",
		"classes": []string{}, "boards": []string{}, "machine": microbench.ThisMachine(),
	}
	if field != "" {
		h[field] = value
	}
	data, err := json.Marshal(h)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// says is a link to something that prints and then waits, or ends.
func says(t testing.TB, text, status string) *link {
	return wire(t, func(in io.Reader, out io.Writer) string {
		io.WriteString(out, text)
		if status == "" {
			io.Copy(io.Discard, in)
		}
		return status
	})
}

// What answers instead of an agent of this version is told apart.
func TestGreeting(t *testing.T) {
	for name, c := range map[string]struct {
		text, status string
		want         []string
	}{
		"other protocol":   {greeting("protocol", "nicprof-agent/2") + "\n", "", []string{"of another version", "nicprof-agent/2", "this program is " + version.Version, "--push"}},
		"other program":    {greeting("version", "0.0.9") + "\n", "", []string{"of another version: 0.0.9", "install this version there"}},
		"newer, with more": {`{"protocol":"nicprof-agent/9","version":"9","secrets":[1]}` + "\n", "", []string{"of another version: 9"}},
		"unknown field":    {greeting("colour", "red") + "\n", "", []string{"greeting", `unknown field "colour"`}},
		"a start-up file":  {"Welcome to card\n" + greeting("", "") + "\n", "", []string{`got "Welcome to card"`, "start-up file"}},
		"other JSON":       {"{}\n", "", []string{`got "{}"`, "--agent"}},
		"truncated":        {greeting("", "")[:40], "exit status 0", []string{"the agent ended: exit status 0", "it ended after 40 bytes of a line"}},
		"truncated JSON":   {greeting("", "")[:40] + "\n", "", []string{"expected its greeting"}},
		"nothing":          {"", "exit status 127", []string{"the agent ended: exit status 127"}},
		"endless line":     {strings.Repeat("x", maxLine+1<<16), "", []string{fmt.Sprintf("a line of more than %d bytes", maxLine)}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := driver(t, Config{}, func() *link { return says(t, c.text, c.status) })
			wantFault(t, err, fault.Missing, c.want...)
		})
	}
	_, err := startSession(t.Context(), says(t, "", ""), 10*time.Millisecond, time.Hour, time.Hour)
	wantFault(t, err, fault.Missing, "no greeting from the agent within 10ms")
}

// An agent that breaks the protocol is a lost board: a sweep must not take it
// for a failure of each workload.
func TestBrokenAgent(t *testing.T) {
	board, err := json.Marshal(nfp(t))
	if err != nil {
		t.Fatal(err)
	}
	opened := fmt.Sprintf(`{"id":1,"opened":{"board":%s}}`, board)
	for name, c := range map[string]struct{ line, want string }{
		"garbage":         {"out of memory", "is not a message"},
		"cut short":       {`{"id":2,"measured":{"sample":{"mpps":`, "its JSON is incomplete"},
		"unknown field":   {`{"id":2,"pong":{},"mood":"good"}`, `unknown field "mood"`},
		"two answers":     {`{"id":2,"pong":{},"error":{"text":"x"}}`, "it has 2 answers"},
		"no answer":       {`{"id":2}`, "it has 0 answers"},
		"no id":           {`{"pong":{}}`, "its id is not a positive number"},
		"nobody's answer": {`{"id":7,"pong":{}}`, "an answer to request 7, which nobody made"},
		"more on a line":  {`{"id":2,"pong":{}} {}`, "more after its JSON value"},
		"too long":        {strings.Repeat("x", maxLine+1<<16), "a line of more than"},
		"another answer":  {`{"id":2,"pong":{}}`, "an answer to another call than was made"},
	} {
		t.Run(name, func(t *testing.T) {
			d := mustDriver(t, Config{Reconnect: time.Minute}, func() *link {
				return wire(t, func(in io.Reader, out io.Writer) string {
					fmt.Fprintln(out, greeting("", ""))
					lines := newLineReader(in)
					lines.line()
					fmt.Fprintln(out, opened)
					lines.line()
					fmt.Fprintln(out, c.line)
					io.Copy(io.Discard, in)
					return ""
				})
			})
			_, err := measureBare(t, d)
			wantFault(t, err, fault.Missing, "card: ", c.want)
			if lost := errors.Is(err, microbench.ErrLost); lost != (name != "another answer") {
				t.Errorf("%v: lost board %v", err, lost)
			}
		})
	}
}

// answers are what an agent answers to lines, its greeting left out, and what
// Serve returns.
func answers(t *testing.T, a *Agent, lines string) (answers []response, err error) {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	go func() {
		io.WriteString(inW, lines)
		if strings.HasSuffix(lines, "\n") {
			return // and wait
		}
		inW.Close()
	}()
	done := make(chan error, 1)
	go func() {
		done <- a.Serve(t.Context(), inR, outW)
		outW.Close()
	}()
	r := newLineReader(outR)
	if line, err := r.line(); err != nil || !strings.Contains(string(line), Protocol) {
		t.Fatalf("greeting %q, %v", line, err)
	}
	for {
		line, err := r.line()
		if err != nil {
			return answers, <-done
		}
		var x response
		if err := decode(line, &x); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, x)
	}
}

// A line that is no request ends the conversation, and the client is told why.
func TestBrokenClient(t *testing.T) {
	for name, c := range map[string]struct{ lines, want string }{
		"garbage":       {"hello\n", `"hello" is not a message`},
		"empty":         {"\n", "its JSON is incomplete"},
		"cut short":     {`{"id":1,"open":{` + "\n", "its JSON is incomplete"},
		"truncated":     {`{"id":1,"ping":{}}` + "\n" + `{"id":2,"pi`, `it ended after 11 bytes of a line: "{\"id\":2,\"pi"`},
		"unknown field": {`{"id":1,"ping":{},"colour":1}` + "\n", `unknown field "colour"`},
		"unknown call":  {`{"id":1,"format":{}}` + "\n", `unknown field "format"`},
		"no call":       {`{"id":1}` + "\n", "it has 0 calls; expected exactly one"},
		"two calls":     {`{"id":1,"ping":{},"cancel":{"id":1}}` + "\n", "it has 2 calls"},
		"no id":         {`{"ping":{}}` + "\n", "its id is not a positive number"},
		"same id":       {`{"id":1,"ping":{}}` + "\n" + `{"id":1,"ping":{}}` + "\n", "request 1 after request 1"},
		"endless":       {strings.Repeat("x", maxLine+1<<16) + "\n", "a line of more than"},
		"nonsense":      {`{"id":1,"measure":{"program":{"bass":1}}}` + "\n", `unknown field "bass"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := answers(t, &Agent{Backend: microbench.Emulated}, c.lines)
			wantFault(t, err, fault.Input, c.want)
			if len(got) == 0 {
				t.Fatal("the client is told nothing")
			}
			if last := got[len(got)-1]; last.ID != 0 || last.Error == nil || last.Error.Kind != "input" || !strings.Contains(last.Error.Text, c.want) {
				t.Errorf("the client is told %+v, %+v", last, last.Error)
			}
		})
	}
}

// An agent whose client says nothing for too long leaves, and so does one that
// is told to; one that is idle with a client that pings stays.
func TestSilence(t *testing.T) {
	a := &Agent{Backend: microbench.Emulated, silence: 20 * time.Millisecond}
	got, err := answers(t, a, "{\"id\":1,\"ping\":{}}\n")
	wantFault(t, err, fault.Missing, "nothing heard from the client for 20ms")
	if len(got) != 2 || got[0].Pong == nil || got[1].Error == nil {
		t.Errorf("answers %+v", got)
	}
	// The other way round: an agent that says nothing more is a cut link.
	s, err := startSession(t.Context(), says(t, greeting("", "")+"\n", ""), time.Hour, time.Hour, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.call(t.Context(), request{Ping: &ping{}}, time.Hour)
	var cut *linkError
	if !errors.As(err, &cut) || cut.agent || !strings.Contains(err.Error(), "nothing heard from the agent for 20ms") {
		t.Errorf("%v", err)
	}
	// Pings keep a conversation alive for many times the silence.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	agent := &Agent{Backend: microbench.Emulated, silence: time.Minute}
	l := wire(t, func(in io.Reader, out io.Writer) string { return fmt.Sprint(agent.Serve(ctx, in, out)) })
	counted := &counter{w: l.in}
	l.in = counted
	if s, err = startSession(t.Context(), l, time.Hour, time.Millisecond, time.Minute); err != nil {
		t.Fatal(err)
	}
	for counted.lines.Load() < 10 {
		time.Sleep(time.Millisecond)
	}
	if err := s.failed(); err != nil {
		t.Error(err)
	}
	cancel()
	<-s.done
	if err := s.failed(); !strings.Contains(err.Error(), "the agent ended: context canceled") {
		t.Error(err)
	}
}

// counter counts the lines written.
type counter struct {
	w     io.Writer
	lines atomic.Int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.lines.Add(1)
	return c.w.Write(p)
}

// hang is a measurement that lasts until its context ends. It reports both.
func hang(started, ended chan<- struct{}) func(context.Context, program.Program) (microbench.Sample, error) {
	return func(ctx context.Context, _ program.Program) (microbench.Sample, error) {
		started <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return microbench.Sample{}, ctx.Err()
	}
}

// An interrupt, a deadline and a client that leaves each end the measurement
// far away.
func TestMeasurementEnds(t *testing.T) {
	started, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	open := func(c Config) *Driver {
		return mustDriver(t, c, func() *link { return served(t, stubbed(microbench.Emulated, hang(started, ended))) })
	}
	d := open(Config{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	if _, err := d.Measure(ctx, program.Program{}, traffic.Traffic{}, microbench.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	<-ended

	d = open(Config{Timeout: 10 * time.Millisecond})
	_, err := measureBare(t, d)
	wantFault(t, err, fault.Check, "not done after 10ms", "--timeout")
	<-started
	<-ended

	d = open(Config{})
	go func() {
		<-started
		d.session.link.close()
	}()
	_, err = measureBare(t, d)
	wantFault(t, err, fault.Missing, "the link was cut", microbench.ErrLost.Error())
	<-ended
}

// Serve returns only when its measurement has ended.
func TestServeWaits(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	var over atomic.Bool
	a := stubbed(microbench.Emulated, func(ctx context.Context, _ program.Program) (microbench.Sample, error) {
		close(started)
		<-ctx.Done()
		<-release // a driver that has to clean up
		over.Store(true)
		return microbench.Sample{}, ctx.Err()
	})
	returned := make(chan bool, 1)
	l := wire(t, func(in io.Reader, out io.Writer) string {
		err := a.Serve(t.Context(), in, out)
		returned <- over.Load()
		return fmt.Sprint(err)
	})
	d := mustDriver(t, Config{}, func() *link { return l })
	go measureBare(t, d)
	<-started
	l.close()
	select {
	case <-returned:
		t.Error("Serve returned while a measurement was under way")
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	if !<-returned {
		t.Error("Serve returned before its measurement")
	}
}

// One program is measured at a time: by one connection whatever its client
// asks for, and natively by one agent of the machine.
func TestOneAtATime(t *testing.T) {
	var now, most, calls atomic.Int64
	busy := func(context.Context, program.Program) (microbench.Sample, error) {
		most.Store(max(most.Load(), now.Add(1)))
		calls.Add(1)
		time.Sleep(5 * time.Millisecond)
		now.Add(-1)
		return ok(microbench.Native), nil
	}
	for name, agents := range map[string]int{"one agent": 1, "two agents": 2} {
		t.Run(name, func(t *testing.T) {
			most.Store(0)
			calls.Store(0)
			var wg sync.WaitGroup
			for range agents {
				s, err := newSession(t.Context(), served(t, stubbed(microbench.Native, busy)))
				if err != nil {
					t.Fatal(err)
				}
				data, err := json.Marshal(nfp(t))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.call(t.Context(), request{Open: &open{data}}, time.Minute); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					wg.Go(func() {
						if a, err := s.call(t.Context(), request{Measure: &measure{}}, time.Minute); err != nil || a.Measured == nil {
							t.Errorf("%+v, %v", a, err)
						}
					})
				}
			}
			wg.Wait()
			if most.Load() != 1 || calls.Load() != int64(3*agents) {
				t.Errorf("%d of %d measurements at once", most.Load(), calls.Load())
			}
		})
	}
}

// More calls than an agent keeps are refused, and so is a measurement before
// its board.
func TestCallsRefused(t *testing.T) {
	started, ended := make(chan struct{}, 1), make(chan struct{}, mostRequests)
	s, err := newSession(t.Context(), served(t, stubbed(microbench.Emulated, hang(started, ended))))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.call(t.Context(), request{Measure: &measure{}}, time.Minute)
	wantFault(t, err, fault.Input, "no board is open")
	_, err = s.call(t.Context(), request{Open: &open{json.RawMessage(`{"name":"x"}`)}}, time.Minute)
	wantFault(t, err, fault.Input, "not a board")
	_, err = s.call(t.Context(), request{Doctor: &doctor{json.RawMessage(`[]`), false}}, time.Minute)
	wantFault(t, err, fault.Input, "not a board")
	data, err := json.Marshal(nfp(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.call(t.Context(), request{Open: &open{data}}, time.Minute); err != nil {
		t.Fatal(err)
	}
	for range mostRequests {
		if _, err := s.send(request{Measure: &measure{}}, make(chan response, 1)); err != nil {
			t.Fatal(err)
		}
	}
	<-started
	_, err = s.call(t.Context(), request{Measure: &measure{}}, time.Minute)
	wantFault(t, err, fault.Input, fmt.Sprintf("more than %d requests", mostRequests))
}

// A message that the other side would refuse is not sent, and costs neither
// side the conversation.
func TestLongMessages(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	d := mustDriver(t, Config{}, func() *link {
		return served(t, stubbed(microbench.Emulated, func(_ context.Context, p program.Program) (microbench.Sample, error) {
			s := ok(microbench.Emulated)
			if p.Name == "talkative" {
				s.Warnings = []string{long}
			}
			return s, nil
		}))
	})
	for name, want := range map[string]string{long: "the program or its traffic makes a message of", "talkative": "the answer is a message of"} {
		_, err := d.Measure(t.Context(), program.Program{Name: name}, traffic.Traffic{}, microbench.Options{})
		wantFault(t, err, fault.Input, want)
	}
	if _, err := measureBare(t, d); err != nil {
		t.Error(err)
	}
}

// A cut link is made anew and the measurement repeated; a link that stays down,
// another machine, or a board that looks otherwise is a lost board.
func TestReconnect(t *testing.T) {
	hello := func(machine microbench.Machine) func(in io.Reader, out io.Writer) string {
		return func(in io.Reader, out io.Writer) string {
			newLineWriter(out).write(hello{Protocol: Protocol, Version: version.Version, Backend: microbench.Emulated, Machine: machine})
			lines := newLineReader(in)
			line, _ := lines.line()
			var r request
			decode(line, &r)
			newLineWriter(out).write(response{ID: r.ID, Opened: &opened{r.Open.Board}})
			lines.line()
			return "" // the link breaks in the middle of the measurement
		}
	}
	well := stubbed(microbench.Emulated, func(context.Context, program.Program) (microbench.Sample, error) {
		return ok(microbench.Emulated), nil
	})
	here := microbench.ThisMachine()
	var notes []string
	for name, c := range map[string]struct {
		then  func() *link // the links after the first, which breaks
		after []string     // notes
		want  string       // error
		tries int          // links asked for, at least
	}{
		"back at once":  {then: func() *link { return served(t, well) }, after: []string{"card: the link was cut; connecting again", "card: connected again"}, tries: 2},
		"stays down":    {then: func() *link { return nil }, want: "nobody answers", tries: 3},
		"other machine": {then: func() *link { return wire(t, hello(microbench.Machine{Host: "other"})) }, want: "another machine or agent answers than before: other", tries: 2},
		"other board": {then: func() *link {
			return served(t, &Agent{Backend: microbench.Emulated, Open: func(b *board.Board, _ string) (microbench.Driver, error) {
				b.Cores.Value++
				return stub{board: b}, nil
			}})
		}, want: "describes board nfp otherwise", tries: 2},
		"other version": {then: func() *link { return says(t, greeting("version", "7")+"\n", "") }, want: "another version: 7", tries: 2},
	} {
		t.Run(name, func(t *testing.T) {
			notes = nil
			links := 0
			reconnect := time.Minute
			if name == "stays down" {
				reconnect = time.Second
			}
			d := mustDriver(t, Config{Reconnect: reconnect, Note: func(text string) { notes = append(notes, text) }}, func() *link {
				if links++; links == 1 {
					return wire(t, hello(here))
				}
				return c.then()
			})
			s, err := measureBare(t, d)
			if links < c.tries {
				t.Errorf("%d links were tried", links)
			}
			if c.want == "" {
				if err != nil || s.Mpps != 2 || !slices.Equal(notes, c.after) {
					t.Errorf("%+v, %v, notes %q", s, err, notes)
				}
				return
			}
			wantFault(t, err, fault.Missing, "card: ", c.want)
			if !errors.Is(err, microbench.ErrLost) {
				t.Errorf("%v is not a lost board", err)
			}
		})
	}
}

// An agent that a measurement kills twice fails that measurement; the next one
// goes on with a new agent.
func TestCrashes(t *testing.T) {
	agents := 0
	d := mustDriver(t, Config{Reconnect: time.Minute}, func() *link {
		agents++
		return wire(t, func(in io.Reader, out io.Writer) string {
			ctx, die := context.WithCancel(t.Context())
			stubbed(microbench.Emulated, func(_ context.Context, p program.Program) (microbench.Sample, error) {
				if p.Name == "killer" {
					die()
					<-ctx.Done()
				}
				return ok(microbench.Emulated), nil
			}).Serve(ctx, in, out)
			return "signal KILL"
		})
	})
	for range 2 {
		_, err := d.Measure(t.Context(), program.Program{Name: "killer"}, traffic.Traffic{}, microbench.Options{})
		if err == nil || errors.Is(err, microbench.ErrLost) || !strings.Contains(err.Error(), "card: twice in this measurement the agent ended: signal KILL") {
			t.Fatalf("%v", err)
		}
		if _, err := measureBare(t, d); err != nil {
			t.Error(err)
		}
	}
	if agents != 5 {
		t.Errorf("%d agents, want one and two for each killer", agents)
	}
}

// A sweep over a link that breaks again and again has the bytes of one at hand.
func TestSweepOverBadLink(t *testing.T) {
	config := func() microbench.SweepConfig {
		return microbench.SweepConfig{
			Dir: filepath.Join(t.TempDir(), "run"), Backend: microbench.Remote, Suite: "quick",
			Only: []string{microbench.GroupStateless, microbench.GroupSkew}, Seed: 3, Parallel: 4,
		}
	}
	measured := func(_ context.Context, p program.Program) (microbench.Sample, error) {
		return ok(microbench.Emulated), nil
	}
	sweep := func(d microbench.Driver) string {
		c := config()
		m, err := microbench.Sweep(t.Context(), d, c)
		if err != nil || m.Failed > 0 || m.Machine != microbench.ThisMachine() {
			t.Fatalf("%v, %+v", err, m)
		}
		data, err := os.ReadFile(filepath.Join(c.Dir, microbench.SamplesFile))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	want := sweep(stub{nfp(t), measured})
	board, err := json.Marshal(nfp(t))
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	got := sweep(mustDriver(t, Config{Reconnect: time.Minute}, func() *link {
		links++
		l := served(t, stubbed(microbench.Emulated, measured))
		l.out = &fragile{r: l.out, left: len(board) + 5000, broken: l.close} // some samples later
		return l
	}))
	if got != want {
		t.Error("other samples than at hand")
	}
	if links < 3 {
		t.Errorf("only %d links: does this test still break any?", links)
	}
}

// fragile breaks after some bytes.
type fragile struct {
	r      io.Reader
	left   int
	broken func()
}

func (f *fragile) Read(p []byte) (int, error) {
	if f.left == 0 {
		f.broken()
		return 0, io.ErrUnexpectedEOF
	}
	n, err := f.r.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}

func TestDoctorAsks(t *testing.T) {
	s, err := newSession(t.Context(), served(t, &Agent{Backend: microbench.Emulated}))
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(nfp(t))
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.call(t.Context(), request{Doctor: &doctor{data, true}}, time.Minute)
	if err != nil || a.Doctor == nil || !a.Doctor.OK || a.Doctor.Board != "nfp" || a.Doctor.Backend != microbench.Emulated || len(a.Doctor.Groups) == 0 {
		t.Errorf("%+v, %v", a.Doctor, err)
	}
}

// FuzzAgent: no input makes an agent panic, hang, or answer with lines that a
// client refuses.
func FuzzAgent(f *testing.F) {
	data, err := json.Marshal(nfp(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("{\"id\":1,\"ping\":{}}\n"))
	f.Add([]byte("{\"id\":1,\"open\":{\"board\":" + string(data) + "}}\n{\"id\":2,\"measure\":{\"program\":{},\"traffic\":{},\"options\":{\"seed\":1}}}\n"))
	f.Add([]byte("{\"id\":1,\"doctor\":{\"board\":{}}}\n{\"id\":2,\"cancel\":{\"id\":1}}\n{\"id\":"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a := stubbed(microbench.Emulated, func(context.Context, program.Program) (microbench.Sample, error) {
			return ok(microbench.Emulated), nil
		})
		var out strings.Builder
		err := a.Serve(t.Context(), strings.NewReader(string(data)), &out)
		if err != nil && fault.KindOf(err) != fault.Input {
			t.Fatalf("not the client's fault: %v", err)
		}
		r := newLineReader(strings.NewReader(out.String()))
		line, err := r.line()
		if err == nil {
			_, err = parseHello(line)
		}
		for err == nil {
			if line, err = r.line(); err == nil {
				var x response
				if err = decode(line, &x); err == nil {
					err = x.check()
				}
			}
		}
		if err != io.EOF {
			t.Fatal(err)
		}
	})
}

// FuzzClient: whatever an agent prints, a client reports an error of a kind or
// takes the answer.
func FuzzClient(f *testing.F) {
	hello := greeting("", "") + "\n"
	f.Add([]byte(hello + "{\"id\":1,\"pong\":{}}\n"))
	f.Add([]byte(hello + "{\"id\":1,\"error\":{\"kind\":\"check\",\"text\":\"x\"}}\n"))
	f.Add([]byte(hello + "{\"id\":1,\"opened\":{\"board\":{\"name\":1}}}\n"))
	f.Add([]byte(hello + "{\"id\":0,\"error\":{\"kind\":\"missing\",\"text\":\"x\"}}\n"))
	f.Add([]byte("{\"protocol\":\"nicprof-agent/1\"}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := driver(t, Config{}, func() *link { return says(t, string(data), "exit status 0") })
		if err == nil {
			_, err = measureBare(t, d)
		}
		if err == nil {
			t.Fatal("an agent that ended at once has measured")
		}
	})
}
