package view

import (
	"bytes"
	"io"
	"regexp"
	"strings"
)

// Console shows the output of a guest. On a terminal it leaves out colors and escapes other
// control characters. Raw lets every byte through, for a pipe or a file.
type Console struct {
	W    io.Writer
	Raw  bool
	rest []byte // of a line that is not ended yet
}

// Write shows whole lines, and keeps the text after the last of them.
func (c *Console) Write(text []byte) {
	if c.Raw {
		c.put(string(text))
		return
	}
	c.rest = append(c.rest, text...)
	end := bytes.LastIndexByte(c.rest, '\n') + 1
	c.put(consoleText(string(c.rest[:end])))
	c.rest = append([]byte{}, c.rest[end:]...)
}

// Flush shows the text that Write kept.
func (c *Console) Flush() {
	c.put(consoleText(string(c.rest)))
	c.rest = nil
}

func (c *Console) put(text string) {
	if text == "" {
		return
	}
	// A reader that went away has had enough; the writer keeps the error.
	_, _ = io.WriteString(c.W, text) //nolint:errcheck // see above
}

// consoleColors matches the sequences that change only the looks of text, as in boot
// messages.
var consoleColors = regexp.MustCompile(`\x1b\[[0-9;]*m`)

func consoleText(text string) string {
	text = consoleColors.ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return Lines(text)
}
