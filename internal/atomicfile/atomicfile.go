// Package atomicfile writes whole files so that a reader sees the old content
// or the new one and never a part, whatever interrupts the writer.
package atomicfile

import (
	"io"
	"os"
	"path/filepath"
)

// Write puts data into path: it writes a temporary file in the same directory,
// syncs it and renames it. A failure leaves an earlier path as it was and
// removes the temporary file.
func Write(path string, data []byte) error {
	return WriteFunc(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// WriteFunc is Write of what write writes.
func WriteFunc(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err = write(f); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
