package libvirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"vmctl/providers"
)

// filePool is a pool of files with its content.
type filePool struct {
	pool
	names []string // of all volumes, sorted
	marks map[string]sidecar
	// blank lists the volumes whose sidecar holds nothing. unreadable maps the volumes whose
	// sidecar cannot be read to the reasons.
	blank      []string
	unreadable map[string]string
}

func (s filePool) has(name string) bool {
	_, found := slices.BinarySearch(s.names, name)
	return found
}

// add adds the names of new volumes to the listing.
func (s *filePool) add(names ...string) {
	for _, name := range names {
		if at, found := slices.BinarySearch(s.names, name); !found {
			s.names = slices.Insert(s.names, at, name)
		}
	}
}

// isBeingMarked reports whether somebody is writing the mark of a volume, or was killed while
// writing it.
func (s filePool) isBeingMarked(volume string) bool {
	return s.unreadable[volume] != "" || slices.Contains(s.blank, volume)
}

// filePools lists the pools that may hold disks: vmctl's own first, and then all others that
// are active. The error names the pools that cannot be listed; the result still has the
// others.
func (p *Provider) filePools(ctx context.Context, c connection) (listing, error) {
	pools, asleep, err := p.activePools(ctx, c)
	if err != nil {
		return listing{}, err
	}
	errs := []error{asleep}
	all := listing{files: p.sameFiles()}
	for _, found := range pools {
		if !found.ofFiles() {
			continue
		}
		s, err := p.filePool(ctx, c, found)
		if err != nil && p.left(ctx, c, found) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all.pools = append(all.pools, s)
	}
	return all, errors.Join(errs...)
}

// filePool lists one pool.
func (p *Provider) filePool(ctx context.Context, c connection, found pool) (filePool, error) {
	s := filePool{pool: found, marks: map[string]sidecar{}, unreadable: map[string]string{}}
	var err error
	s.names, err = c.Volumes(ctx, found.Name)
	if p.ours(found) && errors.Is(err, errAbsent) || err != nil && p.emptied(found) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("list the volumes of pool %s: %w", found.Name, err)
	}
	slices.Sort(s.names)
	p.readMarks(ctx, c, &s)
	return s, nil
}

// readMarks reads the marks of a pool's volumes.
func (p *Provider) readMarks(ctx context.Context, c connection, s *filePool) {
	var volumes []string
	for _, name := range s.names {
		if volume, ok := kindSidecar.owner(name); ok {
			volumes = append(volumes, volume)
		}
	}
	marks, errs := make([]sidecar, len(volumes)), make([]error, len(volumes))
	panics := parallel(len(volumes), func(i int) {
		var content []byte
		if content, errs[i] = p.readMark(ctx, c, s.file(sidecarOf(volumes[i]))); errs[i] == nil {
			marks[i], errs[i] = parseSidecar(content)
		}
	})
	for i, volume := range volumes {
		switch err := cmp.Or(errs[i], panics[i]); {
		case err == nil:
			s.marks[volume] = marks[i]
		case errors.Is(err, errAbsent): // it was removed during the listing
		case errors.Is(err, errBlank):
			s.blank = append(s.blank, volume)
		default:
			s.unreadable[volume] = fmt.Sprintf("read its mark %s: %v", s.file(sidecarOf(volume)).path(), err)
		}
	}
}

// readMark reads a mark: from its file, if it is certainly on this machine and this user may read
// it, else through libvirt, which takes several calls.
func (p *Provider) readMark(ctx context.Context, c connection, f poolFile) ([]byte, error) {
	if p.location.Here {
		if content, err := headOf(f.path(), sidecarBytes); err == nil {
			return content, nil
		}
	}
	return c.Head(ctx, f.in.Name, f.name, sidecarBytes)
}

// listing holds the pools of files of a system, with their contents.
type listing struct {
	pools []filePool
	files *sameFiles
}

// pool returns a pool of the listing; nil: it is not in it.
func (l listing) pool(in pool) *filePool {
	i := slices.IndexFunc(l.pools, func(s filePool) bool { return s.Name == in.Name && s.Path == in.Path })
	if i < 0 {
		return nil
	}
	return &l.pools[i]
}

// replace puts a newer listing of a pool in the place of the older one, if there is one.
func (l *listing) replace(s filePool) *filePool {
	before := l.pool(s.pool)
	if before == nil {
		l.pools = append(l.pools, s)
		return &l.pools[len(l.pools)-1]
	}
	*before = s
	return before
}

// pathOf returns the path of the file of a domain's disk; "": it has none.
func (l listing) pathOf(d drive) string {
	if d.Path != "" {
		return path.Clean(d.Path)
	}
	for _, s := range l.pools {
		if s.Name == d.Pool && s.has(d.Volume) {
			return s.file(d.Volume).path()
		}
	}
	return ""
}

// isOn reports whether a domain's disk is on a file, or on an overlay of it as far as libvirt
// knows.
func (l listing) isOn(d drive, file string) bool {
	return l.files.among(file, l.filesOf(d)) != ""
}

// filesOf returns the paths of a domain's disk: of its own file, and of those below its overlay.
func (l listing) filesOf(d drive) []string { return append([]string{l.pathOf(d)}, d.Under...) }

// compare is like sameFiles.compare. It knows two volumes of one name apart by their properties.
func (l listing) compare(ctx context.Context, c connection, volume, used string) (same bool, doubt error) {
	same, doubt = l.files.compare(volume, used)
	if errors.Is(doubt, errSameName) && l.differ(ctx, c, volume, used) {
		return false, nil
	}
	return same, doubt
}

// differ reports whether two paths are volumes with different properties. A running domain changes
// the properties of its disk: a volume that changes meanwhile proves nothing.
func (l listing) differ(ctx context.Context, c connection, volume, used string) bool {
	a, _, isVolume := l.at(volume)
	b, _, isOther := l.at(path.Clean(used))
	if !isVolume || !isOther {
		return false
	}
	var seen []string
	for _, f := range []poolFile{a, b, a} {
		v, err := f.see(ctx, c)
		if v == nil || err != nil || v.Modified == "" {
			return false
		}
		seen = append(seen, v.stamp())
	}
	return seen[0] == seen[2] && seen[0] != seen[1]
}

// volumeOf returns the path of the listed volume that is the file at a path. It returns the path
// itself if there is none.
func (l listing) volumeOf(file string) string {
	if _, _, exists := l.at(file); exists {
		return file
	}
	var paths []string
	for _, s := range l.pools {
		for _, name := range s.names {
			paths = append(paths, s.file(name).path())
		}
	}
	return cmp.Or(l.files.among(file, paths), file)
}

// at returns the file at a path. listed says that the file's pool is in the listing, exists
// that the file is.
func (l listing) at(file string) (f poolFile, listed, exists bool) {
	for _, s := range l.pools {
		if s.Path == path.Dir(file) {
			return s.file(path.Base(file)), true, s.has(path.Base(file))
		}
	}
	return poolFile{}, false, false
}

// overlaysOf returns the paths of the volumes whose base is a file. A volume that may be one is an
// error.
func (l listing) overlaysOf(ctx context.Context, c connection, file string) ([]string, error) {
	var over []string
	for _, s := range l.pools {
		for _, name := range s.names {
			v, err := s.file(name).see(ctx, c)
			if err != nil {
				return nil, fmt.Errorf("read volume %s of pool %s: %w", name, s.Name, err)
			}
			if v == nil {
				continue
			}
			same, doubt := l.compare(ctx, c, file, v.Backing)
			if doubt != nil {
				return nil, fmt.Errorf("volume %s begins from %w", v.Path, doubt)
			}
			if same {
				over = append(over, v.Path)
			}
		}
	}
	return over, nil
}

// diskPlace is the place of a disk that exists or may be made.
type diskPlace struct {
	poolFile
	pool *filePool
}

func (s *filePool) place(volume string) diskPlace { return diskPlace{s.file(volume), s} }

// places returns the places of a disk: of the volume whose mark has that ID, or which has that
// path. There is at most one, but for copies, which come later.
func (l listing) places(id providers.ID) []diskPlace {
	var found []diskPlace
	for i := range l.pools {
		s := &l.pools[i]
		for _, name := range s.names {
			volume, marks := kindSidecar.owner(name)
			mark, read := s.marks[volume]
			switch {
			case isPath(id) && s.file(name).path() == string(id):
				found = append(found, s.place(name))
			case marks && read && mark.Of == id && mark.Volume == volume:
				found = append(found, s.place(volume))
			}
		}
	}
	return found
}

// observe reads the volume at a place; nil: it does not exist.
func (s diskPlace) observe(ctx context.Context, c connection) (*observedDisk, error) {
	if why, bad := s.pool.unreadable[s.name]; bad {
		return nil, errors.New(why)
	}
	v, err := s.see(ctx, c)
	if v == nil || err != nil {
		return nil, err
	}
	d := &observedDisk{volume: *v, in: s.in}
	if mark, ok := s.pool.marks[s.name]; ok {
		d.mark, d.copy = &mark, mark.Volume != s.name
	}
	return d, nil
}

// find reads the disk of an ID; nil: it does not exist. at is its place, perhaps without a
// volume; zero: none.
func (l listing) find(ctx context.Context, c connection, id providers.ID) (disk *observedDisk, at diskPlace, err error) {
	all := l.places(id)
	for _, at := range all {
		if disk, err := at.observe(ctx, c); err != nil || disk != nil {
			return disk, at, err
		}
	}
	if len(all) > 0 {
		at = all[0]
	}
	return nil, at, nil
}
