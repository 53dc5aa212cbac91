//go:build !linux

package sim

// folderWatch would collect the changes of the files in a folder.
type folderWatch struct{}

// watchFolder returns nil: no watch of this system tells of each change of a file when the call that makes it returns.
func watchFolder(string) *folderWatch { return nil }

func (*folderWatch) changed(string) ([]string, bool) { return nil, false }
func (*folderWatch) reports(string) bool             { return false }
func (*folderWatch) close() error                    { return nil }
