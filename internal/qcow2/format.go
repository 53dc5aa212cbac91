package qcow2

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Fix is a command or an advice for making a bootable image of a file that is none.
// FileWord stands for the file in it, quoted for a shell.
type Fix string

// The fixes. A converted image needs nothing beside it.
const (
	FileWord = "FILE"

	Convert    Fix = "qemu-img convert -O qcow2 " + FileWord + " NEW.qcow2"
	ConvertRaw Fix = "qemu-img convert -f raw -O qcow2 " + FileWord + " NEW.qcow2"
	Check      Fix = "qemu-img check -r all " + FileWord
	FetchAgain Fix = "fetch or copy it again, and compare its size with the original's"
	Unpack     Fix = "unpack it first"
)

// FormatError reports that a file is no image of which a virtual machine can be made.
// Seen says why not.
type FormatError struct {
	Seen string
	Fix  Fix
}

// Error says what was seen.
func (e *FormatError) Error() string { return e.Seen }

// Standalone fails with a *FormatError if the image cannot be used without
// another file or a secret, or may be damaged.
func (h Header) Standalone() error {
	switch {
	case h.BackingFile != "":
		return &FormatError{Seen: fmt.Sprintf("it holds only what differs from its backing file %s", quoted(h.BackingFile)), Fix: Convert}
	case h.DataFile:
		return &FormatError{Seen: "its content is in another file (an external data file)", Fix: Convert}
	case h.Encrypted:
		return &FormatError{Seen: "it is encrypted", Fix: "decrypt it: qemu-img convert --image-opts … -O qcow2 NEW.qcow2"}
	case h.Corrupt:
		return &FormatError{Seen: "QEMU has marked it as damaged", Fix: Check}
	case h.Dirty:
		return &FormatError{Seen: "it was not closed by who wrote it last", Fix: Check}
	case h.Extended:
		return &FormatError{Seen: "it uses a feature that is newer than this vmctl", Fix: Convert}
	case h.VirtualSize == 0:
		return &FormatError{Seen: "its disk has no bytes", Fix: FetchAgain}
	default:
		return nil
	}
}

const (
	probeSize = 512
	bootMark  = "\x55\xaa" // at the end of a disk's first sector
)

// describe returns a *FormatError that describes a file that does not begin like an image.
func describe(begin []byte) error {
	for _, k := range kinds {
		if bytes.HasPrefix(begin, []byte(k.begins)) {
			return &FormatError{Seen: "it is " + k.what, Fix: k.fix}
		}
	}
	text := strings.ToLower(strings.TrimSpace(string(begin)))
	switch {
	case len(begin) == 0:
		return &FormatError{Seen: "it is empty", Fix: FetchAgain}
	case strings.HasPrefix(text, "<!doctype html"), strings.HasPrefix(text, "<html"):
		return &FormatError{Seen: "it is a web page: the address leads to a page about the image, or to a login", Fix: "look at it, and use the address of the image itself"}
	case len(begin) == probeSize && string(begin[probeSize-2:]) == bootMark:
		return &FormatError{Seen: "it is a raw disk image", Fix: ConvertRaw}
	default:
		return &FormatError{Seen: fmt.Sprintf("it begins with %s", quoted(string(begin[:min(len(begin), 16)]))), Fix: Convert}
	}
}

func quoted(s string) string { return strconv.QuoteToASCII(s) }
