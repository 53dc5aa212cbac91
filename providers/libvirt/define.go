package libvirt

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

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
		if err := j.nameIsFree(ctx); err != nil {
			return providers.Result{}, err
		}
	}
	if err := j.write(ctx); err != nil {
		return providers.Result{}, err
	}
	return j.result(ctx, providers.Done)
}

func (j *job) nameIsFree(ctx context.Context) error {
	other, err := j.DomainNamed(ctx, j.Name)
	if errors.Is(err, errAbsent) {
		return nil
	}
	if err != nil {
		return fail(err, "look for a domain of the name %s", j.Name)
	}
	return &providers.Failure{
		Outcome: providers.Unsafe, Code: "name_taken",
		Next: []string{
			"look at it: virsh -c " + j.place.URI + " dumpxml " + j.Name,
			fmt.Sprintf("set another name in the block of %s", j.Address),
		},
		Err: fmt.Errorf("define %s: a domain of the name %s exists already (%s), and it is not vmctl's", j.Address, j.Name, other.UUID),
	}
}

// redefine changes what the next start will use, in one call: the domain is at
// no time undefined.
func (j *job) redefine(ctx context.Context) (providers.Result, error) {
	if err := j.check(); err != nil {
		return providers.Result{}, err
	}
	if j.seen != nil {
		saved, err := j.HasSavedMemory(ctx, j.seen.UUID)
		if err != nil {
			return providers.Result{}, fail(err, "look for saved memory of %s", j.Name)
		}
		if saved {
			return providers.Result{}, &providers.Failure{
				Outcome: providers.Unsafe, Code: "saved_memory",
				Next: []string{
					"go on from it, then apply: virsh -c " + j.place.URI + " start " + j.Name,
					"or throw it away: virsh -c " + j.place.URI + " managedsave-remove " + j.Name,
				},
				Err: fmt.Errorf("change %s: its memory is saved, and would not fit what it is changed to", j.Address),
			}
		}
	}
	if err := j.write(ctx); err != nil {
		return providers.Result{}, err
	}
	return j.result(ctx, providers.Done)
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
	keep := []string{filepath.Base(files.boot.Kernel), filepath.Base(files.boot.Initrd), consoleVolume(j.Name)}
	if j.seen != nil && j.seen.running != nil { // what it runs with stays until it stops
		keep = append(keep, filepath.Base(j.seen.running.Kernel), filepath.Base(j.seen.running.Initrd))
	}
	if _, err := j.removeVolumes(ctx, j.connection, files.pool.Name, j.Name, keep); err != nil {
		return fail(err, "tidy up after the earlier files of %s", j.Name)
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
			Next: []string{"install it: sudo apt-get install qemu-system-x86"},
			Err:  fmt.Errorf("define %s: libvirt finds no QEMU for %s on this host", j.Address, a.Arch),
		}
	}
	return a, nil
}

// bootFiles are a vm's files in the pool.
type bootFiles struct {
	pool pool
	boot markedBoot
}

// files makes the keys and uploads what the vm boots from.
func (j *job) files(ctx context.Context) (bootFiles, error) {
	var f bootFiles
	k, err := j.ensureKeys(j.Name, j.want.SSH)
	if err != nil {
		return f, keyFailure(err, j.Name)
	}
	if f.pool, err = j.usablePool(ctx, j.connection); err != nil {
		return f, asFailure(err, "find a pool for the files of "+j.Name)
	}
	b := j.want.Boot
	f.boot = markedBoot{KernelSHA256: b.KernelSHA256, InitrdSHA256: b.InitrdSHA256, Keys: k.digest()}
	if f.boot.Kernel, err = j.upload(ctx, f.pool, content{
		volume: kernelVolume(j.Name, b.KernelSHA256), file: j.abs(b.Kernel), sha256: b.KernelSHA256,
	}); err != nil {
		return f, err
	}
	keys, err := k.archive()
	if err != nil {
		return f, err
	}
	both := sha256.Sum256([]byte(b.InitrdSHA256 + " " + k.digest()))
	c := content{volume: initrdVolume(j.Name, hex.EncodeToString(both[:])), sha256: b.InitrdSHA256, appended: keys}
	if b.Initrd != "" {
		c.file = j.abs(b.Initrd)
	}
	f.boot.Initrd, err = j.upload(ctx, f.pool, c)
	return f, err
}

func keyFailure(err error, name string) error {
	f := fail(err, "make the keys of %s", name)
	f.Code = "keys"
	return f
}

// abs reads a path of the spec.
func (j *job) abs(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(j.settings.Files, path)
}

// content is what a volume will hold: a file, and what is appended to it at the
// next multiple of four bytes.
type content struct {
	volume   string
	file     string // "": none
	sha256   string // of the file
	appended []byte
}

// upload fills a volume and returns its path. A volume that the domain boots
// from already holds the same bytes: its name says so.
func (j *job) upload(ctx context.Context, to pool, c content) (string, error) {
	path := pathIn(to, c.volume)
	if j.seen != nil && (j.seen.configured.Kernel == path || j.seen.configured.Initrd == path) {
		if _, err := j.Tail(ctx, to.Name, c.volume, 1); err == nil {
			return path, nil
		}
	}
	var file io.Reader = bytes.NewReader(nil)
	size := int64(0)
	sum := sha256.New()
	if c.file != "" {
		f, err := os.Open(c.file)
		if err != nil {
			return "", unreadable(err, c.file)
		}
		defer closeQuietly(f)
		info, err := f.Stat()
		if err != nil {
			return "", unreadable(err, c.file)
		}
		file, size = io.TeeReader(f, sum), info.Size()
	}
	zeros := make([]byte, padding(size))
	if c.appended == nil {
		zeros = nil
	}
	total := uint64(size) + uint64(len(zeros)+len(c.appended))
	if total > to.Available {
		return "", diskFull(to, c.volume, total)
	}
	j.say("uploading %s (%d bytes) to pool %s", c.volume, total, to.Name)
	// What an interrupted upload left behind is not what its name says.
	if err := j.DeleteVolume(ctx, to.Name, c.volume); err != nil && !errors.Is(err, errAbsent) {
		return "", fail(err, "replace volume %s of pool %s", c.volume, to.Name)
	}
	path, err := j.Upload(ctx, to.Name, upload{
		Name: c.volume, Size: total,
		Content: io.MultiReader(file, bytes.NewReader(zeros), bytes.NewReader(c.appended)),
	})
	if err != nil {
		f := fail(err, "upload %s to pool %s", c.volume, to.Name)
		if f.Code == "disk_full" {
			if now, err := j.Pool(ctx, to.Name); err == nil {
				to = now
			}
			return "", diskFull(to, c.volume, total)
		}
		return "", f
	}
	if got := hex.EncodeToString(sum.Sum(nil)); c.file != "" && got != c.sha256 {
		return "", j.changedFile(ctx, to, c)
	}
	return path, nil
}

func (j *job) changedFile(ctx context.Context, to pool, c content) error {
	f := &providers.Failure{
		Outcome: providers.Stale, Code: "stale_plan", Next: []string{"vmctl plan"},
		Err: fmt.Errorf("upload %s: the file was changed since the plan was made", c.file),
	}
	if err := j.DeleteVolume(ctx, to.Name, c.volume); err != nil {
		f.Seen = append(f.Seen, fmt.Sprintf("volume %s of pool %s stays behind: %v", c.volume, to.Name, err))
	}
	return f
}

func unreadable(err error, path string) error {
	f := fail(err, "read %s", path)
	f.Code, f.Next = "unreadable_file", []string{"make it readable: ls -l " + path}
	return f
}

func diskFull(to pool, volume string, need uint64) error {
	return &providers.Failure{
		Outcome: providers.Failed, Code: "disk_full",
		Seen: []string{fmt.Sprintf("%d bytes are needed, and %s has %d", need, to.Path, to.Available)},
		Next: []string{"make room: df -h " + to.Path, "or choose another pool in the provider's block"},
		Err:  fmt.Errorf("upload %s: the disk of pool %s is full", volume, to.Name),
	}
}

// blueprint puts together what the domain will be.
func (j *job) blueprint(a abilities, files bootFiles) (blueprint, error) {
	computer, ok := boards[a.Arch]
	if !ok {
		return blueprint{}, &providers.Failure{
			Outcome: providers.Failed, Code: "no_board",
			Err: fmt.Errorf("define %s: vmctl makes no machines for %s", j.Address, a.Arch),
		}
	}
	if j.want.Accel == accelKVM && !a.KVM {
		return blueprint{}, &providers.Failure{
			Outcome: providers.Failed, Code: "no_kvm",
			Next: []string{"set accel = \"auto\" or \"tcg\"", "or give QEMU's user access to /dev/kvm"},
			Err:  fmt.Errorf("define %s: accel = \"kvm\", and libvirt finds no usable /dev/kvm", j.Address),
		}
	}
	kvm, why := j.useKVM(j.want.Accel, a)
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
		Name: j.Name, UUID: string(j.Object), Arch: a.Arch, Board: computer, Emulator: a.Emulator, KVM: kvm,
		CPUs: j.want.CPUs, Memory: j.want.Memory,
		Kernel: files.boot.Kernel, Initrd: files.boot.Initrd, Cmdline: j.want.Boot.Cmdline,
		ConsoleLog: pathIn(files.pool, consoleVolume(j.Name)), Data: j.settings.Dir,
		Forwards: j.stickyPorts(), Owner: element,
	}, nil
}

// stickyPorts are the wanted forwards with the host ports that the definition
// already asks for.
func (j *job) stickyPorts() []forward {
	all := append([]forward{sshForward(0)}, j.want.Forwards...)
	if j.seen == nil {
		return all
	}
	if j.seen.configured.SSH != nil {
		all[0].Host = j.seen.configured.SSH.Host
	}
	for i, f := range all[1:] {
		if f.fixed() {
			continue
		}
		sticky := heldPort(j.seen.configured.Forwards, f)
		if !slices.ContainsFunc(all, func(other forward) bool { return other.Host == sticky }) {
			all[i+1].Host = sticky
		}
	}
	return all
}

// maxSocketPath is what the system takes, with its closing zero (unix(7)).
const maxSocketPath = 108

// socketsFit checks that libvirt can make QEMU's sockets, before anything is
// made.
func (j *job) socketsFit() error {
	if j.place.System || j.place.Remote != "" || j.place.Test {
		return nil
	}
	config := j.host.Getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(j.host.Getenv("HOME"), ".config")
	}
	// libvirt: a counter and the first 20 bytes of the name.
	socket := filepath.Join(config, "libvirt/qemu/lib", "domain-9999-"+j.Name[:min(20, len(j.Name))], "monitor.sock")
	if len(socket) < maxSocketPath {
		return nil
	}
	return &providers.Failure{
		Outcome: providers.Failed, Code: "path_too_long",
		Seen: []string{fmt.Sprintf("%s has %d bytes, and a socket's path must have fewer than %d", socket, len(socket), maxSocketPath)},
		Next: []string{"set XDG_CONFIG_HOME to a folder with a shorter path", "or use the system's libvirt: uri = \"qemu:///system\""},
		Err:  fmt.Errorf("define %s: the folder in which libvirt keeps QEMU's sockets has too long a path", j.Address),
	}
}
