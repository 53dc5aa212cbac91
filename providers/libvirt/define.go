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
	"time"

	"vmctl/providers"
)

// define makes a domain with its files. One that an interrupted attempt left
// half made is completed.
func (j *job) define(ctx context.Context) (providers.Result, error) {
	if err := j.mine(); err != nil {
		return providers.Result{}, err
	}
	if j.seen == nil {
		if err := j.expected(); err != nil {
			return providers.Result{}, err
		}
		if err := j.nameIsFree(ctx, j.Name, j.Object); err != nil {
			return providers.Result{}, err
		}
	}
	if j.isWanted(ctx) {
		return j.result(ctx, providers.AlreadyTrue, "it exists")
	}
	var evidence []string
	if j.seen == nil {
		var err error
		if evidence, err = j.clearRemains(ctx); err != nil {
			return providers.Result{}, err
		}
	}
	_, missing := os.Stat(j.keyFolder(j.Name))
	if err := j.write(ctx); err != nil {
		f, undone := j.undo(ctx, err)
		if undone && errors.Is(missing, fs.ErrNotExist) {
			f.Seen = append(f.Seen, staysBehind(j.forgetKeys(j.Name))...)
		}
		return providers.Result{}, f
	}
	return j.result(ctx, providers.Done, evidence...)
}

// clearRemains removes the files of an earlier domain of the name, which is gone.
// Nothing is made beside what cannot be removed.
func (j *job) clearRemains(ctx context.Context) ([]string, error) {
	j.storage.Lock()
	defer j.storage.Unlock()
	var all []string
	for _, name := range j.candidatePools() {
		removed, err := j.removeVolumes(ctx, name, nil)
		if err != nil {
			f := fail(err, "define %s: remove what an earlier one left", j.Address)
			f.Next = []string{
				"see what is there: virsh -c " + j.place.URI + " vol-list " + name,
				"make the folder of the pool writable, then: vmctl apply",
			}
			return nil, f
		}
		all = append(all, removed...)
	}
	if len(all) == 0 {
		return nil, nil
	}
	return []string{"removed what an earlier one left: " + strings.Join(all, ", ")}, nil
}

// undo removes the files of a failed attempt, as long as there is no domain that
// uses them, and returns the failure.
func (j *job) undo(ctx context.Context, cause error) (f *providers.Failure, undone bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	f = asFailure(cause, "define "+j.Name)
	if _, err := j.Domain(ctx, string(j.Object)); !errors.Is(err, errAbsent) {
		return f, false
	}
	_, err := j.removeFiles(ctx, j.candidatePools())
	f.Seen = append(f.Seen, staysBehind(err)...)
	return f, true
}

func staysBehind(err error) []string {
	if err == nil {
		return nil
	}
	return []string{"what was made so far stays behind: " + err.Error()}
}

// nameIsFree fails if another domain than the one that is to have the name has it.
func (j *job) nameIsFree(ctx context.Context, name string, id providers.ID) error {
	other, err := j.DomainNamed(ctx, name)
	if errors.Is(err, errAbsent) || err == nil && other.UUID == string(id) {
		return nil
	}
	if err != nil {
		return fail(err, "look for a domain of the name %s", name)
	}
	return &providers.Failure{
		Outcome: providers.Unsafe, Code: "name_taken",
		Next: []string{
			"look at it: virsh -c " + j.place.URI + " dumpxml " + name,
			fmt.Sprintf("set another name in the block of %s", j.Address),
		},
		Err: fmt.Errorf("%s %s: a domain of the name %s exists already (%s), and it is not vmctl's", j.Op, j.Address, name, other.UUID),
	}
}

// successorFits fails if what replaces the domain could not get its name: nothing
// is taken down or removed for it then.
func (j *job) successorFits(ctx context.Context) error {
	if name := j.Args[argNextName]; name != "" {
		return j.nameIsFree(ctx, name, providers.ID(j.Args[argNextID]))
	}
	return nil
}

// redefine changes what the next start will use, in one call: the domain is at
// no time undefined.
func (j *job) redefine(ctx context.Context) (providers.Result, error) {
	if err := j.mine(); err != nil {
		return providers.Result{}, err
	}
	if j.isWanted(ctx) {
		return j.result(ctx, providers.AlreadyTrue, "it is as wanted")
	}
	if err := j.expected(); err != nil {
		return providers.Result{}, err
	}
	if j.seen != nil && j.seen.Saved {
		return providers.Result{}, &providers.Failure{
			Outcome: providers.Unsafe, Code: "saved_memory", Next: j.beforeRedefine(j.Name),
			Err: fmt.Errorf("change %s: %s", j.Address, savedMemory),
		}
	}
	if err := j.write(ctx); err != nil {
		return providers.Result{}, err
	}
	return j.result(ctx, providers.Done)
}

// isWanted reports whether the domain is all that the step would make of it,
// its files included.
func (j *job) isWanted(ctx context.Context) bool {
	if j.seen == nil || j.seen.Transient || j.seen.owner() == nil || j.want.Boot == nil {
		return false
	}
	d, mark, b := j.seen.configured, j.seen.owner(), j.want.Boot
	switch {
	case mark.Generation != j.Generation || d.SSH == nil || d.ConsoleLog == "" || d.Data != j.settings.Dir,
		d.accel() != j.want.Accel || d.cpus() != j.want.CPUs || d.memory() != j.want.Memory,
		d.Kernel != mark.Boot.Kernel || d.Initrd != mark.Boot.Initrd || d.Cmdline != b.Cmdline,
		mark.Boot.KernelSHA256 != b.KernelSHA256 || mark.Boot.InitrdSHA256 != b.InitrdSHA256,
		!slices.Equal(d.wantedForwards(), j.want.Forwards):
		return false
	}
	keys, err := j.readKeys(j.Name, j.want.SSH)
	if err != nil || keys.digest() != mark.Boot.Keys {
		return false
	}
	pools, err := j.pools(ctx)
	return err == nil && j.isVolume(ctx, pools, d.Kernel) && j.isVolume(ctx, pools, d.Initrd)
}

// isVolume reports whether a file of the domain's is a volume that exists.
func (j *job) isVolume(ctx context.Context, pools []string, file string) bool {
	return slices.ContainsFunc(pools, func(pool string) bool {
		_, err := j.Tail(ctx, pool, path.Base(file), 1)
		return err == nil
	})
}

// pools are those that may hold files of the domain: those of its block, and
// those of an earlier one.
func (j *job) pools(ctx context.Context) ([]string, error) {
	all := j.candidatePools()
	if j.seen == nil {
		return all, nil
	}
	d := j.seen.configured
	for _, file := range []string{d.Kernel, d.Initrd, d.ConsoleLog} {
		name, err := j.PoolOf(ctx, file)
		switch {
		case errors.Is(err, errAbsent):
		case err != nil:
			return nil, err
		case !slices.Contains(all, name):
			all = append(all, name)
		}
	}
	return all, nil
}

// write brings the files to the pool, defines the domain and drops files that it
// no longer uses.
func (j *job) write(ctx context.Context) error {
	if j.want.Boot == nil {
		return fmt.Errorf("%s has nothing to boot", j.Address)
	}
	if err := j.socketsFit(); err != nil {
		return err
	}
	able, err := j.abilities(ctx)
	if err != nil {
		return err
	}
	j.storage.Lock()
	defer j.storage.Unlock()
	pools, err := j.pools(ctx) // before the domain lets go of earlier files
	if err != nil {
		return fail(err, "find the pools of %s", j.Name)
	}
	files, err := j.files(ctx)
	if err != nil {
		return err
	}
	b, err := j.blueprint(able, files)
	if err != nil {
		return err
	}
	if err := j.defineFrom(ctx, b); err != nil {
		return err
	}
	keep := []string{files.boot.Kernel, files.boot.Initrd, b.ConsoleLog}
	if j.seen != nil { // its log stays where it was, and what it runs with until it stops
		keep = append(keep, j.seen.configured.ConsoleLog)
		if j.seen.running != nil {
			keep = append(keep, j.seen.running.Kernel, j.seen.running.Initrd)
		}
	}
	for _, name := range pools {
		if _, err := j.removeVolumes(ctx, name, keep); err != nil {
			return fail(err, "tidy up after the earlier files of %s", j.Name)
		}
	}
	return nil
}

func (j *job) defineFrom(ctx context.Context, b blueprint) error {
	var text string
	var err error
	if j.seen == nil {
		text, err = b.fresh()
	} else {
		var existing string
		if existing, err = j.XML(ctx, j.seen.UUID, asConfigured); err != nil {
			return fail(err, "read %s", j.Name)
		}
		text, err = b.over(existing)
	}
	if err != nil {
		return fail(err, "describe %s to libvirt", j.Name)
	}
	if err := j.Define(ctx, text); err != nil {
		return fail(err, "define %s", j.Name)
	}
	return nil
}

// abilities are what the host offers, if that is enough for what is wanted.
func (j *job) abilities(ctx context.Context) (abilities, error) {
	f, err := j.Facts(ctx)
	if err != nil {
		return abilities{}, fail(err, "ask what the host can do")
	}
	a, err := parseCapabilities(f.Capabilities)
	if err != nil {
		return abilities{}, fail(err, "ask what the host can do")
	}
	if a.Emulator == "" {
		return abilities{}, &providers.Failure{
			Outcome: providers.Failed, Code: "no_qemu",
			Next: []string{installQEMU},
			Err:  fmt.Errorf("define %s: %s", j.Address, noQEMU(a.Arch)),
		}
	}
	if _, ok := boards[a.Arch]; !ok {
		return abilities{}, &providers.Failure{
			Outcome: providers.Failed, Code: "no_board",
			Err: fmt.Errorf("define %s: vmctl makes no machines for %s", j.Address, a.Arch),
		}
	}
	if j.want.Accel == accelKVM && !a.KVM {
		return abilities{}, &providers.Failure{
			Outcome: providers.Failed, Code: "no_kvm",
			Next: []string{"set accel = \"auto\" or \"tcg\"", "or give QEMU's user access to /dev/kvm"},
			Err:  fmt.Errorf("define %s: accel = \"kvm\", and libvirt finds no usable /dev/kvm", j.Address),
		}
	}
	return a, nil
}

// blueprint puts together what the domain will be.
func (j *job) blueprint(a abilities, files bootFiles) (blueprint, error) {
	domainType, why := j.chooseType(j.want.Accel, a)
	if why != "" {
		j.say("accel = \"auto\": %s, so QEMU emulates the CPU (TCG)", why)
	}
	mark := owner{
		Mark: providers.Mark{
			ID: j.settings.Project.Lineage(), Project: j.settings.Project.Name, Address: j.Address,
			Of: j.Object, Generation: j.Generation,
		},
		Accel: j.want.Accel, CPUs: j.want.CPUs, Memory: j.want.Memory, Boot: files.boot, Forwards: j.want.Forwards,
	}
	element, err := mark.element()
	if err != nil {
		return blueprint{}, fmt.Errorf("write the owner mark: %w", err)
	}
	return blueprint{
		Name: j.Name, UUID: string(j.Object), Arch: a.Arch, Board: boards[a.Arch], Emulator: a.Emulator, Type: domainType,
		CPUs: j.want.CPUs, Memory: j.want.Memory,
		Kernel: files.boot.Kernel, Initrd: files.boot.Initrd, Cmdline: j.want.Boot.Cmdline,
		ConsoleLog: pathIn(files.pool, consoleVolume(j.Name)), Data: j.settings.Dir,
		Forwards: j.stickyPorts(), Owner: element,
	}, nil
}
