package process

// Program describes the program that Become turns this process into.
type Program struct {
	Path string
	Args []string // with the name of the program as the first
	Env  []string // all of it
	// Bound programs end with the process that started this one, on a system that can tie them to it. Others outlive it.
	Bound bool
}
