package libvirt

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// diskIndex holds all observations of the disks of a system.
type diskIndex struct {
	listing
	networks networkIndex
	disks    []observedDisk // disks with our mark, disks that are asked for, and copies
	unknown  []providers.Unknown
	partial  error                         // the reason why the listing is incomplete; nil: it is complete
	known    map[providers.ID]spec.Address // the addresses of disks, from the query
	found    map[spec.Address]providers.ID // the disks that imports name
	ids      map[string]providers.ID       // by path, of volumes that bear a mark, existing or not
	owners   map[string]spec.Address       // by path, of the same volumes
	marked   fileIndex                     // of the same volumes
}

// indexDisks observes the disks.
func (p *Provider) indexDisks(ctx context.Context, c connection, q request) diskIndex {
	r := diskIndex{
		known: map[providers.ID]spec.Address{}, found: map[spec.Address]providers.ID{},
		ids: map[string]providers.ID{}, owners: map[string]spec.Address{},
	}
	var err error
	if r.listing, err = p.filePools(ctx, c); err != nil {
		r.partial = err
	}
	var all []candidate
	for i := range r.pools {
		s := &r.pools[i]
		for _, name := range s.disks() {
			all = append(all, candidate{diskPlace: s.place(name), asked: p.asking(q, s, name)})
		}
	}
	panics := parallel(len(all), func(i int) {
		if p.concerns(all[i]) {
			all[i].disk, all[i].err = all[i].observe(ctx, c)
		}
	})
	taken := map[providers.ID]bool{}
	for i, found := range all {
		found.err = errors.Join(found.err, panics[i])
		p.add(&r, found, taken)
	}
	r.marked = r.files.index(slices.Sorted(maps.Keys(r.ids)))
	marked := map[providers.ID]bool{}
	for _, id := range r.ids {
		marked[id] = true
	}
	for _, k := range q.Known {
		if k.Kind == spec.Disk && k.ID != "" {
			r.known[k.ID] = k.Address
			if !marked[k.ID] {
				p.addHidden(ctx, c, &r, k)
			}
		}
	}
	for a, id := range r.found {
		r.known[id] = a
	}
	return r
}

// candidate is a volume that may be a disk of the query.
type candidate struct {
	diskPlace
	asked []providers.Known
	disk  *observedDisk // nil: it does not exist, or does not concern vmctl
	err   error
}

// concerns reports whether an existing volume bears our mark, cannot be read, or is asked for.
func (p *Provider) concerns(at candidate) bool {
	mark, marked := at.pool.marks[at.name]
	_, unreadable := at.pool.unreadable[at.name]
	ours := marked && mark.ID == p.settings.Project.Lineage()
	return (ours || unreadable || len(at.asked) > 0) && at.pool.has(at.name)
}

// hidden returns the reason why it is not known whether a file exists; nil: its pool is listed,
// or was vmctl's own and is gone.
func (p *Provider) hidden(ctx context.Context, c connection, r diskIndex, file string) error {
	if _, listed, _ := r.at(file); listed {
		return nil
	}
	if r.partial != nil {
		return r.partial
	}
	_, err := p.locate(ctx, c, file)
	switch {
	case err == nil:
		return errors.New("its pool was not active for a moment")
	case errors.Is(err, errAbsent):
		return nil
	default:
		return err
	}
}

// addHidden adds a disk of the query that was not found, if the pool in which it was recorded is
// not listed.
func (p *Provider) addHidden(ctx context.Context, c connection, r *diskIndex, k providers.Known) {
	file := ctyread.Text(k.Prior, "path")
	if file == "" || r.partial != nil {
		return
	}
	if err := p.hidden(ctx, c, *r, file); err != nil {
		r.unknown = append(r.unknown, providers.Unknown{Kind: spec.Disk, ID: k.ID, Name: k.Name, Reason: err.Error()})
	}
}

// disks returns the names of all volumes that may be disks, also of missing ones that have a
// mark.
func (s *filePool) disks() []string {
	var all []string
	for _, name := range s.names {
		volume, marks := kindSidecar.owner(name)
		if !marks || !s.has(volume) {
			all = append(all, volume)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// imports reports whether an import names a volume: by its path, or as pool/name.
func imports(k providers.Known, s *filePool, volume string) bool {
	switch {
	case k.Import == "":
		return false
	case isPath(k.Import):
		return filepath.Clean(string(k.Import)) == s.file(volume).path()
	}
	mark, marked := s.marks[volume]
	return string(k.Import) == s.Name+"/"+volume || marked && mark.Of == k.Import && mark.Volume == volume
}

// add adds an existing volume to the index if it concerns vmctl.
func (p *Provider) add(r *diskIndex, at candidate, taken map[providers.ID]bool) {
	mark, marked := at.pool.marks[at.name]
	if marked && mark.Volume == at.name && !taken[mark.Of] {
		r.ids[at.path()] = mark.Of
		if mark.ID == p.settings.Project.Lineage() {
			r.owners[at.path()] = mark.Address
		}
	}
	d := at.disk
	if d == nil && at.err == nil {
		return
	}
	for _, k := range at.asked {
		if imports(k, at.pool, at.name) {
			r.found[k.Address] = providers.ID(at.path())
			if d != nil {
				r.found[k.Address] = d.id()
			}
		}
	}
	if at.err != nil {
		r.unknown = append(r.unknown, p.unread(at.diskPlace, at.err))
		return
	}
	if d.mark != nil && !d.copy { // the same mark in two pools: the first one is its own
		d.copy, taken[d.mark.Of] = taken[d.mark.Of], true
	}
	r.ids[d.Path] = d.id()
	r.disks = append(r.disks, *d)
}

// unread describes a volume that cannot be read.
func (p *Provider) unread(at diskPlace, err error) providers.Unknown {
	u := providers.Unknown{Kind: spec.Disk, ID: providers.ID(at.path()), Name: at.name, Reason: err.Error()}
	for _, format := range []string{formatQCOW2, formatRaw} {
		if name := nameOfVolume(at.name, format); name != at.name {
			u.Name = name
		}
	}
	if mark, ok := at.pool.marks[at.name]; ok {
		u.ID = mark.Of
	}
	return u
}

// address returns the owner of a domain's file: the disk of the spec or the record, else the
// address in the file's mark; false: it has no owner.
func (r diskIndex) address(path string) (spec.Address, bool) {
	all := r.marked.all(path)
	for _, file := range all {
		if a, ok := r.known[r.ids[file]]; ok {
			return a, true
		}
	}
	for _, file := range all {
		if a, ok := r.owners[file]; ok {
			return a, true
		}
	}
	return spec.Address{}, false
}

// claims returns the claims on disks that a domain holds.
func (r diskIndex) claims(s observedDomain) []providers.Claim {
	var all []providers.Claim
	for _, d := range s.drives() {
		for _, used := range r.filesOf(d) {
			for _, file := range r.marked.all(used) {
				if claim := machine.DiskClaim(r.ids[file]); !slices.Contains(all, claim) {
					all = append(all, claim)
				}
			}
		}
	}
	return all
}

// lost returns the problems of the boot files that vmctl gave to a domain: a listed pool
// lacks one, or somebody wrote to it.
func (p *Provider) lost(ctx context.Context, c connection, s observedDomain, r diskIndex) []string {
	o := s.owner()
	if o == nil || o.Imported || o.Of != providers.ID(s.UUID) {
		return nil
	}
	var all []string
	for _, file := range []string{o.Boot.Kernel, o.Boot.Initrd} {
		f, listed, exists := r.at(file)
		if !listed || file != s.configured.Kernel && file != s.configured.Initrd {
			continue
		}
		if !exists {
			all = append(all, file+", which is gone")
			continue
		}
		if p.hasStamp(file, o.stampOf(file)) {
			continue
		}
		if now, err := p.readHere(ctx, c, f); err == nil && now != nil && !o.isAsUploaded(file, *now) {
			all = append(all, file+", which was written to since it was uploaded")
		}
	}
	return all
}

// hasStamp reports whether a file of this machine has that stamp. Its properties need not be read
// then.
func (p *Provider) hasStamp(file, stamp string) bool {
	if !p.location.Here {
		return false
	}
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && volume{Capacity: uint64(info.Size()), Modified: timestamp(info)}.stamp() == stamp
}

// readHere reads the properties of a file: from the file, if it is on this machine and this user
// may read it, else through libvirt.
func (p *Provider) readHere(ctx context.Context, c connection, f poolFile) (*volume, error) {
	if p.location.Here {
		if v, err := f.read(); err == nil {
			return &v, nil
		}
	}
	return f.see(ctx, c)
}

// unmarkedClaims returns claims on the disks of a domain that have no mark and are not asked for, by
// their paths, which an import names.
func (r diskIndex) unmarkedClaims(s observedDomain) []providers.Claim {
	var all []providers.Claim
	for _, d := range s.drives() {
		path := r.volumeOf(r.pathOf(d))
		claim := machine.DiskClaim(providers.ID(path))
		_, _, exists := r.at(path)
		if len(r.marked.all(path)) > 0 || !exists || d.Device != deviceDisk || slices.Contains(all, claim) {
			continue
		}
		all = append(all, claim)
	}
	return all
}

// users returns the domains that have each of some volumes as a disk, or an overlay of it as far
// as libvirt knows, sorted by name.
func (p *Provider) users(l listing, volumes []string, all []observedDomain) map[string][]user {
	found, index := map[string][]user{}, l.files.index(volumes)
	for _, s := range all {
		var files []string
		for _, d := range s.drives() {
			for _, used := range l.filesOf(d) {
				files = append(files, index.all(used)...)
			}
		}
		slices.Sort(files)
		for _, file := range slices.Compact(files) {
			found[file] = append(found[file], s.user(p.settings.Project, p.location.URI, l.files))
		}
	}
	for _, users := range found {
		slices.SortFunc(users, func(a, b user) int { return strings.Compare(a.name, b.name) })
	}
	return found
}

// drives returns the disks that a domain is defined or runs with.
func (s observedDomain) drives() []drive {
	all := slices.Clone(s.configured.Drives)
	if s.running != nil {
		all = append(all, s.running.Drives...)
	}
	return all
}

func (s observedDomain) user(p providers.Project, uri string, files *sameFiles) user {
	o := s.owner()
	u := user{
		name: s.Name, uuid: s.UUID, running: s.power.on(), layers: s.layers(uri, files),
		ours: s.wanted || o != nil && s.oursFor(p, o.Address),
	}
	if s.job != "" {
		u.job, u.endJob = s.underWay(), s.endJob(uri)
	}
	return u
}
