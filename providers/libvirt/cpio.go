package libvirt

import (
	"bytes"
	"compress/gzip"
	"fmt"
)

// A boot archive is a cpio archive in the kernel's "newc" format, compressed:
// appended to an initial RAM disk, its files appear in the same root folder
// (Linux, Documentation/driver-api/early-userspace/buffer-format.rst).

type archiveFile struct {
	Name    string
	Mode    uint32 // with the type bits
	Content []byte
}

const (
	folderMode = 0o040700
	secretMode = 0o100600
)

// bootArchive returns the archive. The same files give the same bytes.
func bootArchive(files []archiveFile) ([]byte, error) {
	var raw bytes.Buffer
	for i, f := range append(files, archiveFile{Name: "TRAILER!!!"}) {
		links := 1
		if f.Mode == folderMode {
			links = 2
		}
		fmt.Fprintf(&raw, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
			i+1, f.Mode, 0, 0, links, 0, len(f.Content), 0, 0, 0, 0, len(f.Name)+1, 0)
		raw.WriteString(f.Name)
		raw.WriteByte(0)
		pad(&raw)
		raw.Write(f.Content)
		pad(&raw)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(raw.Bytes()); err != nil {
		return nil, fmt.Errorf("pack the keys: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack the keys: %w", err)
	}
	return packed.Bytes(), nil
}

// pad aligns to four bytes with zeros, as the format and the kernel want it.
func pad(b *bytes.Buffer) { b.Write(make([]byte, padding(int64(b.Len())))) }

func padding(size int64) int64 { return (4 - size%4) % 4 }
