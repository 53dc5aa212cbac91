package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

// isDefined reports whether the definition of the domain is as wanted.
func (j *job) isDefined(ctx context.Context) (bool, error) {
	if err := j.plug(ctx); err != nil {
		return false, err
	}
	if err := j.place(ctx); err != nil {
		return false, err
	}
	return j.isWanted(ctx)
}

// define makes a domain with its files. It completes a domain that an interrupted attempt
// left half made.
func (j *job) define(ctx context.Context) (*guard.Outcome, error) {
	var evidence []string
	if j.seen == nil {
		if err := j.nameIsFree(ctx, j.Name, j.Object); err != nil {
			return nil, err
		}
		var err error
		if evidence, err = j.clearRemains(ctx); err != nil {
			return nil, err
		}
	}
	hadKeys := exists(j.keyFolder(string(j.Object)))
	if err := j.write(ctx); err != nil {
		f, undone := j.undo(ctx, err)
		if undone && !hadKeys {
			f.Seen = append(f.Seen, staysBehind(j.forgetKeys(ctx, string(j.Object), j.Name))...)
		}
		return nil, f
	}
	return guard.Did(providers.Done, evidence...), nil
}

// nameIsFree fails if another domain than the one with that ID has the name.
func (j *job) nameIsFree(ctx context.Context, name string, id providers.ID) error {
	other, err := j.DomainNamed(ctx, name)
	if errors.Is(err, errAbsent) || err == nil && other.UUID == string(id) {
		return nil
	}
	if err != nil {
		return fail(err, "look for a domain of the name %s", name)
	}
	if s, err := observeDomain(ctx, j.connection, other); err == nil && s.oursFor(j.settings.Project, j.Address) {
		return machine.MadeElsewhere(j.Work, "domain", name, providers.ID(other.UUID))
	}
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "name_taken",
		Next: providers.Say(
			"look at it: virsh -c "+j.location.URI+" dumpxml "+name,
			fmt.Sprintf("set another name in the block of %s", j.Address),
		),
		Err: fmt.Errorf("%s %s: a domain of the name %s exists already (%s), and it is not vmctl's", j.Op, j.Address, name, other.UUID),
	}
}

// successorFits fails if the domain's replacement could not get its name: nothing is taken
// down or removed for it then.
func (j *job) successorFits(ctx context.Context) error {
	if next := machine.ArgsOf(j.Step); next.NextName != "" {
		return j.nameIsFree(ctx, next.NextName, next.NextID)
	}
	return nil
}

// redefine changes the configuration for the next start, in one call: the domain is at no
// time undefined.
func (j *job) redefine(ctx context.Context) (*guard.Outcome, error) {
	if j.seen != nil && j.seen.Saved {
		return nil, &providers.Problem{
			Outcome: providers.Unsafe, Code: "saved_memory", Next: j.beforeRedefine(j.Name),
			Err: fmt.Errorf("change %s: %s", j.Address, savedMemory),
		}
	}
	if err := j.jobless(); err != nil {
		return nil, err
	}
	if err := j.unlayered(); err != nil {
		return nil, err
	}
	evidence, err := j.attach(ctx)
	if err != nil {
		return nil, err
	}
	if err := j.write(ctx); err != nil {
		return nil, err
	}
	return guard.Did(providers.Done, evidence...), nil
}

// unmark removes the owner mark from the domain, and changes nothing else.
func (j *job) unmark(ctx context.Context) (*guard.Outcome, error) {
	if err := j.Unmark(ctx, j.seen.UUID); err != nil {
		return nil, fail(err, "take the mark off %s", j.Name)
	}
	return guard.Did(providers.Done), nil
}

// isWanted reports whether the domain and its files are just as the step would make them.
func (j *job) isWanted(ctx context.Context) (bool, error) {
	if j.seen == nil || j.seen.Transient || j.seen.owner() == nil || !j.hasDisks(j.seen.configured) || !j.isPlaced(j.seen.configured) {
		return false, nil
	}
	d, mark, b := j.seen.configured, j.seen.mark(), j.want.Boot
	switch {
	case j.seen.running != nil && slices.ContainsFunc(j.plugged.disks, func(p pluggedDisk) bool { return !j.runsWith(p.Path) }):
		return false, nil
	case b == nil:
		b = &machine.Boot{}
	}
	switch {
	case mark.Generation != j.Generation || mark.Address != j.Address,
		!mark.Imported && (d.SSH == nil || d.ConsoleLog == "" || d.Data != j.settings.Dir),
		d.accel() != j.want.Accel || d.cpus() != j.want.CPUs || d.memory() != j.want.Memory,
		d.Kernel != mark.Boot.Kernel || d.Initrd != mark.Boot.Initrd || d.Cmdline != b.Cmdline,
		mark.Boot.KernelSHA256 != b.KernelSHA256 || mark.Boot.InitrdSHA256 != b.InitrdSHA256,
		!slices.Equal(d.wantedForwards(), j.want.Forwards):
		return false, nil
	}
	if j.want.Image != nil {
		return j.hasImage(ctx)
	}
	if mark.Imported || j.want.Boot == nil {
		return true, nil
	}
	if !j.keysAreWanted() {
		return false, nil
	}
	if is, err := j.isUploaded(ctx, d.Kernel); !is || err != nil {
		return false, err
	}
	return j.isUploaded(ctx, d.Initrd)
}

// isUploaded reports whether a boot file of the domain exists, and nobody wrote to it since
// its upload.
func (j *job) isUploaded(ctx context.Context, file string) (bool, error) {
	_, now, err := j.look(ctx, file)
	if err != nil {
		return false, fail(err, "look for %s", file)
	}
	return now != nil && j.seen.mark().isAsUploaded(file, *now), nil
}

// isAsUploaded reports whether a boot file of the domain is as it was uploaded. It returns
// true for a file of an older vmctl, of which nothing is known.
func (o owner) isAsUploaded(file string, now volume) bool {
	stamp := o.stampOf(file)
	return stamp == "" || stamp == now.stamp()
}

// stampOf returns the stamp of a boot file right after its upload; "": unknown.
func (o owner) stampOf(file string) string {
	switch file {
	case o.Boot.Initrd:
		return o.Boot.InitrdStamp
	case o.Boot.Kernel:
		return o.Boot.KernelStamp
	default:
		return ""
	}
}

// write uploads the files, defines the domain and removes files that it no longer uses.
func (j *job) write(ctx context.Context) error {
	if j.foreign() {
		return j.writeForeign(ctx)
	}
	if j.want.Boot == nil && j.want.Image == nil && len(j.want.Disks) == 0 {
		return fmt.Errorf("%s has nothing to boot", j.Address)
	}
	if err := j.socketsFit(); err != nil {
		return err
	}
	able, err := j.abilities(ctx)
	if err != nil {
		return err
	}
	files, err := j.files(ctx)
	if err != nil {
		return err
	}
	b, err := j.blueprint(able, files)
	if err != nil {
		return err
	}
	if err := j.reserve(ctx); err != nil {
		return err
	}
	if err := j.defineFrom(ctx, b); err != nil {
		return err
	}
	if err := j.release(ctx, b.Networks); err != nil {
		return err
	}
	keep := []string{files.boot.Kernel, files.boot.Initrd, b.ConsoleLog, files.image.Root, files.image.Seed}
	if j.seen != nil { // its log stays, and the files that it runs with stay until it stops
		keep = append(keep, j.seen.configured.ConsoleLog, j.seen.mark().Image.Root)
		if j.seen.running != nil {
			keep = append(keep, j.seen.running.Kernel, j.seen.running.Initrd)
			for _, d := range j.seen.running.Drives {
				keep = append(keep, d.Path)
			}
		}
	}
	pools, err := j.pools(ctx)
	if err != nil {
		return err
	}
	for _, in := range pools {
		if _, err := j.removeOwn(ctx, in, keep); err != nil {
			return fail(err, "tidy up after the earlier files of %s", j.Name)
		}
	}
	return nil
}

func (j *job) defineFrom(ctx context.Context, b blueprint) error {
	if j.seen != nil {
		return j.edit(ctx, "define "+j.Name, b.onto)
	}
	text, err := b.fresh()
	if err != nil {
		return fail(err, "describe %s to libvirt", j.Name)
	}
	if err := j.Define(ctx, text); err != nil {
		if taken := j.nameIsFree(ctx, j.Name, j.Object); taken != nil { // another process was faster: libvirt gives a name once
			return taken
		}
		return fail(err, "define %s", j.Name)
	}
	return nil
}
