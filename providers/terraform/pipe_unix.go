//go:build unix

package terraform

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// pipe is a named pipe that gives a text to the process that reads it, and leaves it nowhere else.
type pipe struct {
	path  string
	ended chan error
}

func newPipe(path string, text []byte) (*pipe, error) {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, &os.PathError{Op: "mkfifo", Path: path, Err: err}
	}
	p := &pipe{path: path, ended: make(chan error, 1)}
	go func() {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			p.ended <- err
			return
		}
		_, err = file.Write(text)
		p.ended <- errors.Join(err, file.Close())
	}()
	return p, nil
}

// close ends the pipe, also if nobody has read it.
func (p *pipe) close() error {
	file, err := os.OpenFile(p.path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, file)
	return errors.Join(err, file.Close(), <-p.ended, os.Remove(p.path))
}
