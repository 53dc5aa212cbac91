package shellword

// keywords are what shells give a meaning of its own where a command begins.
var keywords = []string{
	"case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then", "time", "until", "while",
}
