package sshx

// signals has the numbers of the signals that SSH names (RFC 4254, 6.10, and
// those that OpenSSH adds), as Linux counts them.
var signals = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9,
	"USR1": 10, "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15, "SYS": 31,
}
