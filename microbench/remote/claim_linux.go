package remote

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"nicprof/internal/fault"
)

// claimName is an abstract socket address, which one process of the machine can
// bind and which the kernel frees when that process ends, however it ends.
// Nothing listens there.
const claimName = "@nicprof-agent"

// claimMachine waits until no other agent measures on this machine: the one of
// a dropped link may not know yet that it is alone.
func claimMachine(ctx context.Context) (release func(), err error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fault.Missingf("cannot claim the machine: %w", os.NewSyscallError("socket", err))
	}
	for {
		err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: claimName})
		if err == nil {
			return func() { syscall.Close(fd) }, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			syscall.Close(fd)
			return nil, fault.Missingf("cannot claim the machine: %w", os.NewSyscallError("bind", err))
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			syscall.Close(fd)
			return nil, ctx.Err()
		}
	}
}
