package terraform

import "vmctl/internal/pattern"

var idPattern = pattern.New(`^[0-9a-f]{32}$`)

// maskPatterns match passwords behind what stands before them, which is the first group. The second one stands behind them.
var maskPatterns = []*pattern.Pattern{
	pattern.New(`("(?:[^"\s:/]*://)?[^"\s:/@]*:)(?:\\.|[^"\\])*(@)`),   // a quoted address
	pattern.New(`("postgres(?:ql)?://[^"\s:/@]*:)(?:\\.|[^"\\@])*(")`), // one that was cut at a # in the password
	pattern.New(`(://[^\s:/@"]*:)[^\s"]*(@)`),
	pattern.New(`((?i:password)\s*=\s*)(?:'(?:\\.|[^'\\])*'|[^\s"]+)()`),
	pattern.New(`(missing "=" after ")(?:\\.|[^"\\])*()`), // the end of a password with a space, of libpq's settings
	// The part of an address that net/url does not understand: a password with one of / ? # is taken for a port, and one with % for an escape.
	pattern.New(`(invalid (?:port|URL escape|character) ")(?:\\.|[^"\\])*()`),
}
