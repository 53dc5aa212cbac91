package process

import "os"

// Program describes the program that Become turns this process into.
type Program struct {
	Path string
	Args []string // with the name of the program as the first
	Env  []string // all of it
	// Stdin is read by the program in place of this process's standard input. nil: it keeps that.
	Stdin []byte
	// Output and Errors are its standard output and standard error. nil: it keeps those of this process.
	Output, Errors *os.File
	// Bound programs end with the process that started this one, on a system that can tie them to it. Others outlive it.
	Bound bool
}
