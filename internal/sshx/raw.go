package sshx

import (
	"os"

	"golang.org/x/term"
)

// Raw is a terminal that hands every key over as it is typed. Restore ends that.
type Raw struct {
	fd     int
	cooked *term.State
}

// MakeRaw puts a terminal into raw mode.
func MakeRaw(f *os.File) (*Raw, error) {
	cooked, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	return &Raw{int(f.Fd()), cooked}, nil
}

// Size returns the size of the terminal in characters.
func (r *Raw) Size() (columns, rows int, err error) { return term.GetSize(r.fd) }

// Restore puts the terminal back into the mode that it had before.
func (r *Raw) Restore() error { return term.Restore(r.fd, r.cooked) }
