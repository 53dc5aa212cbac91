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

// fileKind is the use of a file in a pool. The name of a file begins with its owner: the ID of
// an object, the word of a project, or the file that it describes.
type fileKind int

const (
	kindKernel  fileKind = iota
	kindInitrd           // an initial RAM disk with the keys in it
	kindSeed             // for cloud-init
	kindRoot             // an overlay of an image: it takes room only for the guest's own data
	kindConsole          // the log of the serial console
	kindImage            // of a project
	kindNote             // beside an image: the image is whole
	kindSidecar          // beside a disk: its owner mark
)

// nameRow describes the names of a kind of files: the owner, before, the first digits of a
// digest of the content, after.
type nameRow struct {
	before, after string
	digits        int
	object        bool // the owner is an object
	backups       bool // virtlogd renames older parts: name.0, name.1
}

// name returns the name of a file of an owner, with that digest of its content.
func (k fileKind) name(of, sha256 string) string {
	row := fileNames[k]
	return of + row.before + sha256[:row.digits] + row.after
}

// pattern matches the names of an owner's files.
func (k fileKind) pattern(of string) string {
	if row := fileNames[k]; row.digits > 0 {
		return of + row.before + "*"
	}
	return k.name(of, "")
}

// has reports whether a file of an owner has that name.
func (k fileKind) has(name, of string) bool {
	row := fileNames[k]
	rest, ok := strings.CutPrefix(name, of+row.before)
	if !ok || len(rest) < row.digits || strings.Trim(rest[:row.digits], "0123456789abcdef") != "" {
		return false
	}
	rest = rest[row.digits:]
	return rest == row.after || row.backups && isBackup(rest, row.after)
}

// owner returns the file that a file of that name describes; false: the file is of another
// kind.
func (k fileKind) owner(name string) (string, bool) {
	return strings.CutSuffix(name, fileNames[k].after)
}

// isBackup reports whether a file is an older part of a log.
func isBackup(file, log string) bool {
	number, ok := strings.CutPrefix(file, log+".")
	return ok && strings.Trim(number, "0123456789") == ""
}

// isVolumeOf reports whether a volume has the name of a file of the object.
func isVolumeOf(volume string, id providers.ID) bool {
	for kind, row := range fileNames {
		if row.object && kind.has(volume, string(id)) {
			return true
		}
	}
	return false
}

// poolFile is a file in a pool, which exists or may be made.
type poolFile struct {
	in   pool
	name string
}

func (p pool) file(name string) poolFile { return poolFile{in: p, name: name} }

func (f poolFile) path() string { return path.Join(f.in.Path, f.name) }

// see reads the properties of the file; nil: it does not exist.
func (f poolFile) see(ctx context.Context, c connection) (*volume, error) {
	v, err := c.VolumeInfo(ctx, f.in.Name, f.name)
	if errors.Is(err, errAbsent) {
		return nil, nil
	}
	return &v, err
}

// remove deletes the file, and reports whether it existed.
func (f poolFile) remove(ctx context.Context, c connection) (bool, error) {
	err := c.DeleteVolume(ctx, f.in.Name, f.name)
	if errors.Is(err, errAbsent) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("delete volume %s of pool %s: %w", f.name, f.in.Name, err)
	}
	return true, nil
}

// locate returns the file at a path: in the active pool of that folder. If no such pool is
// active, it is not known whether the file exists: that is an error with advice. The file is
// errAbsent if vmctl's own pool was to have it, and that does not exist any more.
func (p *Provider) locate(ctx context.Context, c connection, file string) (poolFile, error) {
	pools, err := c.Pools(ctx)
	if err != nil {
		return poolFile{}, err
	}
	folder := path.Dir(file)
	var here []pool
	for _, found := range pools {
		if found.Path == folder {
			here = append(here, found)
		}
	}
	if i := slices.IndexFunc(here, func(p pool) bool { return p.Active }); i >= 0 {
		return here[i].file(path.Base(file)), nil
	}
	own, ownFolder := p.ownPool()
	if len(here) > 0 && !p.emptied(here[0]) {
		return poolFile{}, p.inactive(here[0].Name)
	}
	if len(here) > 0 || folder == ownFolder && !slices.ContainsFunc(pools, func(p pool) bool { return p.Name == own }) || p.isGone(folder) {
		return poolFile{}, fmt.Errorf("%w: no pool has the file %s", errAbsent, file)
	}
	return poolFile{}, &providers.Problem{
		Outcome: providers.Failed, Code: "no_pool", Next: providers.Say("see what there is: virsh -c " + p.location.URI + " pool-list --all"),
		Err: fmt.Errorf("no pool has the folder of the file %s", file),
	}
}

// isGone reports whether a folder of this machine does not exist, and so none of its files: with
// the last of them another data directory removed its pool.
func (p *Provider) isGone(folder string) bool {
	if !p.location.Here {
		return false
	}
	_, err := os.Stat(folder)
	return errors.Is(err, fs.ErrNotExist)
}

// look finds and reads the file at a path; a nil volume: it does not exist.
func (j *job) look(ctx context.Context, file string) (poolFile, *volume, error) {
	if file == "" {
		return poolFile{}, nil, nil
	}
	f, err := j.locate(ctx, j.connection, file)
	if errors.Is(err, errAbsent) {
		return f, nil, nil
	}
	if err != nil {
		return f, nil, err
	}
	v, err := f.see(ctx, j.connection)
	return f, v, err
}

// isThere reports whether the file at a path exists.
func (j *job) isThere(ctx context.Context, file string) (bool, error) {
	_, v, err := j.look(ctx, file)
	if err != nil {
		return false, fail(err, "look for %s", file)
	}
	return v != nil, nil
}

// pools returns the active pools that may hold files of the step's object: those of the
// provider's block, and those of its present files. It starts vmctl's own pool.
func (j *job) pools(ctx context.Context) ([]pool, error) {
	all, asleep, err := j.activePools(ctx, j.connection)
	if err != nil {
		return nil, fail(err, "find the pools of %s", j.Name)
	}
	name, _ := j.ownPool()
	if found, err := j.Pool(ctx, name); asleep != nil && err == nil && !found.Active && !j.emptied(found) {
		return nil, fail(asleep, "find the pools of %s", j.Name)
	}
	own, folders := j.candidatePools(), []string{}
	if j.seen != nil {
		d := j.seen.configured
		for _, file := range append([]string{d.Kernel, d.Initrd, d.ConsoleLog}, j.seen.mark().ownFiles()...) {
			folders = append(folders, path.Dir(file))
		}
	}
	return slices.DeleteFunc(all, func(p pool) bool { return !slices.Contains(own, p.Name) && !slices.Contains(folders, p.Path) }), nil
}

// isLogging reports whether a file is a part of the console log of the domain, which runs.
func (j *job) isLogging(name string) bool {
	return j.seen != nil && j.seen.running != nil && kindConsole.has(name, string(j.Object))
}

// removeOwn deletes the files of the step's object in a pool. It keeps the paths that keep
// lists, disks of the spec, and the console log of a domain that runs.
func (j *job) removeOwn(ctx context.Context, in pool, keep []string) (removed []string, err error) {
	all, err := j.volumes(ctx, in)
	if err != nil {
		return nil, err
	}
	for _, name := range all {
		f := in.file(name)
		if !isVolumeOf(name, j.Object) && !j.had(f) || slices.Contains(keep, f.path()) || j.isLogging(name) || slices.Contains(all, sidecarOf(name)) {
			continue
		}
		if _, err := f.remove(ctx, j.connection); err != nil {
			return removed, err
		}
		removed = append(removed, name)
	}
	return removed, nil
}

// volumes lists the volumes of a pool, sorted. A pool that is gone has none.
func (j *job) volumes(ctx context.Context, in pool) ([]string, error) {
	all, err := j.Volumes(ctx, in.Name)
	if errors.Is(err, errAbsent) {
		err = nil
	}
	slices.Sort(all)
	return all, err
}

// had reports whether the mark of the observed domain names a file: an older vmctl named files
// by the domain's name.
func (j *job) had(f poolFile) bool {
	if j.seen == nil || j.seen.owner() == nil || j.foreign() {
		return false
	}
	o, name := j.seen.mark(), j.seen.Name
	return slices.Contains(append([]string{o.Boot.Kernel, o.Boot.Initrd}, o.ownFiles()...), f.path()) ||
		path.Base(j.seen.configured.ConsoleLog) == kindConsole.name(name, "") && kindConsole.has(f.name, name)
}
