package process

// Program describes the program that Become turns this process into.
type Program struct {
	Path string
	Args []string // with the name of the program as the first
	Env  []string // all of it
	// Stdin is read by the program in place of this process's standard input. nil: it keeps that.
	Stdin []byte
}
