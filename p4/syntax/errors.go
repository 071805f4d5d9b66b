package syntax

import (
	"strings"

	"nicprof/p4/source"
)

// Errors is everything that was found wrong with a program, in order, at most
// twenty.
type Errors []*source.Message

// Error gives the messages, each with its line and caret, one below the other.
func (e Errors) Error() string {
	var parts []string
	for _, m := range e {
		parts = append(parts, m.Error())
	}
	return strings.Join(parts, "\n")
}

// Unwrap gives the messages as errors.
func (e Errors) Unwrap() []error {
	var list []error
	for _, m := range e {
		list = append(list, m)
	}
	return list
}
