package libvirt

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"vmctl/providers/guard"
)

// PutVolume adds a volume that holds a disk, behind vmctl's back.
func (f *Fake) PutVolume(pool string, v FakeVolume) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pools[pool]
	p.Volumes[v.Name], p.Disks[v.Name] = []byte{}, v
}

// PutFile adds a volume of bytes, or changes one.
func (f *Fake) PutFile(pool, name string, content []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pools[pool].Volumes[name] = content
}

// DropVolume removes a volume behind vmctl's back.
func (f *Fake) DropVolume(pool, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pools[pool].Volumes, name)
	delete(f.pools[pool].Disks, name)
}

// StopPool makes a pool inactive, as a reboot does.
func (f *Fake) StopPool(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pools[name].Active = false
}

// DropPool removes a pool with all that is in it.
func (f *Fake) DropPool(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pools, name)
}

func (f *Fake) Pools(context.Context) ([]pool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Asked["pools"]++
	if err := f.Refuses["pools"]; err != nil {
		return nil, err
	}
	var all []pool
	for _, name := range slices.Sorted(maps.Keys(f.pools)) {
		p := f.pools[name]
		all = append(all, pool{Name: name, Type: p.Type, Path: p.Path, Active: p.Active || name == f.Leaving, Available: f.Free})
	}
	return all, nil
}

func (f *Fake) volume(poolName, name string) (*FakePool, volume, error) {
	p, err := f.pool(poolName)
	if err != nil {
		return nil, volume{}, err
	}
	if !p.Active {
		return nil, volume{}, notActive(poolName)
	}
	content, ok := p.Volumes[name]
	if !ok {
		return nil, volume{}, fmt.Errorf("%w: no storage vol with matching name '%s'", errAbsent, name)
	}
	if v, ok := p.Disks[name]; ok {
		v.Path = path.Join(p.Path, name)
		return p, v, nil
	}
	return p, volume{
		Name: name, Path: path.Join(p.Path, name), Format: formatRaw, Capacity: uint64(len(content)), Allocation: uint64(len(content)),
		Modified: guard.Short(string(content)),
	}, nil
}

func (f *Fake) Has(_ context.Context, poolName, name string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Asked["has"]++
	p, err := f.pool(poolName)
	if err != nil {
		return false, err
	}
	_, ok := p.Volumes[name]
	return ok, nil
}

func (f *Fake) VolumeInfo(_ context.Context, poolName, name string) (volume, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Asked["volume"]++
	if err := f.Unreadable[name]; err != nil {
		return volume{}, err
	}
	_, v, err := f.volume(poolName, name)
	if f.Ticking {
		v.Modified = fmt.Sprint(f.Asked["volume"])
	}
	return v, err
}

func (f *Fake) MakeVolume(_ context.Context, poolName string, v volume) error {
	if f.BeforeStore != nil {
		f.BeforeStore(v.Name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.pool(poolName)
	if err != nil {
		return err
	}
	if _, ok := p.Volumes[v.Name]; ok {
		return ErrLibvirt("storage volume name '" + v.Name + "' already in use.")
	}
	if err := f.note("make-volume %s of %d bytes", v.Name, v.Capacity); err != nil {
		return err
	}
	text, err := v.document()
	if err != nil {
		return err
	}
	read, err := parseVolume(text)
	if err != nil {
		return err
	}
	p.Volumes[v.Name], p.Disks[v.Name] = []byte{}, read
	return nil
}

func (f *Fake) ResizeVolume(_ context.Context, poolName, name string, size uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, v, err := f.volume(poolName, name)
	if err != nil {
		return err
	}
	if err := f.note("resize-volume %s to %d bytes", name, size); err != nil {
		return err
	}
	if by := f.usedBy(v.Path); by != "" {
		return ErrLibvirt("internal error: Child process (/usr/bin/qemu-img resize) unexpected exit status 1: qemu-img: Could not open '" +
			v.Path + "': Failed to get \"write\" lock\nIs another process using the image [" + v.Path + "]?")
	}
	v.Capacity = size
	p.Disks[name] = v
	return nil
}

// usedBy names the domain that runs with a file.
func (f *Fake) usedBy(file string) string {
	for _, d := range f.domains {
		if d.Power.on() && strings.Contains(d.Running, "file=\""+file+"\"") {
			return d.Name
		}
	}
	return ""
}

func (f *Fake) Head(_ context.Context, poolName, name string, limit uint64) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Asked["head"]++
	if err := f.Unreadable[name]; err != nil {
		return nil, err
	}
	p, _, err := f.volume(poolName, name)
	if err != nil {
		return nil, err
	}
	b := p.Volumes[name]
	return slices.Clone(b[:min(uint64(len(b)), limit)]), nil
}

func (f *Fake) Overwrite(_ context.Context, poolName, name string, content []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, v, err := f.volume(poolName, name)
	if err != nil {
		return err
	}
	if err := f.note("overwrite %s", name); err != nil {
		return err
	}
	if uint64(len(content)) > v.Capacity {
		return ErrLibvirt("the volume is too small")
	}
	p.Volumes[name] = append(slices.Clone(content), p.Volumes[name][len(content):]...)
	return nil
}

func (f *Fake) AttachDisk(_ context.Context, uuid, text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.domain(uuid)
	if err != nil {
		return err
	}
	var disk libvirtxml.DomainDisk
	if err := disk.Unmarshal(text); err != nil {
		return err
	}
	if err := f.note("attach %s to %s", path.Base(driveOf(disk).Path), d.Name); err != nil {
		return err
	}
	if !d.Power.on() {
		return &libvirtError{Code: codeOperationInvalid, Message: "Requested operation is not valid: domain is not running"}
	}
	if d.Transient {
		return &libvirtError{Code: codeOperationInvalid, Message: "Requested operation is not valid: transient domains do not have any persistent config"}
	}
	if by := f.usedBy(driveOf(disk).Path); by != "" {
		return ErrLibvirt("internal error: unable to execute QEMU command 'blockdev-add': Failed to get \"write\" lock")
	}
	for _, at := range []*string{&d.Configured, &d.Running} {
		var x libvirtxml.Domain
		if err := x.Unmarshal(*at); err != nil {
			return err
		}
		x.Devices.Disks = append(x.Devices.Disks, disk)
		if *at, err = x.Marshal(); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fake) ChangeMedia(_ context.Context, uuid, text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.domain(uuid)
	if err != nil {
		return err
	}
	var disk libvirtxml.DomainDisk
	if err := disk.Unmarshal(text); err != nil {
		return err
	}
	file := driveOf(disk).Path
	if err := f.note("insert %s into %s", path.Base(file), d.Name); err != nil {
		return err
	}
	if !d.Power.on() {
		return &libvirtError{Code: codeOperationInvalid, Message: "Requested operation is not valid: domain is not running"}
	}
	var x libvirtxml.Domain
	if err := x.Unmarshal(d.Running); err != nil {
		return err
	}
	for i, have := range x.Devices.Disks {
		if have.Target.Dev == disk.Target.Dev {
			x.Devices.Disks[i].Source = disk.Source
			d.Running, err = x.Marshal()
			return err
		}
	}
	return ErrLibvirt("invalid argument: no drive " + disk.Target.Dev)
}

func (f *Fake) ResizeDisk(_ context.Context, uuid, file string, size uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.domain(uuid)
	if err != nil {
		return err
	}
	if err := f.note("resize-disk %s of %s to %d bytes", path.Base(file), d.Name, size); err != nil {
		return err
	}
	if !d.Power.on() || !strings.Contains(d.Running, file) {
		return ErrLibvirt("invalid argument: invalid path: " + file)
	}
	for _, p := range f.pools {
		if v, ok := p.Disks[path.Base(file)]; ok && p.Path == path.Dir(file) {
			v.Capacity = size
			p.Disks[path.Base(file)] = v
		}
	}
	return nil
}

// Ramdisk returns the initial RAM disk with which a domain boots. It takes no lock, so that
// Booting can call it.
func (f *Fake) Ramdisk(uuid string) []byte {
	d, err := f.domain(uuid)
	if err != nil {
		return nil
	}
	desc, err := describe(d.Configured)
	if err != nil {
		return nil
	}
	for _, p := range f.pools {
		if p.Path == path.Dir(desc.Initrd) {
			return p.Volumes[path.Base(desc.Initrd)]
		}
	}
	return nil
}
