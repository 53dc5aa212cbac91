package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"vmctl/internal/atomicfile"
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

// mostPatch is the longest patch that is kept with a record, in bytes.
const mostPatch = 1 << 20

// errLongPatch ends the output of a patch that is not kept.
var errLongPatch = errors.New("the patch is too long")

// remembering returns git in the tree of the copy with the repository beside it. No attribute of a file changes what it
// remembers.
func (c *workCopy) remembering(args ...string) (gitx.Git, []string) {
	return gitx.Git{Runner: c.git, Dir: c.tree()}, append([]string{
		"-c", "core.autocrlf=false", "-c", "core.fileMode=true", "-c", "core.symlinks=true", "-c", "core.safecrlf=false",
		"-c", "core.bare=false", "--git-dir=" + filepath.Join(c.dir, baseName), "--work-tree=" + c.tree(),
	}, args...)
}

// remember keeps how the copy is now.
func (c *workCopy) remember(ctx context.Context) error {
	base := filepath.Join(c.dir, baseName)
	if _, err := (gitx.Git{Runner: c.git, Dir: c.dir}).Output(ctx, "init", "-q", "--bare", "--template=", base); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(base, "info"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(base, "info", "attributes"), []byte("* -text -filter -ident -working-tree-encoding\n"), 0o600); err != nil {
		return err
	}
	var err error
	c.base, err = c.now(ctx)
	return err
}

// now returns the tree of git that the copy is.
func (c *workCopy) now(ctx context.Context) (string, error) {
	git, args := c.remembering("add", "--all", "--force", ".")
	if _, err := git.Output(ctx, args...); err != nil {
		return "", err
	}
	git, args = c.remembering("write-tree")
	return git.Output(ctx, args...)
}

// into adds to an outcome what the job changed in its copy, and keeps the patch. What cannot be told is a warning.
func (c *workCopy) into(ctx context.Context, o *Outcome, patch string) {
	ctx, cancel := context.WithTimeout(ctx, copyLimit)
	defer cancel()
	if err := c.edits(ctx, o); err != nil {
		o.Warnings = append(o.Warnings, "what it changed in its copy is not known: "+err.Error())
		return
	}
	if len(o.Edits) == 0 {
		return
	}
	var text capped
	err := c.diff(ctx, &text, "--patch", "--binary", "--no-ext-diff", "--no-textconv", "--no-color")
	if text.over {
		err = fmt.Errorf("it is longer than %d bytes", mostPatch)
	}
	if err == nil {
		err = atomicfile.Write(patch, text.Bytes(), 0o600)
	}
	if err != nil {
		o.Warnings = append(o.Warnings, "the patch of what it changed is not kept: "+err.Error())
		return
	}
	o.Patch = true
}

func (c *workCopy) edits(ctx context.Context, o *Outcome) error {
	repositories, err := c.flatten()
	if len(repositories) > 0 {
		o.Warnings = append(o.Warnings, fmt.Sprintf("it made repositories of git in its copy, whose commits are gone with it: %q", repositories))
	}
	if err != nil {
		return err
	}
	after, err := c.now(ctx)
	if err != nil {
		return err
	}
	git, args := c.remembering("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", c.base, after)
	out, err := git.Filter(ctx, nil, args...)
	if err != nil {
		return err
	}
	all, err := rawChanges(out)
	if err != nil {
		return err
	}
	o.Edits, o.EditCounts = []Edit{}, map[EditKind]int{}
	for _, change := range all {
		kind, known := map[string]EditKind{"A": Added, "M": Edited, "D": Removed, "T": Retyped}[change.status]
		if !known {
			return fmt.Errorf("git says %q of %s", change.status, change.path)
		}
		o.EditCounts[kind]++
		if len(o.Edits) < mostChanged {
			o.Edits = append(o.Edits, Edit{Path: change.path, Kind: kind})
		}
	}
	if len(all) > mostChanged {
		o.Warnings = append(o.Warnings, fmt.Sprintf("it changed %d files of its copy, of which the record names %d", len(all), mostChanged))
	}
	return nil
}

// flatten makes plain folders of the repositories that the job has made in its copy, and all of the copy readable: git would not look
// into them. It returns the folders of the repositories, under the top.
func (c *workCopy) flatten() (repositories []string, err error) {
	var found []string
	err = filepath.WalkDir(c.tree(), func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.Name() == ".git":
			found = append(found, name)
			if e.IsDir() {
				return fs.SkipDir
			}
		case e.IsDir():
			return readable(name, e, 0o700)
		case e.Type().IsRegular():
			return readable(name, e, 0o400)
		}
		return nil
	})
	for _, name := range found {
		err = errors.Join(err, removeTree(name))
		if rel, failed := filepath.Rel(c.tree(), filepath.Dir(name)); failed == nil {
			repositories = append(repositories, filepath.ToSlash(rel))
		}
	}
	return repositories, err
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
func (c *workCopy) diff(ctx context.Context, out *capped, how ...string) error {
	git, args := c.remembering(append(append([]string{"diff-index", "--cached", "--no-renames"}, how...), c.base)...)
	return git.Stream(ctx, nil, out, args...)
}

// capped keeps up to mostPatch bytes, and refuses more.
type capped struct {
	bytes.Buffer
	over bool
}

// Write implements io.Writer.
func (c *capped) Write(text []byte) (int, error) {
	if c.Len()+len(text) > mostPatch {
		c.over = true
		return 0, errLongPatch
	}
	return c.Buffer.Write(text)
}
