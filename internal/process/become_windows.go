package process

import (
	"errors"
	"os"
)

// Become fails: a process of Windows cannot turn into another program.
func Become(Program) error { return errors.New("not supported on Windows") }

// InMemory fails: Windows has no file that no folder names.
func InMemory([]byte) (*os.File, error) { return nil, errors.New("not supported on Windows") }
