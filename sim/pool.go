package sim

// Pool keeps values in flight by a number, which is given out again after Free,
// so that a steady state allocates nothing.
type Pool[T any] struct {
	Items []T // by number
	spare []int32
}

// Put keeps a value and returns its number.
func (p *Pool[T]) Put(v T) int32 {
	if n := len(p.spare); n > 0 {
		i := p.spare[n-1]
		p.spare = p.spare[:n-1]
		p.Items[i] = v
		return i
	}
	p.Items = append(p.Items, v)
	return int32(len(p.Items) - 1)
}

// Free gives a number back.
func (p *Pool[T]) Free(i int32) { p.spare = append(p.spare, i) }
