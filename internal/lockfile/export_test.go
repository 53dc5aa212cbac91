package lockfile

// What a test can reach only from inside: a file system without flock, and a
// file that is replaced between two system calls.
var (
	Unsupported = unsupported
	IsAt        = isAt
)
