package terraform

import "vmctl/internal/pattern"

var idPattern = pattern.New(`^[0-9a-f]{32}$`)

// maskPatterns match passwords behind what stands before them, which is the first group. The second one stands behind them.
var maskPatterns = []*pattern.Pattern{
	pattern.New(`("(?:[^"\s:/]*://)?[^"\s:/@]*:)(?:\\.|[^"\\])*(@)`), // a quoted address
	pattern.New(`(://[^\s:/@"]*:)[^\s"]*(@)`),
	pattern.New(`((?i:password)\s*=\s*)(?:'(?:\\.|[^'\\])*'|[^\s"]+)()`),
	pattern.New(`(missing "=" after ")(?:\\.|[^"\\])*()`), // the end of a password with a space, of libpq's settings
}
