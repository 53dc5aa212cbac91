package libvirt

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"vmctl/providers"
)

// The name and the folder of the pool that vmctl makes on a system connection without a pool
// default.
const (
	systemPool     = "vmctl"
	systemPoolPath = "/var/lib/libvirt/vmctl"
	defaultPool    = "default"
)

// ownPool returns the name and the folder of the pool that vmctl makes here.
func (p *Provider) ownPool() (name, folder string) {
	if p.location.System {
		return systemPool, systemPoolPath
	}
	return "vmctl-" + p.settings.Project.Name + "-" + p.settings.Project.Lineage(), filepath.Join(p.settings.Dir, "pool")
}

// usablePool returns the active pool for this provider's files. It makes vmctl's own pool if
// that is needed; it never starts or changes another pool.
func (p *Provider) usablePool(ctx context.Context, c connection) (pool, error) {
	if p.pool != "" {
		return p.theirPool(ctx, c, p.pool)
	}
	if p.location.System {
		if d, err := p.theirPool(ctx, c, defaultPool); err == nil {
			return d, nil
		}
	}
	name, folder := p.ownPool()
	mode := sessionPoolMode
	if p.location.System {
		mode = systemPoolMode
	}
	found, err := c.Pool(ctx, name)
	if errors.Is(err, errAbsent) {
		// Another vmctl may have made it in between: reading decides.
		made := c.DefinePool(ctx, poolXML(name, folder, mode))
		if found, err = c.Pool(ctx, name); err != nil {
			return pool{}, errors.Join(made, err)
		}
	}
	if err != nil {
		return pool{}, err
	}
	if found.Active {
		return found, nil
	}
	started := c.StartPool(ctx, name)
	if found, err = c.Pool(ctx, name); err == nil && found.Active {
		return found, nil
	}
	return pool{}, errors.Join(started, err)
}

// theirPool returns a pool of the user's. It fails if the pool cannot be used.
func (p *Provider) theirPool(ctx context.Context, c connection, name string) (pool, error) {
	found, err := c.Pool(ctx, name)
	var f *providers.Problem
	switch {
	case errors.Is(err, errAbsent):
		f = fail(err, "find pool %q", name)
		f.Code, f.Next = "no_pool", providers.Say("see what there is: virsh -c "+p.location.URI+" pool-list --all")
	case err != nil:
		return pool{}, err
	case !slices.Contains([]string{"dir", "fs", "netfs"}, found.Type):
		f = fail(fmt.Errorf("it is of type %q, and vmctl needs one of files: dir, fs or netfs", found.Type), "use pool %q", name)
		f.Code, f.Next = "no_pool", providers.Say("leave pool out of the provider's block: vmctl makes one")
	case !found.Active:
		f = fail(errors.New("it is not active"), "use pool %q", name)
		f.Code, f.Next = "no_pool", providers.Say("start it: virsh -c "+p.location.URI+" pool-start "+name)
	default:
		return found, nil
	}
	return pool{}, f
}

// ours reports whether vmctl made a pool.
func (p *Provider) ours(found pool) bool {
	name, folder := p.ownPool()
	if p.location.System {
		return found.Name == name && found.Path == folder
	}
	return found.Name == name
}

type poolTarget struct {
	Path string `xml:"path"`
	Mode string `xml:"permissions>mode"`
}

// QEMU's user must be able to pass through the folder of a system pool; only the user may
// enter the folder of a user's pool.
const (
	systemPoolMode  = "0711"
	sessionPoolMode = "0700"
)

// poolXML describes a pool of files.
func poolXML(name, folder, mode string) string {
	return mustXML(struct {
		XMLName xml.Name   `xml:"pool"`
		Type    string     `xml:"type,attr"`
		Name    string     `xml:"name"`
		Target  poolTarget `xml:"target"`
	}{Type: "dir", Name: name, Target: poolTarget{Path: folder, Mode: mode}})
}

// volumeXML describes a volume of raw bytes that only its owner can read: it may contain a
// host key.
func volumeXML(u upload) string {
	return volume{Name: u.Name, Format: formatRaw, Capacity: u.Size}.document()
}

func mustXML(v any) string {
	b, err := xml.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func parsePool(text string) (pool, error) {
	var x struct {
		Type      string    `xml:"type,attr"`
		Name      string    `xml:"name"`
		Available memoryXML `xml:"available"`
		Path      string    `xml:"target>path"`
	}
	if err := xml.Unmarshal([]byte(text), &x); err != nil {
		return pool{}, fmt.Errorf("read the pool's description: %w", err)
	}
	return pool{Name: x.Name, Type: x.Type, Path: x.Path, Available: x.Available.bytes()}, nil
}

// The parts of volume names. Volumes of one object are named by its ID and their content: a
// domain may be renamed.
const (
	kernelPart  = ".kernel-"
	initrdPart  = ".initrd-"
	consolePart = ".console.log"
	digestChars = 12
)

func kernelVolume(id providers.ID, sha256 string) string {
	return string(id) + kernelPart + sha256[:digestChars]
}

func initrdVolume(id providers.ID, sha256 string) string {
	return string(id) + initrdPart + sha256[:digestChars]
}

func consoleVolume(id providers.ID) string { return string(id) + consolePart }

// isVolumeOf reports whether a volume has the name of a volume of the object.
func isVolumeOf(volume string, id providers.ID) bool {
	rest, ok := strings.CutPrefix(volume, string(id))
	if !ok {
		return false
	}
	if isLog(rest, consolePart) {
		return true
	}
	if rest == rootPart || isSeedPart(rest) {
		return true
	}
	for _, part := range []string{kernelPart, initrdPart} {
		if digest, ok := strings.CutPrefix(rest, part); ok {
			return len(digest) == digestChars && strings.Trim(digest, "0123456789abcdef") == ""
		}
	}
	return false
}

// isLog reports whether a file is a log of that name, or an older part that virtlogd has
// renamed: name.0, name.1.
func isLog(file, name string) bool {
	backup, ok := strings.CutPrefix(file, name)
	return ok && (backup == "" || backup[0] == '.' && strings.Trim(backup[1:], "0123456789") == "")
}

// hadVolume reports whether the mark of the observed domain names a volume: an older vmctl
// named volumes by the domain's name.
func (j *job) hadVolume(volume, file string) bool {
	if j.seen == nil || j.seen.owner() == nil || j.foreign() {
		return false
	}
	o, log := j.seen.owner(), j.seen.Name+consolePart
	return slices.Contains(append([]string{o.Boot.Kernel, o.Boot.Initrd}, o.ownFiles()...), file) ||
		path.Base(j.seen.configured.ConsoleLog) == log && isLog(volume, log)
}

// volumesOf returns a pool with the names of its volumes. A missing or inactive pool has
// none.
func (j *job) volumesOf(ctx context.Context, poolName string) (pool, []string, error) {
	found, err := j.Pool(ctx, poolName)
	if err == nil && found.Active {
		var all []string
		if all, err = j.Volumes(ctx, poolName); err == nil {
			return found, all, nil
		}
	}
	if errors.Is(err, errAbsent) {
		err = nil
	}
	return found, nil, err
}

// removeVolumes deletes the volumes of the step's object in a pool. It keeps the paths that
// keep lists, and disks of the spec. A missing pool has none.
func (j *job) removeVolumes(ctx context.Context, poolName string, keep []string) ([]string, error) {
	found, all, err := j.volumesOf(ctx, poolName)
	if err != nil {
		return nil, err
	}
	slices.Sort(all)
	var removed []string
	for _, v := range all {
		file := pathIn(found, v)
		if !isVolumeOf(v, j.Object) && !j.hadVolume(v, file) || slices.Contains(keep, file) || slices.Contains(all, sidecarOf(v)) {
			continue
		}
		if err := j.DeleteVolume(ctx, poolName, v); err != nil && !errors.Is(err, errAbsent) {
			return removed, fmt.Errorf("delete volume %s of pool %s: %w", v, poolName, err)
		}
		removed = append(removed, v)
	}
	return removed, nil
}

// removeEmptyPool removes a pool of vmctl's own if it is empty.
func (j *job) removeEmptyPool(ctx context.Context, name string) (bool, error) {
	found, err := j.Pool(ctx, name)
	if errors.Is(err, errAbsent) || err == nil && (!found.Active || !j.ours(found)) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	left, err := j.Volumes(ctx, name)
	if errors.Is(err, errAbsent) {
		return true, nil
	}
	if err != nil || len(left) > 0 {
		return false, err
	}
	if err := j.RemovePool(ctx, name); err != nil && !errors.Is(err, errAbsent) {
		return false, fmt.Errorf("remove the empty pool %s: %w", name, err)
	}
	return true, nil
}

// pathIn returns the path of a volume of a pool of files.
func pathIn(found pool, volume string) string { return path.Join(found.Path, volume) }
