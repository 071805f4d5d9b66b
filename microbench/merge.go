package microbench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"nicprof/internal/fault"
)

// Merge joins the shards of a run into the directory out, byte for byte the
// samples of the run that was not sharded, and returns its manifest. Runs that
// differ in board, backend, seed, suite, groups or version, runs not emulated on
// machines of different kinds, parts that are missing, twice there or
// unfinished, and an out that is not empty are input faults. Notes name torn
// lines and machines of one kind but another name.
func Merge(dirs []string, out string) (m Manifest, notes []string, err error) {
	if len(dirs) == 0 {
		return m, nil, fault.Inputf("nothing to merge; name the directories of all shards")
	}
	var parts []Manifest
	holder := map[Shard]string{} // the directory of each part
	for _, dir := range dirs {
		part, err := ReadManifest(dir)
		if err != nil {
			return m, nil, err
		}
		if part.Shard == (Shard{}) {
			return m, nil, fault.Inputf("%s is a whole run, not a shard: there is nothing to merge it with", dir)
		}
		if len(parts) > 0 {
			if err := parts[0].sameRun(&part); err != nil {
				return m, nil, fault.Inputf("%s does not belong to %s: %w", dir, dirs[0], err)
			}
			if n := parts[0].Shard.N; part.Shard.N != n {
				return m, nil, fault.Inputf("%s does not belong to %s: it is one of %d parts, not of %d", dir, dirs[0], part.Shard.N, n)
			}
		}
		if len(parts) > 0 && part.Backend != Emulated {
			first := &parts[0]
			if !first.Machine.sameKind(part.Machine) {
				return m, notes, fault.Inputf("%s was measured on %s, %s on %s: times of unlike machines make no one model", dir, part.Machine, dirs[0], first.Machine)
			}
			if first.Machine.Host != part.Machine.Host {
				notes = append(notes, fmt.Sprintf("%s was measured on %s, %s on %s, machines of one kind", dir, part.Machine.Host, dirs[0], first.Machine.Host))
			}
		}
		if before, twice := holder[part.Shard]; twice {
			return m, nil, fault.Inputf("%s and %s both hold part %s; name one of them", before, dir, part.Shard)
		}
		if part.Status != Complete {
			return m, nil, fault.Inputf("%s is %s: finish it with profiler run --resume first", dir, part.Status)
		}
		holder[part.Shard] = dir
		parts = append(parts, part)
	}
	m = parts[0]
	m.Shard, m.Parallel, m.Machine = Shard{}, 0, Machine{}
	m.Measured, m.Failed, m.Sessions = 0, 0, []Session{}
	lines := make([][]byte, m.Workloads)
	n := parts[0].Shard.N
	for k := 1; k <= n; k++ {
		sh := Shard{K: k, N: n}
		dir, ok := holder[sh]
		if !ok {
			return m, nil, fault.Inputf("part %s is missing; name the directories of all %d parts", sh, n)
		}
		samples, torn, err := ReadSamples(dir)
		if err != nil {
			return m, nil, err
		}
		notes = append(notes, torn...)
		for i := range samples {
			s := &samples[i]
			if s.Index >= len(lines) || s.Index%n != k-1 || lines[s.Index] != nil {
				return m, nil, fault.Inputf("%s: sample %d (%s) is not of part %s, or is there twice; measure the part again", dir, s.Index, s.Key, sh)
			}
			if lines[s.Index], err = encodeSample(s); err != nil {
				return m, nil, err
			}
			m.Measured++
			if s.Status == StatusFailed {
				m.Failed++
			}
		}
		i := slices.IndexFunc(parts, func(p Manifest) bool { return p.Shard == sh })
		m.Parts = append(m.Parts, Part{Shard: sh, Machine: parts[i].Machine, Sessions: parts[i].Sessions})
	}
	if i := slices.IndexFunc(lines, func(l []byte) bool { return l == nil }); i >= 0 {
		return m, notes, fault.Inputf("%s: sample %d is missing; finish the part with profiler run --resume", holder[Shard{K: i%n + 1, N: n}], i)
	}
	if err := emptyDir(out); err != nil {
		return m, notes, err
	}
	if err := writeFile(filepath.Join(out, SamplesFile), slices.Concat(lines...)); err != nil {
		return m, notes, err
	}
	b, err := ReadBoard(dirs[0])
	if err != nil {
		return m, notes, err
	}
	if b != nil {
		if err := writeBoard(out, b); err != nil {
			return m, notes, err
		}
	}
	return m, notes, m.write(out)
}

// emptyDir makes a directory, or checks that it is empty.
func emptyDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return storeError(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return storeError(err)
	}
	if len(entries) > 0 {
		return fault.Inputf("%s is not empty; choose another directory with --out", dir)
	}
	return nil
}
