package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"vmctl/internal/buildcontext"
)

// folder is the folder of the spec, from which files are read.
type folder struct {
	dir          string // absolute
	allowMissing bool   // the objects only end: their files may be missing
	mu           sync.Mutex
	digests      map[string]digestResult // by absolute path
	read         map[string]string       // SHA-256 of the files that were read, by path; "": it did not exist
}

type digestResult struct {
	sum string
	err error
}

var errNoFile = errors.New("the folder of the spec has no such file")

// toleratesMissing reports whether err says that a file does not exist, and
// Inputs.AllowMissingFiles allows that.
func (f *folder) toleratesMissing(err error) bool {
	return f.allowMissing && (errors.Is(err, errNoFile) || errors.Is(err, fs.ErrNotExist))
}

func newFolder(dir string) *folder {
	return &folder{dir: dir, digests: map[string]digestResult{}, read: map[string]string{}}
}

// digest returns the SHA-256, in hex, of a file anywhere on this machine; relative paths begin in
// the folder. A file is read once, however often it is asked for. An empty file is an error.
func (f *folder) digest(path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.dir, path)
	}
	path = filepath.Clean(path)
	f.mu.Lock()
	defer f.mu.Unlock()
	d, ok := f.digests[path]
	if !ok {
		d.sum, d.err = digestFile(path)
		f.digests[path] = d
		f.read[f.shorten(path)] = d.sum
	}
	return d.sum, d.err
}

// context returns the digest of what a build gets of a folder anywhere on this machine; relative paths begin in the folder of the
// spec. It is read once, however often it is asked for.
func (f *folder) context(path, dockerfile string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.dir, path)
	}
	path = filepath.Clean(path)
	key := path + "\x00" + dockerfile
	f.mu.Lock()
	defer f.mu.Unlock()
	d, ok := f.digests[key]
	if !ok {
		d.sum, d.err = buildcontext.Context{Dir: path, Dockerfile: dockerfile}.Digest()
		f.digests[key] = d
		f.read[f.shorten(path)] += d.sum // of several Dockerfiles
	}
	return d.sum, d.err
}

func digestFile(path string) (string, error) {
	file, err := openRegular(path)
	if err != nil {
		return "", err
	}
	defer closeRead(file)
	sum, n, err := digestOf(file)
	if err == nil && n == 0 {
		return "", errors.New("it is empty")
	}
	return sum, err
}

func digestOf(r io.Reader) (string, int64, error) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	if err != nil {
		return "", n, reason(err)
	}
	return hex.EncodeToString(h.Sum(nil)), n, nil
}

// text returns the content of a file inside the folder.
func (f *folder) text(path string) (string, error) {
	file, err := f.openInside(path)
	if err != nil {
		return "", err
	}
	defer closeRead(file)
	src, err := io.ReadAll(io.LimitReader(file, maxTextBytes+1))
	switch {
	case err != nil:
		return "", reason(err)
	case len(src) > maxTextBytes:
		return "", fmt.Errorf("%q is larger than %s", path, FormatSize(maxTextBytes))
	case !utf8.Valid(src):
		return "", fmt.Errorf("%q is not UTF-8 text", path)
	}
	f.recordRead(path, sumOf(src))
	return string(src), nil
}

// sum returns the SHA-256, in hex, of a file inside the folder.
func (f *folder) sum(path string) (string, error) {
	file, err := f.openInside(path)
	if err != nil {
		return "", err
	}
	defer closeRead(file)
	sum, _, err := digestOf(file)
	f.recordRead(path, sum)
	return sum, err
}

// exists reports whether the folder has a regular file of that path.
func (f *folder) exists(path string) (bool, error) {
	file, err := f.openInside(path)
	switch {
	case errors.Is(err, errNoFile):
		f.recordRead(path, "")
		return false, nil
	case err != nil:
		return false, err
	}
	closeRead(file)
	f.recordRead(path, anyContent)
	return true, nil
}

// anyContent stands for the SHA-256 of a file that only has to exist.
const anyContent = "exists"

// recordRead records the SHA-256 of a file that was read.
func (f *folder) recordRead(path, sum string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path = filepath.Clean(path)
	if _, ok := f.read[path]; ok && sum == anyContent {
		return
	}
	f.read[path] = sum
}

// shorten returns a path that begins in the folder, if it leads there.
func (f *folder) shorten(path string) string {
	if short, err := filepath.Rel(f.dir, path); err == nil && filepath.IsLocal(short) {
		return short
	}
	return path
}

func (f *folder) readSoFar() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.read)
}

func sumOf(src []byte) string {
	sum := sha256.Sum256(src)
	return hex.EncodeToString(sum[:])
}

// openInside opens a regular file of the folder. Neither `..` nor a symbolic link
// leads out of it.
func (f *folder) openInside(path string) (*os.File, error) {
	if !filepath.IsLocal(path) {
		return nil, fmt.Errorf("%q is outside of the folder of the spec; put the file there and write its path from there", path)
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of the spec: %w", err)
	}
	defer closeRead(root)
	info, err := root.Stat(path)
	if err != nil {
		return nil, explainRootError(path, err)
	}
	if err := mustBeRegular(info); err != nil {
		return nil, fmt.Errorf("%q cannot be read: %w", path, err)
	}
	file, err := root.Open(path)
	if err != nil {
		return nil, explainRootError(path, err)
	}
	return file, nil
}

// explainRootError turns an error of os.Root into a message for users.
func explainRootError(path string, err error) error {
	// The error for a path that leaves the root is not exported.
	if strings.Contains(err.Error(), "escapes") {
		return fmt.Errorf("%q leads out of the folder of the spec by a symbolic link; put the file itself there", path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%q: %w", path, errNoFile)
	}
	return fmt.Errorf("%q cannot be read: %w", path, reason(err))
}
