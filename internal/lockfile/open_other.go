//go:build !linux

package lockfile

// hasOpen reports false: this system cannot tell. A holder whose file was replaced notices it
// itself (Lock.Check).
func hasOpen(Owner, string) bool { return false }

// selfHasOpen reports true: this system cannot tell, so that only the process ID decides.
func selfHasOpen(string) bool { return true }
