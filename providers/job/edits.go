package job

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"vmctl/internal/gitx"
)

// Edit is one file that a job changed in its copy.
type Edit struct {
	Path string   `json:"path"` // under the top of the copy
	Kind EditKind `json:"kind"`
}

// EditKind says how a job changed a file of its copy.
type EditKind string

// The kinds of edits.
const (
	Added   EditKind = "added"
	Edited  EditKind = "edited"
	Removed EditKind = "removed"
	Retyped EditKind = "retyped" // such as a file that became a symbolic link
)

// remembering returns git in the tree of the copy with the repository of the copy. No attribute of a file changes what it
// remembers, and names that other systems do not bear are names here.
func (c *workCopy) remembering() gitx.Git {
	return gitx.Git{Runner: c.git, Dir: c.tree(), Options: []string{
		"-c", "core.autocrlf=false", "-c", "core.fileMode=true", "-c", "core.symlinks=true", "-c", "core.safecrlf=false",
		"-c", "core.bare=false", "-c", "core.protectNTFS=false", "-c", "core.protectHFS=false", "--git-dir=" + c.repository(), "--work-tree=" + c.tree(),
	}}
}

// copyAttributes keeps attributes of files from changing what the repository of a copy remembers.
const copyAttributes = "* -text -filter -ident -working-tree-encoding"

// remember keeps how the copy is now.
func (c *workCopy) remember(ctx context.Context) error {
	base := c.repository()
	if err := os.MkdirAll(c.own, 0o700); err != nil {
		return err
	}
	if _, err := (gitx.Git{Runner: c.git, Dir: c.own}).Output(ctx, "init", "-q", "--bare", "--template=", base); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(base, "info"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(base, "info", "attributes"), []byte(copyAttributes+"\n"), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(base, "info", "exclude"), c.excludes, 0o600); err != nil {
		return err
	}
	var err error
	c.base, err = c.now(ctx, "--force")
	return err
}

// now returns the tree of git that the copy is. With --force it has what git ignores, too.
func (c *workCopy) now(ctx context.Context, how ...string) (string, error) {
	if _, err := c.remembering().Output(ctx, slices.Concat([]string{"add", "--all"}, how, []string{"."})...); err != nil {
		return "", err
	}
	return c.remembering().Output(ctx, "write-tree")
}

// ignored counts the files that the job made and git ignores.
func (c *workCopy) ignored(ctx context.Context) (n int, err error) {
	var ends counter
	err = c.remembering().Stream(ctx, nil, &ends, "ls-files", "-z", "--others", "--ignored", "--exclude-standard")
	return int(ends), err
}

// counter counts the ends of the entries that are written to it.
type counter int

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(bytes.Count(p, []byte{0}))
	return len(p), nil
}

// settle makes a copy on this host ready for git, and returns the folders in it that were repositories of their own.
func (c *workCopy) settle(context.Context) (repositories []string, err error) {
	if err := cmp.Or(unmounted(c.dir), unmounted(c.own), c.isIntact()); err != nil {
		return nil, err
	}
	if err := c.flatten(); err != nil {
		return nil, err
	}
	return c.repositories()
}

// edits returns what the job changed in its copy, which is ready for git. Of what git ignores it tells the number alone.
func (c *workCopy) edits(ctx context.Context, repositories []string) (*keptEdits, error) {
	after, err := c.now(ctx)
	if err != nil {
		return nil, err
	}
	ignored, err := c.ignored(ctx)
	if err != nil {
		return nil, err
	}
	out, err := c.remembering().Filter(ctx, nil, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", c.base, after)
	if err != nil {
		return nil, err
	}
	all, err := rawChanges(out)
	if err != nil {
		return nil, err
	}
	kept := &keptEdits{Edits: []Edit{}, Ignored: ignored, Warnings: []string{}}
	for _, change := range all {
		kind, known := map[string]EditKind{"A": Added, "M": Edited, "D": Removed, "T": Retyped}[change.status]
		if !known {
			return nil, fmt.Errorf("git says %q of %s", change.status, change.path)
		}
		kept.Edits = append(kept.Edits, Edit{Path: change.path, Kind: kind})
	}
	if len(repositories) > 0 {
		kept.Warnings = append(kept.Warnings, fmt.Sprintf("it made repositories of git in its copy, whose commits are gone with it: %q", repositories))
	}
	if len(all) > mostChanged {
		kept.Warnings = append(kept.Warnings, fmt.Sprintf("it changed %d files of its copy, of which the record names %d", len(all), mostChanged))
	}
	return kept, nil
}

// isIntact fails if the job has replaced the copy, or the repository that remembers how it was: git would read or write what a link
// there leads to.
func (c *workCopy) isIntact() error {
	folders := []string{c.dir, c.tree(), c.own, c.repository(), filepath.Join(c.repository(), "objects"), filepath.Join(c.repository(), "info")}
	for _, dir := range folders {
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is no folder any more: its job replaced it", dir)
		}
	}
	for _, dir := range folders[3:] {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Type() == fs.ModeSymlink || e.Name() == "commondir" {
				return fmt.Errorf("%s leads elsewhere: its job made it", filepath.Join(dir, e.Name()))
			}
		}
	}
	return nil
}

// flatten makes plain folders of the repositories that the job has made in its copy, and all of the copy readable: git would not look
// into them. What made them repositories stays beside the copy, as long as that does. Pipes where git reads its rules go: it would
// wait for somebody to write.
func (c *workCopy) flatten() error {
	var found []string
	err := filepath.WalkDir(c.tree(), func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.Name() == ".git":
			found = append(found, name)
			if e.IsDir() {
				return cmp.Or(readable(name, e, 0o700), fs.SkipDir)
			}
		case e.IsDir():
			return readable(name, e, 0o700)
		case e.Type().IsRegular():
			return readable(name, e, 0o400)
		case e.Type() == fs.ModeNamedPipe && (e.Name() == ".gitignore" || e.Name() == ".gitattributes"):
			return os.Remove(name)
		}
		return nil
	})
	for _, name := range found {
		rel, failed := filepath.Rel(c.tree(), name)
		aside := filepath.Join(c.own, asideName, rel)
		if failed == nil {
			failed = os.MkdirAll(filepath.Dir(aside), 0o700)
		}
		if failed == nil {
			failed = os.Rename(name, aside)
		}
		err = errors.Join(err, failed)
	}
	return err
}

// repositories returns the folders that were repositories before flatten, under the top.
func (c *workCopy) repositories() (all []string, err error) {
	aside := filepath.Join(c.own, asideName)
	err = filepath.WalkDir(aside, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() != ".git" {
			return absent(err)
		}
		rel, err := filepath.Rel(aside, filepath.Dir(name))
		all = append(all, filepath.ToSlash(rel))
		if err == nil && e.IsDir() {
			err = fs.SkipDir
		}
		return err
	})
	return all, err
}

// readable adds permissions of the owner to a file or folder that lacks them.
func readable(name string, e fs.DirEntry, wanted fs.FileMode) error {
	info, err := e.Info()
	if err != nil || info.Mode().Perm()&wanted == wanted {
		return err
	}
	return os.Chmod(name, info.Mode().Perm()|wanted)
}

// diff writes the differences between the beginning of the copy and its index.
func (c *workCopy) diff(ctx context.Context, out io.Writer, how ...string) error {
	return c.remembering().Stream(ctx, nil, out, append(append([]string{"diff-index", "--cached", "--no-renames"}, how...), c.base)...)
}
