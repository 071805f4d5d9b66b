//go:build !linux

package testpmd

import (
	"context"
	"time"

	"nicprof/internal/fault"
)

// Session is a forwarder that waits at its prompt; there is none off Linux.
type Session struct{ Version string }

// Usage is the processor time of the forwarding threads.
type Usage struct{ Ran, Waited time.Duration }

var errNotLinux = fault.Missingf("%s is run on Linux only", Tool)

// Start returns a missing fault.
func Start(context.Context, Config) (*Session, error) { return nil, errNotLinux }

// Forward returns a missing fault.
func (*Session) Forward(context.Context, int) error { return errNotLinux }

// Counts returns a missing fault.
func (*Session) Counts(context.Context) (Forward, error) { return Forward{}, errNotLinux }

// Ports returns a missing fault.
func (*Session) Ports(context.Context) ([]Port, error) { return nil, errNotLinux }

// Stop returns a missing fault.
func (*Session) Stop(context.Context) (Forward, error) { return Forward{}, errNotLinux }

// Usage returns a missing fault.
func (*Session) Usage() (Usage, error) { return Usage{}, errNotLinux }

// Close returns a missing fault.
func (*Session) Close() error { return errNotLinux }
