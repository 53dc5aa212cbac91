package job

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"vmctl/internal/gitx"
)

// workCopy is the private copy of a workspace that one job runs in: the files of its scope, and in another folder, out of the
// job's way, a repository that remembers how they were. It is where its workspace is: on this host, or in a VM.
type workCopy struct {
	git  gitx.Runner
	dir  string // the folder of the copy: nothing but the tree is in it, on this host
	own  string // the folder of what is remembered of the copy
	base string // the tree of git that the copy began as
	at   string // the job's folder under the top of its repository
	// excludes holds the rules of the repository for what git ignores, besides those in the files of the copy.
	excludes []byte
}

const (
	copyLimit = 10 * time.Minute // for the making of a copy, and for the look at it afterwards
	treeName  = "tree"           // in the folder of the copy; the rest is in the other one
	baseName  = "repository"
	baseMark  = "tree"         // the file with the tree of git that the copy began as: see markBase
	asideName = "repositories" // what made repositories of folders of the copy: see flatten
)

// copyOf returns the copy of a job.
func (s Store) copyOf(id ID) *workCopy {
	return &workCopy{git: s.Git, dir: s.Path(id, copyFolder), own: s.Path(id, baseFolder)}
}

// repository returns the repository that remembers how the copy was.
func (c *workCopy) repository() string { return filepath.Join(c.own, baseName) }

// tree returns the top of the copy.
func (c *workCopy) tree() string { return filepath.Join(c.dir, treeName) }

// work returns the folder that the job runs in.
func (c *workCopy) work() string { return filepath.Join(c.tree(), c.at) }

// makeCopy makes the copy of a job. The warnings say what was left out.
func (w *Worker) makeCopy(ctx context.Context, r Record) (*workCopy, []string, error) {
	if w.Store.Git == nil {
		return nil, nil, errors.New("copy its workspace: git is not there to say which files are ignored")
	}
	ctx, cancel := context.WithTimeout(ctx, copyLimit)
	defer cancel()
	c := w.Store.copyOf(w.ID)
	warnings, err := c.fill(ctx, r)
	if err == nil {
		err = c.remember(ctx)
	}
	if err == nil {
		err = w.Store.markBase(w.ID, c.base)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("copy its workspace: %w", err), removeTree(c.dir), removeTree(c.own))
	}
	return c, warnings, nil
}

func (c *workCopy) fill(ctx context.Context, r Record) (warnings []string, err error) {
	git := gitx.Git{Runner: c.git, Dir: r.Dir}
	top, err := git.Output(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	if c.at, err = git.Output(ctx, "rev-parse", "--show-prefix"); err != nil {
		return nil, err
	}
	git.Dir = top
	if c.excludes, err = excludesOf(ctx, git); err != nil {
		return nil, err
	}
	files, err := scopeFiles(ctx, git, r.Scope, r.Base)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.tree(), 0o700); err != nil {
		return nil, err
	}
	from, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	defer from.Close() //nolint:errcheck // it is only read
	to, err := os.OpenRoot(c.tree())
	if err != nil {
		return nil, err
	}
	defer to.Close() //nolint:errcheck // each file is closed by itself
	f := filler{from: from, to: to}
	if err := readObjects(ctx, git, files, f.object); err != nil {
		return nil, err
	}
	for _, file := range files {
		if file.object == "" {
			if err := f.fromDisk(ctx, file.path); err != nil {
				return nil, err
			}
		}
	}
	left, err := f.makeLinks()
	if left > 0 {
		warnings = append(warnings, fmt.Sprintf("symbolic links that lead out of its workspace, or through many others, are not in its copy: %d", left))
	}
	if err == nil && c.at != "" { // the scope may hold none of its files
		err = to.MkdirAll(filepath.ToSlash(filepath.Clean(c.at)), 0o755)
	}
	return warnings, err
}

// excludesOf returns the rules of a repository for what git ignores, besides those in its files.
func excludesOf(ctx context.Context, git gitx.Git) ([]byte, error) {
	name, err := git.Output(ctx, "rev-parse", "--path-format=absolute", "--git-path", "info/exclude")
	if err != nil {
		return nil, err
	}
	rules, err := os.ReadFile(name)
	return rules, absent(err)
}

// filler writes files into a copy. Links come last: nothing is written through one.
type filler struct {
	from, to *os.Root
	links    []link
}

type link struct{ path, target string }

// fromDisk copies a file of the workspace. One that is gone meanwhile is left out.
func (f *filler) fromDisk(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
		info, err := f.from.Lstat(parent)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() { // what a link leads to may be ignored
			return nil
		}
		if err != nil {
			return err
		}
	}
	for {
		info, err := f.from.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case info.Mode().Type() == fs.ModeSymlink:
			target, err := f.from.Readlink(name)
			f.links = append(f.links, link{name, target})
			return err
		case !info.Mode().IsRegular():
			return nil
		}
		in, failed := f.open(name, info)
		if failed == nil {
			return errors.Join(f.write(name, modeOf(info), untilDone{ctx, in}), in.Close())
		}
		// Unless it is still the same file, another one is in its place now.
		if now, err := f.from.Lstat(name); err == nil && os.SameFile(info, now) && !errors.Is(failed, errReplaced) {
			return failed
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// errReplaced says that another file is where one was.
var errReplaced = errors.New("another file is in its place")

// open opens a file that has been looked at. errReplaced: it is another one by now, a symbolic link perhaps.
func (f *filler) open(name string, info fs.FileInfo) (*os.File, error) {
	in, err := f.from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe that took its place holds up nobody
	if err != nil {
		return nil, err
	}
	opened, err := in.Stat()
	if err == nil && !os.SameFile(info, opened) {
		err = errReplaced
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

// The permissions of the files of a copy: git tells programs from other files, and nothing else.
const (
	plainMode   fs.FileMode = 0o644
	programMode fs.FileMode = 0o755
)

func modeOf(info fs.FileInfo) fs.FileMode {
	if info.Mode().Perm()&0o100 != 0 {
		return programMode
	}
	return plainMode
}

// readObjects hands over each file that is an object of git, with its text.
func readObjects(ctx context.Context, git gitx.Git, files []scopeFile, take func(scopeFile, io.Reader) error) error {
	var asked strings.Builder
	for _, file := range files {
		if file.object != "" {
			asked.WriteString(file.object + "\n")
		}
	}
	if asked.Len() == 0 {
		return nil
	}
	read, write := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := git.Stream(ctx, strings.NewReader(asked.String()), write, "cat-file", "--batch")
		write.CloseWithError(err)
		done <- err
	}()
	err := parseObjects(bufio.NewReader(read), files, take)
	read.CloseWithError(err)
	return errors.Join(err, <-done)
}

// parseObjects reads what git cat-file --batch prints.
func parseObjects(in *bufio.Reader, files []scopeFile, take func(scopeFile, io.Reader) error) error {
	for _, file := range files {
		if file.object == "" {
			continue
		}
		head, err := in.ReadString('\n')
		if err != nil {
			return fmt.Errorf("read %s: %w", file.path, err)
		}
		said := strings.Fields(head)
		if len(said) != 3 || said[1] != "blob" {
			return fmt.Errorf("read %s: git says %q", file.path, strings.TrimSpace(head))
		}
		size, err := strconv.ParseInt(said[2], 10, 64)
		if err != nil {
			return err
		}
		text := io.LimitReader(in, size)
		if err := take(file, text); err != nil {
			return err
		}
		if _, err := in.Discard(1); err != nil {
			return fmt.Errorf("read %s: %w", file.path, err)
		}
	}
	_, err := io.Copy(io.Discard, in) // until git has ended
	return err
}

// object writes a file that is an object of git.
func (f *filler) object(file scopeFile, text io.Reader) error {
	switch file.mode {
	case modeLink:
		target, err := io.ReadAll(text)
		f.links = append(f.links, link{file.path, string(target)})
		return err
	case modeProgram:
		return f.write(file.path, programMode, text)
	default:
		return f.write(file.path, plainMode, text)
	}
}

func (f *filler) write(name string, mode fs.FileMode, in io.Reader) error {
	if err := f.to.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	out, err := f.to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// makeLinks makes the symbolic links that stay inside of the copy, also by way of others, and counts the rest.
func (f *filler) makeLinks() (left int, err error) {
	var made []string
	for _, l := range f.links {
		if !staysInside(l.path, l.target) {
			left++
			continue
		}
		if err := f.to.MkdirAll(path.Dir(l.path), 0o755); err != nil {
			return left, err
		}
		if err := f.to.Symlink(l.target, l.path); err != nil {
			return left, err
		}
		made = append(made, l.path)
	}
	for _, name := range made {
		if _, err := f.to.Stat(name); err != nil && !leadsNowhere(err) {
			left++
			if err := f.to.Remove(name); err != nil {
				return left, err
			}
		}
	}
	return left, nil
}

// leadsNowhere reports whether a symbolic link leads to nothing, as one below a file does.
func leadsNowhere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}

// untilDone reads until a context ends.
type untilDone struct {
	ctx context.Context //nolint:containedctx // of one copy
	in  io.Reader
}

// Read implements io.Reader.
func (u untilDone) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.in.Read(b)
}
