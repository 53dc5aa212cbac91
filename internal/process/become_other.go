//go:build unix && !linux

package process

import (
	"errors"
	"os"
)

// tieToParent does nothing: no signal is tied to the end of the parent.
func tieToParent(bool) error { return nil }

// InMemory returns a file with a text, at its beginning, that no folder names. The caller closes it.
func InMemory(text []byte) (*os.File, error) {
	file, err := os.CreateTemp("", "vmctl-stdin-")
	if err != nil {
		return nil, err
	}
	err = os.Remove(file.Name())
	if err == nil {
		_, err = file.Write(text)
	}
	if err == nil {
		_, err = file.Seek(0, 0)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
