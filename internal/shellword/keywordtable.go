package shellword

// keywords lists the words that have a special meaning to a shell at the start of a command.
var keywords = []string{
	"case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then", "time", "until", "while",
}
