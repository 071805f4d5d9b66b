package config

import "go.yaml.in/yaml/v4"

// Over returns the document laid over parent: keys are joined, and so are
// lists whose items are told apart by their name, memory or mode; everything
// else, and every mapping with a "value", is replaced whole. inherited is
// called for each mapping that comes from the parent unchanged and may rewrite
// it. drop is a key of the document's root to leave out.
func (d *Document) Over(parent *Document, drop string, inherited func(n *yaml.Node)) (*Document, error) {
	o := &Document{name: d.name, places: map[string]place{}, other: map[*yaml.Node]string{}}
	keep := func(n *yaml.Node) *yaml.Node {
		o.inherit(n, parent.name, inherited)
		return n
	}
	o.root = lay(without(d.root, drop), parent.root, keep)
	var found Findings
	o.index("", o.root, o.root.Line, &found)
	if len(found) > 0 {
		return nil, o.fail(found)
	}
	return o, nil
}

// inherit notes that n and all below it come from file.
func (d *Document) inherit(n *yaml.Node, file string, inherited func(n *yaml.Node)) {
	d.other[n] = file
	if n.Kind == yaml.MappingNode {
		inherited(n)
	}
	for _, c := range n.Content {
		d.inherit(c, file, inherited)
	}
}

// lay returns child over parent. keep is called for what stays of the parent.
func lay(child, parent *yaml.Node, keep func(*yaml.Node) *yaml.Node) *yaml.Node {
	out := *child
	switch {
	case child.Kind == yaml.MappingNode && parent.Kind == yaml.MappingNode && get(child, "value") == nil:
		out.Content = nil
		for i := 0; i+1 < len(parent.Content); i += 2 {
			k, v := parent.Content[i], parent.Content[i+1]
			if ck, c := entry(child, k.Value); c != nil {
				out.Content = append(out.Content, ck, lay(c, v, keep))
			} else {
				out.Content = append(out.Content, k, keep(v))
			}
		}
		for i := 0; i+1 < len(child.Content); i += 2 {
			if get(parent, child.Content[i].Value) == nil {
				out.Content = append(out.Content, child.Content[i], child.Content[i+1])
			}
		}
	case child.Kind == yaml.SequenceNode && parent.Kind == yaml.SequenceNode && identified(child) && identified(parent):
		out.Content = nil
		for _, p := range parent.Content {
			if c := item(child, id(p)); c != nil {
				out.Content = append(out.Content, lay(c, p, keep))
			} else {
				out.Content = append(out.Content, keep(p))
			}
		}
		for _, c := range child.Content {
			if item(parent, id(c)) == nil {
				out.Content = append(out.Content, c)
			}
		}
	}
	return &out
}

// entry returns a mapping's key and value of that name, or nil.
func entry(n *yaml.Node, key string) (k, v *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

func get(n *yaml.Node, key string) *yaml.Node {
	_, v := entry(n, key)
	return v
}

// id returns what tells an item of a list from the others, or "".
func id(n *yaml.Node) string {
	s := ""
	for _, key := range []string{"name", "memory", "mode"} {
		if v := get(n, key); v != nil && v.Kind == yaml.ScalarNode {
			s += key + " " + v.Value + "\n"
		}
	}
	return s
}

// identified says whether every item has an id of its own.
func identified(list *yaml.Node) bool {
	for i, n := range list.Content {
		if id(n) == "" || item(list, id(n)) != list.Content[i] {
			return false
		}
	}
	return true
}

func item(list *yaml.Node, name string) *yaml.Node {
	for _, n := range list.Content {
		if id(n) == name {
			return n
		}
	}
	return nil
}

func without(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return n
	}
	out := *n
	out.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != key {
			out.Content = append(out.Content, n.Content[i], n.Content[i+1])
		}
	}
	return &out
}
