//go:build !linux

package perf

// Group counts nothing where there is no perf_event_open.
type Group struct{}

// Open returns an empty group: perf events exist on Linux only.
func Open(_ int, events []Event) (*Group, []Unavailable) {
	var missing []Unavailable
	for _, e := range events {
		missing = append(missing, Unavailable{e.Name, "perf events exist on Linux only"})
	}
	return &Group{}, missing
}

// Start does nothing.
func (*Group) Start() error { return nil }

// Stop does nothing.
func (*Group) Stop() error { return nil }

// Read returns no counts.
func (*Group) Read() (map[string]Count, []Unavailable, error) { return map[string]Count{}, nil, nil }

// Close does nothing.
func (*Group) Close() {}
