package sim

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"vmctl/providers"
)

// index maps the disks and host ports of a host to the VMs that use them, so that a step does not read the files of all
// VMs. The files are the truth, and anybody may change them at any time: before each answer the index reads every file that
// has changed since the last answer. Where the system does not report each change, and on a small host, it reads all files.
type index struct {
	mu      sync.Mutex
	changes *folderWatch // of the folder of VMs; nil: nothing is watched
	vms     map[string]indexed
	onDisk  map[string]set          // the VMs that are defined with a disk, by the disk's name
	onPort  map[providers.Claim]set // the VMs whose run holds a port, by the group of the claim
	broken  set                     // the VMs whose files cannot be read
	hidden  set                     // the VMs whose files may change without a report

	watchedFrom int // set by a test; 0: watchedFrom
}

// set is a set of names of VMs.
type set map[string]bool

// indexed describes one VM in the index.
type indexed struct {
	disks []attached
	run   *runFile
	err   error // of reading its file
}

// watchedFrom is the number of VMs from which an index watches their folder. To stop watching takes some 10 ms, as long as
// to read a hundred files.
const watchedFrom = 100

// lookUp calls read with the index, which agrees with the files.
func (p *Provider) lookUp(read func(*index) error) error {
	p.index.mu.Lock()
	defer p.index.mu.Unlock()
	if err := p.index.refresh(p); err != nil {
		return err
	}
	return read(&p.index)
}

// users returns the VMs, sorted, that are defined with each of the disks. It leaves out the VM but, and VMs that are half
// made. A VM that cannot be read may use any disk: that is an error.
func (p *Provider) users(disks []string, but string) (map[string][]string, error) {
	all := map[string][]string{}
	return all, p.lookUp(func(x *index) error {
		for _, name := range x.broken.sorted() {
			return fmt.Errorf("VM %s may use any disk: %w", name, x.vms[name].err)
		}
		for _, disk := range disks {
			all[disk] = slices.DeleteFunc(x.onDisk[disk].sorted(), func(name string) bool { return name == but })
		}
		return nil
	})
}

// runsOn lists the runs of weightless VMs that hold a host port, without that of the VM but. A run may have ended. It leaves
// out VMs that cannot be read: a plan reports these.
func (x *index) runsOn(port providers.Claim, but string) []*runFile {
	var all []*runFile
	for name := range x.onPort[port.Group()] {
		run := x.vms[name].run
		if name != but && slices.ContainsFunc(run.Ports, func(h heldPort) bool { return h.got().Claim().Overlaps(port) }) {
			all = append(all, run)
		}
	}
	return all
}

// refresh reads the files that have changed.
func (x *index) refresh(p *Provider) error {
	changed, ok := x.changed(p)
	if !ok {
		return x.rebuild(p)
	}
	maps.Copy(changed, x.hidden)
	x.read(p, changed.sorted())
	return nil
}

// changed returns the VMs whose files have changed, as far as reports tell. false: any file may have changed.
func (x *index) changed(p *Provider) (set, bool) {
	if x.changes == nil {
		return nil, false
	}
	files, ok := x.changes.changed(p.path(vmsDir))
	if !ok {
		return nil, false
	}
	vms := set{}
	for _, file := range files {
		if name, is := strings.CutSuffix(file, vmSuffix); is {
			vms[name] = true
		}
	}
	return vms, true
}

// rebuild reads all files. It begins to watch the folder of a large host before that.
func (x *index) rebuild(p *Provider) error {
	if err := x.close(); err != nil {
		return fmt.Errorf("watch the VMs of host %s: %w", p.settings.Name, err)
	}
	x.vms, x.onDisk, x.onPort, x.broken, x.hidden = map[string]indexed{}, map[string]set{}, map[providers.Claim]set{}, set{}, set{}
	names, err := p.named(vmsDir, vmSuffix)
	if err == nil && len(names) >= cmp.Or(x.watchedFrom, watchedFrom) {
		x.changes = watchFolder(p.path(vmsDir))
		names, err = p.named(vmsDir, vmSuffix)
	}
	if err != nil {
		return errors.Join(err, x.close())
	}
	x.read(p, names)
	return nil
}

// read reads the files of VMs into the index.
func (x *index) read(p *Provider, names []string) {
	for _, name := range names {
		x.remove(name)
		if x.changes != nil && !x.changes.reports(p.vmPath(name)) {
			x.hidden[name] = true
		}
	}
	for _, r := range p.readAll(names) {
		x.add(r)
	}
}

// add adds a VM that the index does not have.
func (x *index) add(r reading) {
	vm := indexed{run: r.Run, err: r.err}
	if r.Config != nil {
		vm.disks = r.Config.Disks
	}
	x.vms[r.name] = vm
	if vm.err != nil {
		x.broken[r.name] = true
		x.hidden[r.name] = true // it may be readable again, though nobody changes it
		return
	}
	for _, a := range vm.disks {
		into(x.onDisk, a.Name, r.name)
	}
	for _, port := range vm.ports() {
		into(x.onPort, port.Group(), r.name)
	}
}

// remove removes a VM.
func (x *index) remove(name string) {
	vm := x.vms[name]
	delete(x.vms, name)
	delete(x.broken, name)
	delete(x.hidden, name)
	for _, a := range vm.disks {
		outOf(x.onDisk, a.Name, name)
	}
	for _, port := range vm.ports() {
		outOf(x.onPort, port.Group(), name)
	}
}

// ports returns the claims on the host ports that the run of a weightless VM holds, whether it has ended or not.
func (vm indexed) ports() []providers.Claim {
	if vm.run == nil {
		return nil
	}
	var all []providers.Claim
	for _, h := range vm.run.Ports {
		all = append(all, h.got().Claim())
	}
	return all
}

// close stops watching. The next answer reads all files.
func (x *index) close() error {
	if x.changes == nil {
		return nil
	}
	err := x.changes.close()
	x.changes = nil
	return err
}

func (s set) sorted() []string { return slices.Sorted(maps.Keys(s)) }

// into adds a VM to one of the sets.
func into[K comparable](sets map[K]set, key K, vm string) {
	if sets[key] == nil {
		sets[key] = set{}
	}
	sets[key][vm] = true
}

// outOf removes a VM from one of the sets, and an empty set.
func outOf[K comparable](sets map[K]set, key K, vm string) {
	delete(sets[key], vm)
	if len(sets[key]) == 0 {
		delete(sets, key)
	}
}
