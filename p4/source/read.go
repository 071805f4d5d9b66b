package source

import (
	"fmt"
	"io"
	"os"
)

// MaxBytes is the largest program file that is read. p4c's JSON of a whole switch
// has some megabytes.
const MaxBytes = 64 << 20

// Read reads a file of a program: a regular file, or a pipe to its end. It refuses
// others, which may have none, and what is larger than MaxBytes. The errors of
// package os keep their kinds.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return nil, fmt.Errorf("%s is a directory; expected a file", path)
	case !mode.IsRegular() && mode&os.ModeNamedPipe == 0:
		return nil, fmt.Errorf("%s is neither a regular file nor a pipe", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("%s has more than %d MiB; a program's file has some at most", path, MaxBytes>>20)
	}
	return data, nil
}
