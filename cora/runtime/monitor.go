package runtime

// Monitor judges the NIC's load from the time that its threads wait for
// packets. A thread reads it off its clock between two packets; readings travel
// on packets to the host and on heartbeats.
type Monitor struct {
	o        Options
	sum      float64 // of this interval, µs
	readings int
	window   []float64 // means of the last intervals with readings
	next     int
	filled   int
	load     Load
}

// NewMonitor returns a monitor that calls the NIC stable.
func NewMonitor(o Options) *Monitor { return &Monitor{o: o, window: make([]float64, o.Window)} }

// Reading adds a reading of idle time, µs.
func (m *Monitor) Reading(us float64) {
	m.sum += us
	m.readings++
}

// Load is the judgement of the last interval.
func (m *Monitor) Load() Load { return m.load }

// Mean is the idle time over the window, µs; 0 before the first interval with a
// reading.
func (m *Monitor) Mean() float64 {
	if m.filled == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range m.window[:m.filled] {
		sum += v
	}
	return sum / float64(m.filled)
}

// Interval ends an interval in which the NIC took packets at this rate, and
// judges. Between the two thresholds the NIC is stable. An interval without a
// reading changes nothing: nobody knows.
func (m *Monitor) Interval(mpps float64) Load {
	if m.readings == 0 {
		return m.load
	}
	m.window[m.next] = m.sum / float64(m.readings)
	m.next = (m.next + 1) % len(m.window)
	m.filled = min(m.filled+1, len(m.window))
	m.sum, m.readings = 0, 0

	low, high := m.o.OverloadUS, m.o.AvailableUS
	if t := m.o.IdleThreads; t != [2]float64{} && mpps > 0 {
		low, high = t[0]/mpps, t[1]/mpps // Little: threads that wait = rate × time that each waits
	}
	switch mean := m.Mean(); {
	case mean < low:
		m.load = Overload
	case mean > high:
		m.load = Available
	default:
		m.load = Stable
	}
	return m.load
}

// Flag returns the message that tells the NIC of its load and how many times to
// send it: none if it already knows, as its last echo said.
func (m *Monitor) Flag(known Load) (msg Message, times int) {
	if known == m.load {
		return Message{}, 0
	}
	return Message{Op: OpFlag, Flag: m.load}, m.o.FlagRepeats
}
