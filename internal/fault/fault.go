// Package fault classifies errors by who has to act, so that the command can
// choose its exit code: bad input (2), a failed check (1), a missing board or
// tool (3).
package fault

import (
	"errors"
	"fmt"
)

// Kind is the class of a fault; its value is the command's exit code.
type Kind int

// Kinds of faults.
const (
	Check   Kind = 1 // a check failed: validate, compare, boards check, a noisy machine
	Input   Kind = 2 // bad usage or bad input
	Missing Kind = 3 // the board or its tools are not there
)

// Error is a fault with its cause.
type Error struct {
	Kind Kind
	err  error
}

func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// Inputf reports bad input: say where (file:line), what was expected, what to do.
func Inputf(format string, a ...any) error { return &Error{Input, fmt.Errorf(format, a...)} }

// Checkf reports a check that failed.
func Checkf(format string, a ...any) error { return &Error{Check, fmt.Errorf(format, a...)} }

// Missingf reports a board or tool that is not there.
func Missingf(format string, a ...any) error { return &Error{Missing, fmt.Errorf(format, a...)} }

// KindOf returns the kind of the outermost fault in err's chain, or 0.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return 0
}
