// Package buildcontext reads the folder from which an image is built, as docker build does: without what its
// .dockerignore leaves out. A symbolic link is a part of the folder, and is never followed out of it.
package buildcontext

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// Context is the folder from which an image is built.
type Context struct {
	Dir        string
	Dockerfile string // its path in Dir, with slashes: it counts whatever the .dockerignore says
}

const ignoreFile = ".dockerignore"

// Digest returns a digest of the names, the modes and the contents of all that a build gets, in hexadecimal digits. Neither owners
// nor times count.
func (c Context) Digest() (string, error) {
	return c.read(nil)
}

// Write writes all that a build gets as a tar archive, file by file, and returns its Digest.
func (c Context) Write(w io.Writer) (string, error) {
	archive := tar.NewWriter(w)
	digest, err := c.read(archive)
	return digest, errors.Join(err, archive.Close())
}

// read reads the folder once. archive may be nil.
func (c Context) read(archive *tar.Writer) (digest string, err error) {
	root, err := os.OpenRoot(c.Dir)
	if of, ok := errors.AsType[*fs.PathError](err); ok { // the caller knows the folder
		err = of.Err
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	ignored, err := c.ignored(root)
	if err != nil {
		return "", err
	}
	if err := c.checkDockerfile(root); err != nil {
		return "", err
	}
	r := reader{root: root, archive: archive, sum: sha256.New()}
	parents := map[string]patternmatcher.MatchInfo{}
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		isIgnored, info, err := ignored.MatchesUsingParentResults(filepath.FromSlash(name), parents[path.Dir(name)])
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", ignoreFile, err)
		case isIgnored && entry.IsDir() && !letsIn(ignored, name):
			return fs.SkipDir
		}
		if entry.IsDir() {
			parents[name] = info
		}
		if isIgnored {
			return nil
		}
		return r.add(name)
	})
	return hex.EncodeToString(r.sum.Sum(nil)), err
}

// ignored returns the patterns of the .dockerignore. Like docker build it never leaves out that file and the Dockerfile, which the
// engine itself needs.
func (c Context) ignored(root *os.Root) (*patternmatcher.PatternMatcher, error) {
	var patterns []string
	f, err := root.Open(ignoreFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		patterns, err = ignorefile.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", ignoreFile, err)
		}
	}
	if len(patterns) > 0 {
		patterns = append(patterns, "!"+ignoreFile, "!"+c.Dockerfile)
	}
	all, err := patternmatcher.New(patterns)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ignoreFile, err)
	}
	return all, nil
}

// letsIn reports whether an exception among the patterns may let in something that is inside of an ignored folder. A folder without
// any is not read: docker build does not need to be able to.
func letsIn(ignored *patternmatcher.PatternMatcher, dir string) bool {
	inside := filepath.FromSlash(dir + "/")
	return slices.ContainsFunc(ignored.Patterns(), func(p *patternmatcher.Pattern) bool {
		if !p.Exclusion() {
			return false
		}
		literal := p.String()
		if i := strings.IndexAny(literal, `*?[\`); i >= 0 && strings.HasPrefix(inside, literal[:i]) {
			return true
		}
		return strings.HasPrefix(literal, inside)
	})
}

func (c Context) checkDockerfile(root *os.Root) error {
	info, err := root.Lstat(filepath.FromSlash(c.Dockerfile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return noDockerfile(c.Dockerfile)
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%q in it is a folder, and no Dockerfile", c.Dockerfile)
	}
	return nil
}

// noDockerfile is the error of a folder without its Dockerfile.
type noDockerfile string

// Error names the Dockerfile.
func (n noDockerfile) Error() string { return fmt.Sprintf("it has no file %q", string(n)) }

// Is says that a file does not exist.
func (noDockerfile) Is(target error) bool { return target == fs.ErrNotExist }

// reader reads the entries of a folder into a digest, and an archive if there is one.
type reader struct {
	root    *os.Root
	archive *tar.Writer
	sum     hash.Hash
}

func (r *reader) add(name string) error {
	local := filepath.FromSlash(name)
	info, err := r.root.Lstat(local)
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm() | specialBits(info.Mode())), ModTime: info.ModTime().Truncate(time.Second)}
	switch {
	case info.Mode().IsRegular():
		h.Typeflag = tar.TypeReg
		return r.file(local, h)
	case info.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
	case info.Mode()&fs.ModeSymlink != 0:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = r.root.Readlink(local); err != nil {
			return err
		}
		h.Linkname = filepath.ToSlash(h.Linkname)
	case info.Mode()&fs.ModeSocket != 0: // docker build leaves them out, too
		return nil
	default:
		return fmt.Errorf("%s is no file, folder or symbolic link: name it in %s", name, ignoreFile)
	}
	r.note(h, h.Linkname)
	if r.archive == nil {
		return nil
	}
	return r.archive.WriteHeader(h)
}

// file reads a regular file. One that grows or shrinks meanwhile is an error.
func (r *reader) file(local string, h *tar.Header) (err error) {
	f, err := r.root.Open(local)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h.Size = info.Size()
	content := sha256.New()
	to := io.Writer(content)
	if r.archive != nil {
		if err := r.archive.WriteHeader(h); err != nil {
			return err
		}
		to = io.MultiWriter(content, r.archive)
	}
	n, err := io.Copy(to, io.LimitReader(f, h.Size))
	if err == nil && n < h.Size {
		err = fmt.Errorf("%s became shorter while it was read", h.Name)
	}
	r.note(h, hex.EncodeToString(content.Sum(nil)))
	return err
}

// note adds an entry to the digest.
func (r *reader) note(h *tar.Header, content string) {
	_, _ = fmt.Fprintf(r.sum, "%q %c %o %q\n", h.Name, h.Typeflag, h.Mode, content) // a hash takes everything
}

// specialBits returns the bits of a mode, beside the permissions, that a file has in an image, too.
func specialBits(m fs.FileMode) fs.FileMode {
	const setUID, setGID, sticky = 0o4000, 0o2000, 0o1000
	var all fs.FileMode
	for bit, special := range map[fs.FileMode]fs.FileMode{fs.ModeSetuid: setUID, fs.ModeSetgid: setGID, fs.ModeSticky: sticky} {
		if m&bit != 0 {
			all |= special
		}
	}
	return all
}

// IsInside reports whether a text is the path of a file in a folder, with slashes.
func IsInside(text string) bool {
	return text != "" && !strings.Contains(text, `\`) && path.Clean(text) == text && filepath.IsLocal(filepath.FromSlash(text)) && text != "."
}
