package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// message is a message of the text format of protocol buffers: its values by
// field, in order. The format is read without its schema, which is enough to
// find values by name and spares the P4Runtime definitions and their
// dependencies.
type message map[string][]fieldValue

// fieldValue is a scalar as written, a string without quotes, or a message.
type fieldValue struct {
	text    string
	message message
}

// text gives a scalar, the first if there are several, or "".
func (m message) text(name string) string {
	if v := m[name]; len(v) > 0 {
		return v[0].text
	}
	return ""
}

// at follows messages by name; a missing one is an empty message.
func (m message) at(names ...string) message {
	for _, n := range names {
		if v := m[n]; len(v) > 0 {
			m = v[0].message
		} else {
			return nil
		}
	}
	return m
}

// messages gives all messages of a field.
func (m message) messages(name string) []message {
	var all []message
	for _, v := range m[name] {
		all = append(all, v.message)
	}
	return all
}

// parseText reads a message in the text format.
func parseText(src string) (message, error) {
	p := &textParser{src: src}
	m := p.message("")
	if p.err != nil {
		return nil, p.err
	}
	return m, nil
}

type textParser struct {
	src   string
	at    int
	depth int
	err   error
}

// maxDepth bounds messages within messages.
const maxDepth = 100

func (p *textParser) fail(format string, args ...any) {
	if p.err == nil {
		line := 1 + strings.Count(p.src[:min(p.at, len(p.src))], "\n")
		p.err = fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, args...))
	}
}

// next gives the next token: a word, a string with its opening quote, a sign,
// or "" at the end.
func (p *textParser) next() string {
	for p.at < len(p.src) {
		switch c := p.src[p.at]; {
		case c == '#':
			for p.at < len(p.src) && p.src[p.at] != '\n' {
				p.at++
			}
		case strings.IndexByte(" \t\r\n,;", c) >= 0:
			p.at++
		case c == '"' || c == '\'':
			return p.quoted(c)
		case word(c):
			start := p.at
			for p.at < len(p.src) && word(p.src[p.at]) {
				p.at++
			}
			return p.src[start:p.at]
		default:
			p.at++
			return string(c)
		}
	}
	return ""
}

func word(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_.+-", c) >= 0
}

// quoted reads a string and what its escapes stand for.
func (p *textParser) quoted(quote byte) string {
	b := []byte{'"'}
	rest := p.src[p.at+1:]
	for rest != "" && rest[0] != quote {
		c, multi, tail, err := strconv.UnquoteChar(rest, quote)
		if err != nil { // an escape that Go does not know stands for itself
			c, multi, tail = rune(rest[0]), false, rest[1:]
		}
		if multi {
			b = utf8.AppendRune(b, c)
		} else {
			b = append(b, byte(c))
		}
		rest = tail
	}
	if rest == "" {
		p.fail("a string does not end")
		p.at = len(p.src)
		return string(b)
	}
	p.at = len(p.src) - len(rest) + 1
	return string(b)
}

// message reads fields up to the closing bracket, "" for the end of the text.
func (p *textParser) message(end string) message {
	if p.depth++; p.depth > maxDepth {
		p.fail("more than %d messages within each other", maxDepth)
	}
	defer func() { p.depth-- }()
	m := message{}
	for p.err == nil {
		name := p.next()
		if name == end {
			return m
		}
		if name == "" || !word(name[0]) {
			p.fail("expected a field, found %q", name)
			return m
		}
		m[name] = append(m[name], p.values()...)
	}
	return m
}

// values reads what follows a field's name: a value or a list of them.
func (p *textParser) values() []fieldValue {
	t := p.next()
	if t == ":" {
		t = p.next()
	}
	if t != "[" {
		return []fieldValue{p.value(t)}
	}
	var all []fieldValue
	for p.err == nil {
		if t = p.next(); t == "]" {
			break
		}
		all = append(all, p.value(t))
	}
	return all
}

func (p *textParser) value(t string) fieldValue {
	switch {
	case t == "{":
		return fieldValue{message: p.message("}")}
	case t == "<":
		return fieldValue{message: p.message(">")}
	case t != "" && t[0] == '"':
		text := t[1:]
		for { // adjacent strings are one
			before := p.at
			more := p.next()
			if more == "" || more[0] != '"' {
				p.at = before
				return fieldValue{text: text}
			}
			text += more[1:]
		}
	case t != "" && word(t[0]):
		return fieldValue{text: t}
	}
	p.fail("expected a value, found %q", t)
	return fieldValue{}
}
