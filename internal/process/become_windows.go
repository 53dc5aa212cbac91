package process

import "errors"

// Become fails: a process of Windows cannot turn into another program.
func Become(Program) error { return errors.New("not supported on Windows") }
