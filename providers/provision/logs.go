package provision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"vmctl/providers"
	"vmctl/spec"
)

// ScriptLog implements providers.ScriptLogger: the log of the last run is kept.
func (w *wrapper) ScriptLog(_ context.Context, a spec.Address, name string, from int64, most int) (providers.Console, error) {
	f, err := os.Open(w.log(a, name))
	if errors.Is(err, fs.ErrNotExist) {
		return providers.Console{}, fmt.Errorf("no run of provision %s is known on this machine", name)
	}
	if err != nil {
		return providers.Console{}, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	info, err := f.Stat()
	if err != nil {
		return providers.Console{}, err
	}
	start, length := providers.PartOf(info.Size(), from, most)
	text, err := io.ReadAll(io.NewSectionReader(f, start, length))
	if err != nil {
		return providers.Console{}, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return providers.Console{Text: text, Start: start}, nil
}

// Logs implements providers.LogLister: the logs of the scripts.
func (w *wrapper) Logs(a spec.Address, _ providers.Object) ([]providers.LogFile, error) {
	entries, err := os.ReadDir(w.logs(a))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []providers.LogFile
	for _, e := range entries {
		all = append(all, providers.LogFile{Name: providers.ProvisionAttr + "-" + e.Name(), Path: filepath.Join(w.logs(a), e.Name())})
	}
	return all, err
}

const (
	longestLine   = 64 << 10 // bytes of a line that are written without its end
	longestSecret = 16 << 10 // bytes of a secret that is masked wherever a longer line is cut
	lastLines     = 10       // which a failure shows
)

// copier writes the log of a script into a file of this host, line by line and without secrets. If the
// file cannot be written, it goes on without it: the script is not to suffer.
type copier struct {
	path   string
	mask   func(string) string
	name   string // of the script
	log    providers.Log
	file   *os.File // nil: it has not begun, or there is none
	failed error    // why the file is not whole
	read   int64    // bytes of the guest's log
	line   []byte
	lines  []string // the last ones
}

// newCopier returns the copier of the log of a step. The caller closes it.
func newCopier(path string, w providers.Work, log providers.Log) *copier {
	mask := w.Mask
	if mask == nil {
		mask = func(text string) string { return text }
	}
	return &copier{path: path, mask: mask, name: w.Provision, log: log}
}

// begin begins the log of a run. Until then, the file has the log of the run before.
func (c *copier) begin() {
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		c.failed = fmt.Errorf("make the folder of logs: %w", err)
		return
	}
	if c.file, c.failed = os.OpenFile(c.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); c.failed != nil {
		c.failed = fmt.Errorf("make the log: %w", c.failed)
	}
}

// Write takes a part of the guest's log. It never fails.
func (c *copier) Write(b []byte) (int, error) {
	c.read += int64(len(b))
	c.line = append(c.line, b...)
	for {
		end := bytes.IndexByte(c.line, '\n') + 1
		if end == 0 && len(c.line) > longestLine {
			end = c.cut()
		}
		if end == 0 {
			return len(b), nil
		}
		c.put(string(c.line[:end]))
		c.line = c.line[end:]
	}
}

// cut returns the length of a part of a long line that is written alone: no secret is in both that part and
// the rest, which may have the beginning of one.
func (c *copier) cut() int {
	line := string(c.line)
	whole := c.mask(line)
	for at := len(line) - longestSecret; at > max(0, len(line)-2*longestSecret); at-- {
		if c.mask(line[:at])+c.mask(line[at:]) == whole {
			return at
		}
	}
	return 0
}

// put writes a line.
func (c *copier) put(line string) {
	line = c.mask(line)
	if c.file != nil && c.failed == nil {
		if _, err := c.file.WriteString(line); err != nil {
			c.failed = fmt.Errorf("write the log: %w", err)
		}
	}
	text := string(bytes.TrimRight([]byte(line), "\r\n"))
	if text == "" {
		return
	}
	c.lines = append(c.lines, text)
	c.lines = c.lines[max(0, len(c.lines)-lastLines):]
	c.tell(text)
}

// tell shows a line about the script.
func (c *copier) tell(text string) {
	if c.log != nil {
		c.log(providers.Progress{Text: providers.OpProvision(c.name) + ": " + text})
	}
}

// finish writes the line that has no end.
func (c *copier) finish() {
	if len(c.line) > 0 {
		c.put(string(c.line))
		c.line = nil
	}
}

// close finishes and closes the log. The error says why it is not whole.
func (c *copier) close() error {
	c.finish()
	if c.file != nil {
		if err := c.file.Close(); c.failed == nil && err != nil {
			c.failed = fmt.Errorf("write the log: %w", err)
		}
	}
	return c.failed
}
