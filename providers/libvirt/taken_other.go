//go:build !unix

package libvirt

import "io/fs"

func taken(info fs.FileInfo) uint64 { return uint64(info.Size()) }

func inodeOf(fs.FileInfo) string { return "" }
