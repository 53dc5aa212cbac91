package guest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"vmctl/providers"
)

// Copied counts what a copy made.
type Copied struct {
	Files int
	Bytes int64
	// Left lists the paths of sockets, pipes and devices, which are not copied.
	Left []string
}

// The programs of copies, as arguments of a POSIX shell. Every guest with a shell has tar; the ones that know least of it
// (BusyBox) read and write the format of GNU's.
const (
	// isFolder prints whether a path is a folder.
	isFolder = `if [ -d "$1" ]; then echo folder; elif [ -e "$1" ] || [ -L "$1" ]; then echo file; else echo nothing; fi`
	unpack   = `cd "$1" && exec tar -xof -`
	// pack writes the content of a folder, or one file.
	pack = `if [ -d "$1" ]; then cd "$1" && exec tar -cf - .; fi
cd "$(dirname "$1")" && exec tar -chf - "./$(basename "$1")"`
)

// CopyIn copies a file or a folder of this host into a guest. As cp does, it copies into the target if
// that is a folder, and else to the target, whose parent must exist. Paths in the guest are absolute or
// relative to the user's home. After an error the target may hold a part.
func CopyIn(ctx context.Context, g providers.Guest, source, target string) (Copied, error) {
	info, err := os.Stat(source)
	if err != nil {
		return Copied{}, fmt.Errorf("copy %s: %w", source, err)
	}
	source, err = filepath.Abs(source)
	if err != nil {
		return Copied{}, err
	}
	kind, err := kindIn(ctx, g, target)
	if err != nil {
		return Copied{}, err
	}
	into, name := target, filepath.Base(source)
	switch {
	case kind == "folder":
	case strings.HasSuffix(target, "/"):
		return Copied{}, fmt.Errorf("copy %s: %s is no folder in the guest", source, target)
	default:
		into, name = path.Dir(target), path.Base(target)
	}
	read, write := io.Pipe()
	var done Copied
	packed := make(chan error, 1)
	go func() {
		var err error
		done, err = packTree(write, source, name, info)
		write.CloseWithError(err)
		packed <- err
	}()
	o, err := g.Run(ctx, shell(unpack, into, providers.Command{Stdin: read}))
	read.CloseWithError(errors.New("the guest stopped reading"))
	if packErr := <-packed; err == nil && o.Status == 0 {
		err = packErr
	}
	if err == nil && o.Status != 0 {
		err = fmt.Errorf("status %d: %s", o.Status, strings.TrimSpace(o.Stderr))
	}
	if err != nil {
		return done, fmt.Errorf("copy %s to %s in the guest: %w", source, path.Join(into, name), err)
	}
	return done, nil
}

// CopyOut copies a file or a folder of a guest to this host, in the way of CopyIn. Nothing is written outside of the target,
// whatever the guest sends. After an error the target may hold a part.
func CopyOut(ctx context.Context, g providers.Guest, source, target string) (Copied, error) {
	kind, err := kindIn(ctx, g, source)
	if err != nil {
		return Copied{}, err
	}
	if kind == "nothing" {
		return Copied{}, fmt.Errorf("copy %s of the guest: it does not exist", source)
	}
	switch info, err := os.Stat(target); {
	case err == nil && info.IsDir():
		name := path.Base(path.Clean(source))
		if name == "." || name == ".." || name == "/" {
			return Copied{}, fmt.Errorf("copy %s of the guest into %s: it has no name there; name the target", source, target)
		}
		target = filepath.Join(target, name)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return Copied{}, fmt.Errorf("copy to %s: %w", target, err)
	}
	read, write := io.Pipe()
	var done Copied
	unpacked := make(chan error, 1)
	go func() {
		var err error
		done, err = unpackTree(read, target, kind == "folder")
		read.CloseWithError(err)
		unpacked <- err
	}()
	o, err := g.Run(ctx, shell(pack, source, providers.Command{Stdout: write}))
	write.CloseWithError(err)
	if unpackErr := <-unpacked; unpackErr != nil {
		err = unpackErr
	}
	if err == nil && o.Status != 0 {
		err = fmt.Errorf("status %d: %s", o.Status, strings.TrimSpace(o.Stderr))
	}
	if err != nil {
		return done, fmt.Errorf("copy %s of the guest to %s: %w", source, target, err)
	}
	return done, nil
}

// shell completes a command that runs a program of the shell with one argument.
func shell(program, arg string, c providers.Command) providers.Command {
	c.Args = []string{"sh", "-c", program, "sh", operand(arg)}
	return c
}

// operand returns a path that no program takes for an option.
func operand(p string) string {
	if strings.HasPrefix(p, "-") {
		return "./" + p
	}
	return p
}

func kindIn(ctx context.Context, g providers.Guest, name string) (string, error) {
	var out bytes.Buffer
	o, err := g.Run(ctx, shell(isFolder, name, providers.Command{Stdout: &out}))
	if err == nil && o.Status != 0 {
		err = fmt.Errorf("status %d: %s", o.Status, strings.TrimSpace(o.Stderr))
	}
	if err != nil {
		return "", fmt.Errorf("look at %s in the guest: %w", name, err)
	}
	return strings.TrimSpace(out.String()), nil
}

// packTree writes an archive of a file or a folder, under a name.
func packTree(to io.Writer, source, name string, info fs.FileInfo) (done Copied, err error) {
	archive := tar.NewWriter(to)
	add := func(file, as string, info fs.FileInfo) error {
		link := ""
		switch mode := info.Mode(); {
		case mode.IsRegular() || mode.IsDir():
		case mode&fs.ModeSymlink != 0:
			if link, err = os.Readlink(file); err != nil {
				return err
			}
		default:
			done.Left = append(done.Left, file)
			return nil
		}
		h, err := tar.FileInfoHeader(info, link)
		if err != nil {
			return err
		}
		h.Name, h.Format = as, tar.FormatGNU
		h.Uid, h.Gid, h.Uname, h.Gname = 0, 0, "", ""
		if info.IsDir() {
			h.Name += "/"
		}
		if err := archive.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
			return err
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // it was only read
		n, err := io.Copy(archive, f)
		done.Files, done.Bytes = done.Files+1, done.Bytes+n
		return err
	}
	if !info.IsDir() {
		err = add(source, name, info)
		return done, errors.Join(err, archive.Close())
	}
	err = filepath.WalkDir(source, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inner, err := filepath.Rel(source, file)
		if err != nil {
			return err
		}
		now := info // of the folder itself, which may be a link
		if inner != "." {
			if now, err = d.Info(); err != nil {
				return err
			}
		}
		return add(file, path.Join(name, filepath.ToSlash(inner)), now)
	})
	return done, errors.Join(err, archive.Close())
}

// unpackTree reads an archive: of the content of a folder, or of one file.
func unpackTree(from io.Reader, target string, folder bool) (done Copied, err error) {
	into, only := filepath.Dir(target), filepath.Base(target)
	if folder {
		into, only = target, ""
		if err := os.Mkdir(target, 0o777); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // as cp makes it
			return done, err
		}
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		return done, err
	}
	defer root.Close() //nolint:errcheck // nothing is written through the folder itself
	archive := tar.NewReader(from)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			// What follows the archive is padding: the guest's tar must not fail on a closed pipe.
			_, err = io.Copy(io.Discard, from)
			return done, err
		}
		if err != nil {
			return done, err
		}
		name := path.Clean(h.Name)
		if only != "" {
			name = only
		}
		if err := done.take(root, filepath.FromSlash(name), h, archive); err != nil {
			return done, err
		}
	}
}

// take writes one member of an archive.
func (c *Copied) take(root *os.Root, name string, h *tar.Header, content io.Reader) error {
	mode := h.FileInfo().Mode().Perm()
	switch h.Typeflag {
	case tar.TypeDir:
		if name == "." {
			return nil
		}
		// Its files are still to be written: the owner may do that.
		if err := root.Mkdir(name, mode|0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	case tar.TypeReg:
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		n, err := io.Copy(f, content)
		c.Files, c.Bytes = c.Files+1, c.Bytes+n
		return errors.Join(err, f.Close())
	case tar.TypeSymlink:
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return root.Link(filepath.FromSlash(path.Clean(h.Linkname)), name)
	default:
		c.Left = append(c.Left, name)
		return nil
	}
}
