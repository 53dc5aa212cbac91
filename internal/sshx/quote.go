package sshx

import "strings"

// Quote writes an argument list as one line that a POSIX shell takes apart into
// the same arguments, whatever bytes they hold. An SSH server hands a command to
// the user's shell as one string; this is the only way in which vmctl writes it.
func Quote(args []string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = quote(arg)
	}
	return strings.Join(quoted, " ")
}

const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@%+"

func quote(arg string) string {
	if arg != "" && strings.Trim(arg, plain) == "" {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
