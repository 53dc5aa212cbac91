//go:build !unix

package state

import "io/fs"

// folderID is unknown here: the machine tells a copy from the original.
func folderID(fs.FileInfo) string { return "" }
