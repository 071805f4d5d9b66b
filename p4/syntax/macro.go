package syntax

// feed gives tokens: first those that were pushed back, then those of pull.
type feed struct {
	stack []Token // next one last
	pull  func() (Token, bool)
	line  bool // the next token is the first of its line
}

func (f *feed) next() (Token, bool) {
	var t Token
	if n := len(f.stack); n > 0 {
		t = f.stack[n-1]
		f.stack = f.stack[:n-1]
	} else if f.pull == nil {
		return Token{}, false
	} else {
		var ok bool
		if t, ok = f.pull(); !ok {
			return t, false
		}
	}
	t.line = t.line || f.line
	f.line = false
	return t, true
}

func (f *feed) push(toks []Token) {
	for i := len(toks) - 1; i >= 0; i-- {
		f.stack = append(f.stack, toks[i])
	}
}

// expand gives the next token of in with all macros before it expanded.
func (pp *preproc) expand(in *feed) (Token, bool) {
	for !pp.fatal {
		t, ok := in.next()
		if !ok {
			return t, false
		}
		m := pp.macros[t.Text]
		if t.Kind != Name || m == nil || t.hide.has(t.Text) {
			return t, true
		}
		if m.special != nil {
			return m.special(t), true
		}
		var args [][]Token
		if m.function {
			paren, ok := in.next()
			if !ok || !paren.is("(") {
				if ok {
					in.push([]Token{paren})
				}
				return t, true
			}
			if args, ok = pp.arguments(in, m, t); !ok {
				continue
			}
		}
		body := pp.substitute(m, args, t)
		if pp.work += len(body) + 1; pp.work > maxWork {
			pp.fatalf(t.Pos, "macro %s and those in it give more than %d tokens", m.name, maxWork)
		}
		pp.src.expand(t.Pos, m.name, m.pos)
		if len(body) == 0 {
			in.line = t.line
		} else {
			body[0].line, body[0].space = t.line, t.space
		}
		in.push(body)
	}
	return Token{}, false
}

// expandAll expands the macros in a list of tokens.
func (pp *preproc) expandAll(toks []Token) []Token {
	pp.nested++
	defer func() { pp.nested-- }()
	if pp.nested > maxDepth && len(toks) > 0 {
		pp.fatalf(toks[0].Pos, "macros are nested more than %d deep in arguments of macros", maxDepth)
		return nil
	}
	in := &feed{}
	in.push(toks)
	if pp.work += len(toks); pp.work > maxWork && len(toks) > 0 {
		pp.fatalf(toks[0].Pos, "macros give more than %d tokens", maxWork)
	}
	var out []Token
	for {
		t, ok := pp.expand(in)
		if !ok {
			return out
		}
		out = append(out, t)
	}
}

// arguments reads the arguments of a macro behind the opening parenthesis.
func (pp *preproc) arguments(in *feed, m *macro, at Token) ([][]Token, bool) {
	var args [][]Token
	var arg []Token
	for depth := 0; ; {
		t, ok := in.next()
		switch {
		case !ok:
			pp.errorf(at.Pos, "the arguments of macro %s have no )", m.name)
			return nil, false
		case t.Kind == includeMark:
			pp.errorf(t.Pos, "#include stands in the arguments of macro %s", m.name)
			continue
		case t.is("("):
			depth++
		case t.is(")") && depth > 0:
			depth--
		case t.is(")"):
			args = append(args, arg)
			return pp.fit(m, args, at)
		case t.is(",") && depth == 0 && (!m.variadic || len(args) < len(m.params)-1):
			args = append(args, arg)
			arg = nil
			continue
		}
		if len(arg) > maxTokens {
			pp.fatalf(at.Pos, "the argument of macro %s has more than %d tokens", m.name, maxTokens)
			return nil, false
		}
		arg = append(arg, t)
	}
}

// fit brings the arguments to the number that the macro takes.
func (pp *preproc) fit(m *macro, args [][]Token, at Token) ([][]Token, bool) {
	switch {
	case len(m.params) == 0 && len(args) == 1 && len(args[0]) == 0:
		return nil, true
	case m.variadic && len(args) == len(m.params)-1:
		return append(args, nil), true
	case len(args) != len(m.params):
		pp.errorf(at.Pos, "macro %s takes %d arguments, but %d are given", m.name, len(m.params), len(args))
		return nil, false
	}
	return args, true
}

// substitute gives a macro's text with its arguments in place. Tokens of the
// text stand where the macro is used; those of arguments stay where they are.
func (pp *preproc) substitute(m *macro, args [][]Token, at Token) []Token {
	param := map[string]int{}
	for i, p := range m.params {
		param[p] = i
	}
	full := make([][]Token, len(args)) // arguments expanded, when asked for
	done := make([]bool, len(args))
	expanded := func(i int) []Token {
		if !done[i] {
			full[i], done[i] = pp.expandAll(args[i]), true
		}
		return full[i]
	}
	isParam := func(t Token) bool {
		_, ok := param[t.Text]
		return ok && t.Kind == Name
	}
	hide := at.hide.with(m.name)
	if hide.n > maxChain {
		pp.fatalf(at.Pos, "macros are nested more than %d deep", maxChain)
		return nil
	}
	var out []Token
	put := func(toks []Token, first Token) {
		for i, t := range toks {
			if i == 0 {
				t.space = first.space
			}
			t.line = false
			out = append(out, t)
		}
		pp.work += len(toks)
	}
	paste := false // the next tokens are joined to the last one
	empty := false // what stands left of ## is nothing
	for i := 0; i < len(m.body) && pp.work <= maxWork; i++ {
		t := m.body[i]
		if t.is("##") && i > 0 {
			paste = true
			continue
		}
		pasted := paste || i+1 < len(m.body) && m.body[i+1].is("##")
		first := t
		t.Pos, t.hide = at.Pos, nil
		toks := []Token{t}
		isArg, n := isParam(t), param[t.Text]
		switch {
		case t.is("#") && i+1 < len(m.body) && isParam(m.body[i+1]):
			i++
			t.Kind, t.Text = String, spell(args[param[m.body[i].Text]])
			toks = []Token{t}
			pasted = paste
		case isArg && paste && m.variadic && n == len(m.params)-1 && len(out) > 0 && out[len(out)-1].is(","):
			// ", ## arguments" drops the comma when there are none.
			if paste = false; len(args[n]) == 0 {
				out = out[:len(out)-1]
			}
			toks = expanded(n)
			pasted = false
		case isArg && pasted:
			toks = args[n]
		case isArg:
			toks = expanded(n)
		}
		if paste && !empty && len(out) > 0 && len(toks) > 0 {
			if joined, ok := join(out[len(out)-1], toks[0]); ok {
				joined.Pos = at.Pos
				out[len(out)-1] = joined
				toks = toks[1:]
				put(toks, Token{space: len(toks) > 0 && toks[0].space})
			} else {
				put(toks, Token{}) // side by side, as C's preprocessor does outside of C
			}
		} else {
			put(toks, first)
		}
		empty = pasted && len(toks) == 0 && (!paste || empty)
		paste = false
	}
	for i := range out {
		if out[i].hide == nil {
			out[i].hide = hide
		} else {
			out[i].hide = out[i].hide.union(hide)
			pp.work += hide.n
		}
	}
	return out
}

// join pastes two tokens together, if that gives one.
func join(a, b Token) (Token, bool) {
	if a.Kind == String || b.Kind == String {
		return a, false
	}
	lx := newLexer("", a.Text+b.Text)
	t := lx.next()
	t.space, t.line = a.space, false
	return t, lx.off == len(lx.text) && t.Kind != Bad
}
