package libvirt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

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

// isBeingMarked reports whether somebody is writing the mark of a volume, or was killed while
// writing it.
func (s filePool) isBeingMarked(volume string) bool {
	return s.unreadable[volume] != "" || slices.Contains(s.blank, volume)
}

// filePools lists the pools that may hold disks: vmctl's own first, and then all others that
// are active. The error names the pools that cannot be listed; the result still has the
// others. A step starts a pool of vmctl's own that a reboot left inactive; Observe does not.
func (p *Provider) filePools(ctx context.Context, c connection) ([]filePool, error) {
	pools, err := c.Pools(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the pools of %s: %w", p.location.URI, err)
	}
	var errs []error
	first := p.candidatePools()
	for _, name := range first {
		if slices.ContainsFunc(pools, func(found pool) bool { return found.Name == name }) {
			continue
		}
		woken, err := p.wakePool(ctx, c, name)
		errs = append(errs, err)
		pools = append(pools, woken...)
	}
	slices.SortFunc(pools, func(a, b pool) int { return rank(first, a.Name, b.Name) })
	var all []filePool
	for _, found := range pools {
		if !ofFiles(found) {
			continue
		}
		s, err := p.filePool(ctx, c, found)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, s)
	}
	return all, errors.Join(errs...)
}

// rank compares two names. The names in first come before all others.
func rank(first []string, a, b string) int {
	place := func(name string) int {
		if i := slices.Index(first, name); i >= 0 {
			return i
		}
		return len(first)
	}
	if d := place(a) - place(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

// wakePool returns a pool that may hold disks. It starts an inactive pool if that is vmctl's
// own and c may change the system. A missing pool holds no disks, unless the block names it:
// then wakePool fails.
func (p *Provider) wakePool(ctx context.Context, c connection, name string) ([]pool, error) {
	found, err := c.Pool(ctx, name)
	switch {
	case errors.Is(err, errAbsent) && name == p.pool:
		return nil, fmt.Errorf("pool %s, which the provider's block names, does not exist: see what there is: virsh -c %s pool-list --all", name, p.location.URI)
	case errors.Is(err, errAbsent), err == nil && p.emptied(found):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read pool %s: %w", name, err)
	case found.Active:
		return []pool{found}, nil
	}
	looks, isLooking := c.(*readOnly)
	if isLooking && p.canRead(looks, found) {
		return []pool{found}, nil
	}
	if p.ours(found) && !isLooking {
		err = c.StartPool(ctx, name)
		if now, lookErr := c.Pool(ctx, name); lookErr == nil && now.Active { // another vmctl may have been faster
			return []pool{now}, nil
		}
	}
	return nil, errors.Join(err, fmt.Errorf("pool %s is not active: start it: virsh -c %s pool-start %s", name, p.location.URI, name))
}

// emptied reports whether the folder of vmctl's own pool is gone, with all its files.
func (p *Provider) emptied(found pool) bool {
	if !p.ours(found) || p.location.Remote != "" {
		return false
	}
	_, err := os.Stat(found.Path)
	return errors.Is(err, fs.ErrNotExist)
}

// left reports whether somebody else's pool went away during the listing.
func (p *Provider) left(ctx context.Context, c connection, found pool) bool {
	if slices.Contains(p.candidatePools(), found.Name) {
		return false
	}
	now, err := c.Pool(ctx, found.Name)
	return errors.Is(err, errAbsent) || err == nil && !now.Active
}

// filePool lists one pool.
func (p *Provider) filePool(ctx context.Context, c connection, found pool) (filePool, error) {
	s := filePool{pool: found, marks: map[string]sidecar{}, unreadable: map[string]string{}}
	var err error
	s.names, err = c.Volumes(ctx, found.Name)
	if errors.Is(err, errAbsent) || err != nil && (p.emptied(found) || p.left(ctx, c, found)) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("list the volumes of pool %s: %w", found.Name, err)
	}
	slices.Sort(s.names)
	for _, name := range s.names {
		volume, ok := strings.CutSuffix(name, sidecarSuffix)
		if !ok {
			continue
		}
		content, err := c.Head(ctx, found.Name, name, sidecarBytes)
		if err == nil {
			s.marks[volume], err = parseSidecar(content)
		}
		if err != nil {
			delete(s.marks, volume)
		}
		switch {
		case errors.Is(err, errAbsent): // it was removed during the listing
		case errors.Is(err, errBlank):
			s.blank = append(s.blank, volume)
		case err != nil:
			s.unreadable[volume] = fmt.Sprintf("read its mark %s: %v", pathIn(found, name), err)
		}
	}
	return s, nil
}

// overlaysOf returns the paths of the volumes whose base is a file. A volume that cannot be
// read may be one: that is an error.
func overlaysOf(ctx context.Context, c connection, all []filePool, file string) ([]string, error) {
	var over []string
	for _, s := range all {
		for _, name := range s.names {
			v, err := c.VolumeInfo(ctx, s.Name, name)
			switch {
			case errors.Is(err, errAbsent):
			case err != nil:
				return nil, fmt.Errorf("read volume %s of pool %s: %w", name, s.Name, err)
			case v.Backing != "" && path.Clean(v.Backing) == file:
				over = append(over, v.Path)
			}
		}
	}
	return over, nil
}

// ofFiles reports whether the volumes of a pool are files.
func ofFiles(p pool) bool { return slices.Contains([]string{"dir", "fs", "netfs"}, p.Type) }

// observedDisk holds all observations of one disk.
type observedDisk struct {
	volume
	in   pool
	mark *sidecar // nil: none, or an invalid one
	copy bool     // the mark was written for another volume
}

// id returns the UUID in the mark, or the path of a volume without a mark of its own.
func (s observedDisk) id() providers.ID {
	if s.mark == nil || s.copy {
		return providers.ID(s.Path)
	}
	return s.mark.Of
}

// name returns the name of the volume without the suffix of its format.
func (s observedDisk) name() string { return nameOfVolume(s.Name, s.Format) }

func nameOfVolume(volume, format string) string {
	if name, ok := strings.CutSuffix(volume, "."+format); ok && name != "" {
		return name
	}
	return volume
}

func volumeOf(name, format string) string { return name + "." + format }

// volumePlace is the place of a volume that exists or may be made.
type volumePlace struct {
	pool *filePool
	name string
}

func (s volumePlace) path() string { return pathIn(s.pool.pool, s.name) }

// volumePlaces returns the places of a disk: of the volume whose mark has that ID, or which has that
// path. There is at most one, but for copies, which come later.
func volumePlaces(all []filePool, id providers.ID) []volumePlace {
	var found []volumePlace
	for i := range all {
		s := &all[i]
		if isPath(id) {
			if name := path.Base(string(id)); s.Path == path.Dir(string(id)) && s.has(name) {
				found = append(found, volumePlace{s, name})
			}
			continue
		}
		for _, name := range s.names {
			volume, ok := strings.CutSuffix(name, sidecarSuffix)
			if mark, read := s.marks[volume]; ok && read && mark.Of == id && mark.Volume == volume {
				found = append(found, volumePlace{s, volume})
			}
		}
	}
	return found
}

// observe reads the volume at a spot. A missing volume is errAbsent.
func (s volumePlace) observe(ctx context.Context, c connection) (observedDisk, error) {
	if why, bad := s.pool.unreadable[s.name]; bad {
		return observedDisk{}, errors.New(why)
	}
	v, err := c.VolumeInfo(ctx, s.pool.Name, s.name)
	if err != nil {
		return observedDisk{}, err
	}
	d := observedDisk{volume: v, in: s.pool.pool}
	if mark, ok := s.pool.marks[s.name]; ok {
		d.mark, d.copy = &mark, mark.Volume != s.name
	}
	return d, nil
}
