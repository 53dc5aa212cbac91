package workspace

import "strings"

// The programs of a workspace that meet those of others.
const (
	List  = list
	Begin = begin
)

// PutBackLines returns the lines of the program that brings a save back, without what it begins with.
func PutBackLines() []string { return strings.Split(strings.TrimPrefix(putBack, look), "\n") }
