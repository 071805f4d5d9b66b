//go:build !unix

package microbench

// lockDir locks nothing: this system cannot lock a directory.
func lockDir(string) (unlock func(), err error) { return func() {}, nil }
