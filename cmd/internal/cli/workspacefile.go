package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/hcl/v2"

	"vmctl/internal/atomicfile"
	"vmctl/internal/lockfile"
	"vmctl/providers"
	"vmctl/spec"
)

// filesWait is the time that a command waits for another one that edits the files: that takes milliseconds.
const filesWait = time.Minute

// editing calls edit while no other vmctl edits the files of a project. All environments of it share the files.
func (a *app) editing(ctx context.Context, p *project, command string, edit func() error) (err error) {
	dir, err := a.dataDir(providers.Project{Name: p.owner.Name, ID: p.owner.ID})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	lock, err := lockfile.Acquire(ctx, lockfile.Request{Path: filepath.Join(dir, "files.lock"), Owner: a.jobOwner(command), Wait: filesWait})
	if held, ok := errors.AsType[*lockfile.HeldError](err); ok {
		e := newProblem(classLocked, "locked", command+": another vmctl edits the files: "+held.Error(), "wait for it to end")
		e.err = held
		return e
	}
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	return edit()
}

// reread reads the spec once more, and shows no warning again.
func (a *app) reread() (*spec.Config, error) {
	config, diags := a.readSpec(nil)
	if diags.HasErrors() {
		return nil, a.mistakes(diags, config.Files())
	}
	return config, nil
}

// withFile returns the mistakes that a spec would have with another text of one of its files.
func (a *app) withFile(c *spec.Config, name string, text []byte) (hcl.Diagnostics, map[string]*hcl.File) {
	source := c.Source()
	source.Files[filepath.Base(name)] = string(text)
	source.Variables = "" // the inputs give them
	config, diags := a.readSpec(&source)
	return diags, config.Files()
}

// addBlock writes the block of a workspace into its file. It fails if the spec would have mistakes, and nothing is written
// then. Only editing calls it.
func (a *app) addBlock(c *spec.Config, w spec.NewWorkspace) error {
	name := filepath.Join(c.Dir, spec.WorkspacesFile)
	src, err := os.ReadFile(name)
	isNew := errors.Is(err, fs.ErrNotExist)
	if err != nil && !isNew {
		return fmt.Errorf("write the block of %s: %w", w.Address(), err)
	}
	text := spec.AddWorkspace(src, w)
	if diags, files := a.withFile(c, name, text); diags.HasErrors() {
		e := rejected("invalid_spec", "write the block of "+w.Address().String()+": nothing was written: the spec would have mistakes: "+summaries(diags))
		if a.global.json {
			e.err = a.mistakes(diags, files)
		}
		return e
	}
	if isNew {
		return atomicfile.Create(name, text, 0o644)
	}
	return rewrite(name, src, text)
}

// rewrite replaces a text of a file by another one, also where a link leads to the file. It fails if the file has another
// text by now.
func rewrite(name string, was, text []byte) error {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real // the file is replaced, not the link to it
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	now, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, was) {
		return newProblem(classRefused, "changed_meanwhile", "nothing was written: "+name+" was changed meanwhile", "repeat the command")
	}
	return atomicfile.Write(name, text, info.Mode().Perm())
}

// writtenFile is a spec file with the block of a workspace that vmctl wrote.
type writtenFile struct {
	name      string
	was, text []byte // with the block, and without it
}

// written returns the file with the block of a workspace; nil: vmctl did not write the block, or somebody has edited it since.
func (a *app) written(c *spec.Config, addr spec.Address) (*writtenFile, error) {
	r, ok := c.Resource(addr)
	if !ok || addr.Key != "" {
		return nil, nil
	}
	f := &writtenFile{name: r.Range.Filename}
	var err error
	if f.was, err = os.ReadFile(f.name); err != nil {
		return nil, fmt.Errorf("read the block of %s: %w", addr, err)
	}
	text, removed, diags := spec.RemoveWorkspace(f.was, f.name, addr)
	if diags.HasErrors() {
		return nil, a.mistakes(diags, map[string]*hcl.File{f.name: {Bytes: f.was}})
	}
	if !removed {
		return nil, nil
	}
	f.text = text
	return f, nil
}

// removeBlock removes the block of a workspace that vmctl wrote, and a file with nothing else in it. removed is false if there
// is no such block any more. Only editing calls it.
func (a *app) removeBlock(addr spec.Address) (removed bool, err error) {
	c, err := a.reread()
	if err != nil {
		return false, err
	}
	f, err := a.written(c, addr)
	if err != nil || f == nil {
		return false, err
	}
	if info, err := os.Lstat(f.name); err == nil && info.Mode().IsRegular() && len(f.text) == 0 {
		return true, os.Remove(f.name)
	}
	return true, rewrite(f.name, f.was, f.text)
}
