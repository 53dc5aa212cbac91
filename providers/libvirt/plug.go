package libvirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

// plugged holds the wanted additional disks of a vm.
type plugged struct {
	disks []pluggedDisk
	listing
}

type pluggedDisk struct {
	markedDisk
	format string
}

// plug finds the volumes of the additional disks.
func (j *job) plug(ctx context.Context) error {
	j.plugged = plugged{}
	if len(j.want.Disks) == 0 && (j.seen == nil || len(j.seen.drives()) == 0) {
		return nil
	}
	all, partial := j.filePools(ctx, j.connection)
	j.plugged.listing = all
	for _, a := range j.want.Disks {
		used, ok := j.Uses[a]
		disk, _, err := all.find(ctx, j.connection, used.ID)
		switch {
		case !ok:
			err = errors.New("the plan does not say which it is")
		case disk == nil && err == nil:
			err = cmp.Or(partial, errAbsent)
		}
		if err != nil {
			return &providers.Problem{
				Outcome: providers.Failed, Code: "no_disk", Next: providers.Vmctl("plan"),
				Err: fmt.Errorf("%s %s: find its %s: %w", j.Op, j.Address, a, err),
			}
		}
		j.plugged.disks = append(j.plugged.disks, pluggedDisk{markedDisk{Address: a, Path: disk.Path}, disk.Format})
	}
	return nil
}

// parts returns the wanted disks of the domain, in order. If nothing else can be booted, the
// domain boots from the first.
func (j *job) parts() []part {
	var all []part
	for i, d := range j.plugged.disks {
		all = append(all, d.part())
		all[i].BootFrom = i == 0 && j.want.Boot == nil && j.want.Image == nil
	}
	return all
}

func (d pluggedDisk) part() part {
	name := d.Address.Name
	if d.Address.Key != "" {
		name += "-" + d.Address.Key
	}
	return part{Path: d.Path, Format: d.format, Serial: serialOf(name)}
}

func (j *job) markedDisks() []markedDisk {
	var all []markedDisk
	for _, d := range j.plugged.disks {
		all = append(all, d.markedDisk)
	}
	return all
}

// hasDisks reports whether a domain has just its wanted additional disks, by its mark and by
// its XML.
func (j *job) hasDisks(d description) bool {
	if !slices.Equal(d.Owner.Disks, j.markedDisks()) {
		return false
	}
	o := d.mark()
	var there []string
	for _, x := range d.disks(j.plugged.files) {
		if !j.plugged.keeps(o, x) {
			there = append(there, j.plugged.base(o, x))
		}
	}
	return len(there) == len(j.plugged.disks) && j.areParts(there)
}

// areParts reports whether all additional disks are among some files.
func (j *job) areParts(there []string) bool {
	return !slices.ContainsFunc(j.plugged.disks, func(d pluggedDisk) bool { return j.plugged.files.among(d.Path, there) == "" })
}

// attach gives a running domain the disks that it lacks, now and for its next start, and
// checks the result.
func (j *job) attach(ctx context.Context) ([]string, error) {
	if j.seen == nil || j.seen.running == nil {
		return nil, nil
	}
	var evidence []string
	for _, d := range j.plugged.disks {
		if j.runsWith(d.Path) {
			continue
		}
		if err := j.persist(ctx); err != nil {
			return nil, err
		}
		text, err := j.xml(ctx, asRunning)
		if err != nil {
			return nil, err
		}
		device, err := d.part().deviceXML(text)
		if err != nil {
			return nil, fail(err, "describe %s to libvirt", d.Address)
		}
		if err := j.AttachDisk(ctx, j.seen.UUID, device); err != nil {
			return nil, j.notAttached(err, d)
		}
		if err := j.observe(ctx); err != nil {
			return nil, err
		}
		if j.seen == nil || !j.runsWith(d.Path) {
			return nil, fail(errors.New("the domain does not have it"), "attach %s to %s", d.Address, j.Name)
		}
		evidence = append(evidence, fmt.Sprintf("attached %s while it runs: its guest sees a disk of serial %s", d.Address, d.part().Serial))
	}
	return evidence, nil
}

// persist gives a running domain without a configuration one: libvirt needs it to change the
// domain for its next start.
func (j *job) persist(ctx context.Context) error {
	if !j.seen.Transient {
		return nil
	}
	text, err := j.xml(ctx, toDefine)
	if err != nil {
		return err
	}
	if err := j.Define(ctx, text); err != nil {
		return fail(err, "define %s, which runs and has no configuration", j.Name)
	}
	return j.observe(ctx)
}

func (j *job) runsWith(path string) bool {
	return j.seen.running != nil && slices.ContainsFunc(j.seen.running.Drives, func(d drive) bool { return j.plugged.files.same(j.plugged.base(j.seen.mark(), d), path) })
}

// noRoom reports whether a domain has no place left for a disk.
func noRoom(message string) bool {
	return strings.Contains(message, "No more available PCI slots") || strings.Contains(message, "does not support hotplugging")
}

func (j *job) notAttached(err error, d pluggedDisk) error {
	f := fail(err, "attach %s to %s", d.Address, j.Name)
	if noRoom(err.Error()) {
		f.Code, f.Next = "no_slot", slices.Concat(
			providers.SayVmctl("it has no place left for a disk until it starts again: ", "vm", "stop", j.Address.String()),
			providers.SayVmctl("then: ", "apply"),
		)
	}
	return j.locked(f, d.Path)
}

// detach removes the disks, ports and networks that the step frees from the configuration. A running
// domain keeps them until it is off.
func (j *job) detach(ctx context.Context) (*guard.Outcome, error) {
	if j.seen == nil {
		return guard.Did(providers.AlreadyTrue, "the domain was transient and ended with its stop: nothing to detach"), nil
	}
	if err := j.unlayered(); err != nil {
		return nil, err
	}
	if j.seen.Saved {
		return nil, &providers.Problem{
			Outcome: providers.Unsafe, Code: "saved_memory", Next: j.beforeRedefine(j.Name),
			Err: fmt.Errorf("change %s: %s", j.Address, savedMemory),
		}
	}
	unplug, err := j.unplug(ctx)
	if err != nil {
		return nil, err
	}
	if err := j.edit(ctx, "detach from "+j.Name, func(d *libvirtxml.Domain) error { unplug(d); return nil }); err != nil {
		return nil, err
	}
	left, err := j.leaving(ctx)
	if err != nil {
		return nil, err
	}
	if err := j.release(ctx, slices.DeleteFunc(slices.Clone(j.seen.mark().Networks), func(n markedNetwork) bool { return slices.Contains(left, n.Name) })); err != nil {
		return nil, err
	}
	return guard.Did(providers.Done), nil
}

// hasNone reports whether the next start of the domain has nothing of what the step frees.
func (j *job) hasNone(ctx context.Context) (*guard.Outcome, error) {
	if j.seen == nil {
		return nil, nil
	}
	unplug, err := j.unplug(ctx)
	if err != nil {
		return nil, err
	}
	text, err := j.xml(ctx, toDefine)
	if err != nil {
		return nil, err
	}
	d, err := parseDomain(text)
	if err != nil {
		return nil, fail(err, "read %s", j.Name)
	}
	if unplug(d) {
		return nil, nil
	}
	return guard.Did(providers.AlreadyTrue, "its next start has none of them"), nil
}

// unplug returns a function that removes from a domain what the step frees, and reports
// whether there was any.
func (j *job) unplug(ctx context.Context) (func(*libvirtxml.Domain) bool, error) {
	going, err := j.going(ctx)
	if err != nil {
		return nil, err
	}
	left, err := j.leaving(ctx)
	if err != nil {
		return nil, err
	}
	b := blueprint{Volumes: j.plugged.listing}
	return func(d *libvirtxml.Domain) bool {
		had := unplugCards(d, j.seen.mark().Networks, left)
		return b.unplug(d, going, func(f machine.Forward) bool { return f.Fixed() && slices.Contains(j.Frees, f.Claim()) }) || had
	}, nil
}

// going returns the files of the disks that the step detaches. A disk that is gone has none.
func (j *job) going(ctx context.Context) ([]string, error) {
	all, err := j.filePools(ctx, j.connection)
	if err != nil {
		return nil, fail(err, "look for the disks of %s", j.Name)
	}
	j.plugged.listing = all
	var paths []string
	for _, claim := range j.Frees {
		if claim.Kind != providers.ClaimDisk {
			continue
		}
		id := providers.ID(claim.Key)
		for _, at := range all.places(id) {
			paths = append(paths, at.path())
		}
		if isPath(id) {
			paths = append(paths, claim.Key)
		}
	}
	return paths, nil
}
