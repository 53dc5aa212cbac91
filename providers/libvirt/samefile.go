package libvirt

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// sameFiles compares paths: two paths may name one file, through symbolic links, hard links and
// mounts. nil compares their texts alone. It keeps its results, so that one step or one
// observation should use it.
type sameFiles struct {
	here  bool // the files are on this machine
	mu    sync.Mutex
	known map[string]identity
	stuck bool // a file system did not answer in time
}

// identity holds the properties by which a file is recognised.
type identity struct {
	path  string // cleaned, without the links that could be followed
	inode string // device and inode; "": the file was not examined
	doubt error  // the reason why the path may lead to any other file, too
}

// is reports whether two identities certainly are of one file.
func (i identity) is(other identity) bool {
	return i.path == other.path || i.inode != "" && i.inode == other.inode
}

// examineLimit limits the examination of a file: a lost network file system does not answer.
const examineLimit = 5 * time.Second

// sameFiles returns a comparison of the paths of the provider's host.
func (p *Provider) sameFiles() *sameFiles { return &sameFiles{here: p.location.Here} }

// of returns the identity of a file.
func (s *sameFiles) of(file string) identity {
	clean := identity{path: path.Clean(file)}
	if s == nil || !s.here || !path.IsAbs(file) {
		return clean
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, known := s.known[file]
	if known {
		return found
	}
	if s.stuck {
		clean.doubt = errStuck
		return clean
	}
	done := make(chan identity, 1)
	go func() { done <- examine(file) }() // it may outlive this call: nothing ends a call to a lost file system
	late := time.NewTimer(examineLimit)
	defer late.Stop()
	select {
	case found = <-done:
	case <-late.C:
		found, s.stuck = clean, true
		found.doubt = errStuck
	}
	if s.known == nil {
		s.known = map[string]identity{}
	}
	s.known[file] = found
	return found
}

// The reasons why it is not known which file a path leads to.
var (
	errStuck    = errors.New("a file system does not answer")
	errSameName = errors.New("they have the same name, and vmctl cannot examine them from here")
)

// examine reads the identity of a file of this machine.
func examine(file string) identity {
	var i identity
	i.path, i.doubt = follow(path.Clean(file))
	if info, err := os.Stat(file); err == nil {
		i.inode, i.doubt = inodeOf(info), nil
	}
	return i
}

// follow resolves the symbolic links of a path as far as they lead. A path that leads nowhere, or
// where this user cannot look, is an error; a missing file is none.
func follow(file string) (string, error) {
	found, err := filepath.EvalSymlinks(file)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(found, file), err
	}
	folder, err := follow(path.Dir(file))
	at := path.Join(folder, path.Base(file))
	if err != nil {
		return at, err
	}
	target, err := os.Readlink(at)
	if err != nil { // it is no link
		return at, nil
	}
	if !path.IsAbs(target) {
		target = path.Join(folder, target)
	}
	found, _ = follow(path.Clean(target)) //nolint:errcheck // the link leads nowhere, for whatever reason
	return found, fmt.Errorf("the link %s leads to %s, which does not exist", at, target)
}

// same reports whether two paths certainly name one file.
func (s *sameFiles) same(a, b string) bool { return a == b || s.of(a).is(s.of(b)) }

// among returns the first of some paths that names a file; "": none does.
func (s *sameFiles) among(file string, some []string) string {
	if file == "" {
		return ""
	}
	if slices.Contains(some, file) {
		return file
	}
	i := slices.IndexFunc(some, func(one string) bool { return one != "" && s.same(one, file) })
	if i < 0 {
		return ""
	}
	return some[i]
}

// compare reports whether a path that a domain or an overlay uses names a volume. doubt is the
// reason why that is not known: then the volume is not to be changed.
func (s *sameFiles) compare(volume, used string) (same bool, doubt error) {
	if used == "" {
		return false, nil
	}
	v, u := s.of(volume), s.of(used)
	switch {
	case v.is(u):
		return true, nil
	case u.doubt != nil:
		return false, fmt.Errorf("%s may be %s: %w", used, volume, u.doubt)
	case v.inode != "": // the other one was examined, too, or does not exist
		return false, nil
	case slices.Contains([]string{path.Base(u.path), path.Base(used)}, path.Base(volume)):
		return false, fmt.Errorf("%s may be %s: %w", used, volume, errSameName)
	default:
		return false, nil
	}
}

// fileIndex finds some paths by any other path of their files.
type fileIndex struct {
	*sameFiles
	paths map[string][]string // by identity
}

func (s *sameFiles) index(paths []string) fileIndex {
	x := fileIndex{sameFiles: s, paths: map[string][]string{}}
	for _, file := range paths {
		for _, key := range s.of(file).keys() {
			x.paths[key] = append(x.paths[key], file)
		}
	}
	return x
}

// keys returns the texts of which two identities of one file share one.
func (i identity) keys() []string {
	if i.inode == "" {
		return []string{i.path}
	}
	return []string{i.path, i.inode}
}

// all returns the paths of a file, sorted.
func (x fileIndex) all(file string) []string {
	if file == "" {
		return nil
	}
	var found []string
	for _, key := range x.of(file).keys() {
		found = append(found, x.paths[key]...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// maybe reports whether one of some used paths names a volume, or may do so.
func (s *sameFiles) maybe(volume string, used []string) bool {
	return slices.ContainsFunc(used, func(one string) bool {
		same, doubt := s.compare(volume, one)
		return same || doubt != nil
	})
}
