package keptlog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"vmctl/providers"
)

const (
	suffix  = ".log"
	console = "console" + suffix
	temp    = ".draft-"
	most    = 16 << 20 // bytes of one log that are kept, its end
	part    = 1 << 20  // bytes of a console that are read at a time
)

// draft is a folder that is filled with logs, and kept if it turns out that they are due.
type draft struct {
	provider  providers.Provider
	work      providers.Work
	dir, temp string // where it will be, and where it is filled
	files     int
	errs      []error
}

func (w *wrapper) draft(work providers.Work) *draft {
	of := addressFolder(w.folder, work.Address)
	name := fileName(string(work.Object))
	return &draft{provider: w.Provider, work: work, dir: filepath.Join(of, name), temp: filepath.Join(of, temp+name)}
}

// copy copies the console output of the VM and its further logs.
func (d *draft) copy(ctx context.Context) {
	o := providers.Object{Kind: d.work.Address.Kind, ID: d.work.Object, Name: d.work.Name}
	if reader, ok := providers.Ability[providers.ConsoleReader](d.provider); ok {
		d.write(console, &consoleText{ctx: ctx, reader: reader, object: o, from: -most})
	}
	for _, l := range d.logs(o) {
		d.file(l)
	}
}

// logs returns the further logs of the VM. Each provider around the system's has its own.
func (d *draft) logs(o providers.Object) []providers.LogFile {
	var all []providers.LogFile
	for p := d.provider; p != nil; {
		if l, ok := p.(providers.LogLister); ok {
			logs, err := l.Logs(d.work.Address, o)
			all = append(all, logs...)
			d.failed(err)
		}
		w, wraps := p.(providers.Wrapper)
		if !wraps {
			break
		}
		p = w.Unwrap()
	}
	return all
}

// file copies the end of a log.
func (d *draft) file(l providers.LogFile) {
	f, err := os.Open(l.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		d.failed(err)
		return
	}
	defer f.Close() //nolint:errcheck // it is only read
	info, err := f.Stat()
	if err != nil {
		d.failed(err)
		return
	}
	from := max(0, info.Size()-most)
	d.write(l.Name, io.NewSectionReader(f, from, info.Size()-from))
}

// write writes a log line by line, without secrets. It makes no empty one.
func (d *draft) write(name string, text io.Reader) {
	lines := bufio.NewReaderSize(text, part)
	if _, err := lines.Peek(1); err != nil {
		if !errors.Is(err, io.EOF) && !errors.Is(err, providers.ErrNoConsole) && !errors.Is(err, fs.ErrNotExist) {
			d.failed(err)
		}
		return
	}
	d.failed(d.begin())
	f, err := os.OpenFile(filepath.Join(d.temp, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		d.failed(err)
		return
	}
	d.files++
	mask := d.work.Mask
	if mask == nil {
		mask = func(text string) string { return text }
	}
	for {
		line, err := lines.ReadSlice('\n')
		_, failed := f.WriteString(mask(string(line)))
		if failed != nil || err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			d.failed(errors.Join(failed, err, f.Close()))
			return
		}
	}
}

// begin makes the folder, empty, before its first file.
func (d *draft) begin() error {
	if d.files > 0 {
		return nil
	}
	return errors.Join(os.RemoveAll(d.temp), os.MkdirAll(d.temp, 0o700))
}

func (d *draft) failed(err error) {
	if err != nil {
		d.errs = append(d.errs, err)
	}
}

// keep keeps the draft in the place of an earlier one of the same VM. It returns what it did, in words.
func (d *draft) keep() []string {
	if d.files > 0 {
		err := os.RemoveAll(d.dir)
		if err == nil {
			err = os.Rename(d.temp, d.dir)
		}
		if err == nil {
			err = prune(filepath.Dir(d.dir))
		}
		d.failed(err)
	}
	var all []string
	if _, err := os.Stat(d.dir); err == nil && d.files > 0 {
		all = append(all, "its logs are kept in "+d.dir)
	}
	if len(d.errs) > 0 {
		all = append(all, fmt.Sprintf("warning: not all of its logs could be kept: %v", errors.Join(d.errs...)))
	}
	return all
}

// consoleText reads the console output of a VM.
type consoleText struct {
	ctx    context.Context //nolint:containedctx // io.Reader has none, and the reader is read before its caller returns
	reader providers.ConsoleReader
	object providers.Object
	from   int64
	began  bool
}

// Read implements io.Reader.
func (c *consoleText) Read(b []byte) (int, error) {
	text, err := c.reader.Console(c.ctx, c.object, c.from, len(b))
	if err != nil {
		return 0, err
	}
	if len(text.Text) == 0 || c.began && text.Start < c.from { // no text is left, or the VM has begun its console anew
		return 0, io.EOF
	}
	c.from, c.began = text.Next(), true
	return copy(b, text.Text), nil
}
