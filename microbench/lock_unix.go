//go:build unix

package microbench

import (
	"errors"
	"os"
	"syscall"

	"nicprof/internal/fault"
)

// lockDir keeps other sweeps out of a directory until unlock, or until this
// process dies. A file system that cannot lock is taken as it is.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, storeError(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		f.Close()
		return nil, fault.Inputf("%s: another sweep is running there; wait for it, or choose another directory with --out", dir)
	}
	return func() { f.Close() }, nil
}
