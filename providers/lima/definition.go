package lima

import (
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"vmctl/internal/yamltext"
	"vmctl/providers/machine"
)

// The top-level keys of a definition (lima.yaml) that attributes set.
const (
	keyImages     = "images"
	keyCPUs       = "cpus"
	keyMemory     = "memory"
	keyDisk       = "disk"
	keyDisks      = "additionalDisks"
	keyMounts     = "mounts"
	keyForwards   = "portForwards"
	keyParams     = "param"
	keyPlain      = "plain"
	keyVMType     = "vmType"
	keyArch       = "arch"
	keyUser       = "user"
	keySSH        = "ssh"
	keyContainerd = "containerd"
	keyFirmware   = "firmware"
	keyOptions    = "vmOpts"
	keyProvision  = "provision"
	keyBase       = "base"
	keyMountType  = "mountType"
	keyNetworks   = "networks"
	keyProbes     = "probes"
	keyMessage    = "message"
	keyOS         = "os"
	keyCopies     = "copyToHost"

	keyMountTypesUnsupported = "mountTypesUnsupported"
)

// osLinux is the OS of a guest whose definition names none.
const osLinux = "Linux"

// written is a wanted definition, with what its mark says of it.
type written struct {
	doc    map[string]any
	text   string // canonical
	keys   []string
	params []string
	base   string
	ports  []string // the forwarded ports, in order
	auto   []string
}

// parts holds the inputs of a definition.
type parts struct {
	name       string // of the instance
	vm         machine.VM
	rest       map[string]any    // what is of the template
	imported   bool              // its user and its keys are not vmctl's
	disks      []usedDisk        // its additional disks, in order
	authorized []string          // the lines of authorized_keys of its user
	hostKey    string            // the private host key of its guest; "": the guest makes its own
	hosts      map[string]uint16 // the host ports that were chosen for forwards that leave the choice open
}

// compose returns the definition of a wanted VM: its template with its attributes in it.
func (p *Provider) compose(g parts) (written, error) {
	vm := g.vm
	w := written{doc: maps.Clone(g.rest)}
	if w.doc == nil {
		w.doc = map[string]any{}
	}
	set := func(key string, value any) {
		w.doc[key] = value
		w.keys = append(w.keys, key)
	}
	setIfAbsent := func(key string, value any) {
		if _, there := w.doc[key]; !there {
			set(key, value)
		}
	}
	set(keyCPUs, int(vm.CPUs)) //nolint:gosec // at most 4096
	set(keyMemory, size(vm.Memory))
	if vm.RootDisk > 0 {
		set(keyDisk, size(vm.RootDisk))
	}
	if i := vm.Image; i != nil && !g.imported {
		image := map[string]any{"location": p.imageLocation(i), "arch": architecture()}
		if i.SHA256 != "" {
			image["digest"] = "sha256:" + i.SHA256
		}
		set(keyImages, []any{image})
	}
	if kind := mountTypeOf(vm, w.doc); kind != "" && !g.imported {
		setIfAbsent(keyMountType, kind)
	}
	if len(g.disks) > 0 || w.doc[keyDisks] == nil {
		set(keyDisks, additionalDisks(g.disks))
	}
	if len(vm.Mounts) > 0 || w.doc[keyMounts] == nil {
		set(keyMounts, p.mounts(vm.Mounts))
	}
	if own, _ := w.doc[keyForwards].([]any); len(vm.Forwards) == 0 && len(own) > 0 {
		if !g.imported {
			w.doc[keyForwards] = append(slices.DeleteFunc(slices.Clone(own), isIgnored), ignored()...)
		}
	} else {
		list, auto := forwards(vm.Forwards, g.hosts)
		set(keyForwards, list)
		w.auto = auto
		for _, f := range vm.Forwards {
			w.ports = append(w.ports, forwardKey(f))
		}
	}
	if vm.Plain {
		set(keyPlain, true)
	}
	if len(vm.Params) > 0 {
		params, _ := w.doc[keyParams].(map[string]any)
		params = maps.Clone(params)
		if params == nil {
			params = map[string]any{}
		}
		for name, value := range vm.Params {
			params[name] = value
		}
		w.doc[keyParams], w.params = params, slices.Sorted(maps.Keys(vm.Params))
	}
	if p.emulates(vm.Accel) {
		setIfAbsent(keyOptions, emulatedCPU())
	}
	if !g.imported {
		p.setUp(g, setIfAbsent)
	}
	w.addScripts(p, g)
	slices.Sort(w.keys)
	w.base = baseDigest(w.doc, w.keys, w.params)
	var err error
	w.text, err = yamltext.Marshal(w.doc)
	return w, err
}

// setUp adds what an instance needs that vmctl makes: its user, its keys, and no more than was asked
// for.
func (p *Provider) setUp(g parts, setIfAbsent func(key string, value any)) {
	setIfAbsent(keyVMType, "qemu")
	setIfAbsent(keyContainerd, map[string]any{"system": false, "user": false})
	setIfAbsent(keySSH, map[string]any{"loadDotSSHPubKeys": false})
	if user := p.user(g.vm); user != nil {
		setIfAbsent(keyUser, user)
	}
	if !hasFirmware() {
		setIfAbsent(keyFirmware, map[string]any{"legacyBIOS": true})
	}
}

// size returns a number of bytes as Lima writes it.
func size(bytes uint64) string {
	for _, unit := range []struct {
		shift uint
		name  string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n := bytes >> unit.shift; n > 0 && n<<unit.shift == bytes {
			return fmt.Sprintf("%d%s", n, unit.name)
		}
	}
	return fmt.Sprintf("%dB", bytes)
}

// architecture returns this machine's architecture by Lima's name.
func architecture() string {
	if name, known := map[string]string{"amd64": "x86_64", "arm64": "aarch64", "riscv64": "riscv64"}[runtime.GOARCH]; known {
		return name
	}
	return runtime.GOARCH
}

func (p *Provider) imageLocation(i *machine.Image) string {
	if i.IsURL() {
		return i.Source
	}
	return p.absolute(i.Source)
}

// absolute returns a path of the spec as an absolute one.
func (p *Provider) absolute(path string) string {
	if rest, short := strings.CutPrefix(path, "~/"); short && p.host.Home != "" {
		return filepath.Join(p.host.Home, rest)
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(p.settings.Files, path)
}

// usedDisk is an additional disk of a wanted VM.
type usedDisk struct{ name, fsType, mountPoint string }

// entry returns the disk as a definition names it. Lima never formats it: at each start it would format anew a disk
// without the label lima-NAME, and mkfs.ext4 cuts labels after 16 bytes. vmctl's own script does it.
func (d usedDisk) entry() map[string]any {
	entry := map[string]any{"name": d.name, "format": false}
	if d.fsType != "" {
		entry["fsType"] = d.fsType
	}
	return entry
}

// target returns the path at which the guest mounts the disk; "": it does not. A disk with a file system and no
// path of its own has Lima's.
func (d usedDisk) target() string {
	if d.mountPoint == "" && d.fsType != "" {
		return "/mnt/lima-" + d.name
	}
	return d.mountPoint
}

func additionalDisks(disks []usedDisk) []any {
	all := []any{}
	for _, d := range disks {
		all = append(all, d.entry())
	}
	return all
}

func (p *Provider) mounts(mounts []machine.Mount) []any {
	all := []any{}
	for _, m := range mounts {
		entry := map[string]any{"location": p.absolute(m.Source), "writable": m.Writable}
		if m.Target != "" {
			entry["mountPoint"] = m.Target
		}
		all = append(all, entry)
	}
	return all
}

// forwards returns the list of forwarded ports, and those whose host port is chosen at each start.
// hosts has the ports that were chosen.
func forwards(all []machine.Forward, hosts map[string]uint16) (list []any, auto []string) {
	list = []any{}
	for _, f := range all {
		host := f.Host
		if !f.Fixed() {
			auto = append(auto, forwardKey(f))
			host = hosts[forwardKey(f)]
		}
		if host == 0 { // chosen when it starts
			continue
		}
		list = append(list, map[string]any{
			"guestPort": int(f.Guest), "hostPort": int(host), "hostIP": f.HostIP, "proto": f.Protocol, "static": f.Protocol == machine.TCP,
		})
	}
	return append(list, ignored()...), auto
}

// ignored returns entries by which Lima forwards none of ignoredPorts. The first entry that fits a port counts: they
// stand last, so that others may forward them.
func ignored() []any {
	var list []any
	for _, port := range ignoredPorts {
		list = append(list, map[string]any{"guestPort": port, "proto": "any", "ignore": true})
	}
	return list
}

// isIgnored reports whether an entry is one of ignored.
func isIgnored(entry any) bool {
	e, _ := entry.(map[string]any)
	port, _ := number(e["guestPort"])
	return len(e) == 3 && e["ignore"] == true && e["proto"] == "any" && slices.Contains(ignoredPorts, int(port)) //nolint:gosec // a port
}

// forwardKey names a forwarded port: 8080/tcp at 127.0.0.1.
func forwardKey(f machine.Forward) string {
	return fmt.Sprintf("%d/%s at %s", f.Guest, f.Protocol, f.HostIP)
}

// user returns the user of the guest. Lima gives it the name and the ID of this host's user, and
// refuses root's.
func (p *Provider) user(vm machine.VM) map[string]any {
	name := vm.SSH.User
	switch {
	case name != "" && name != rootUser && p.host.UID == 0:
		return map[string]any{"name": name, "uid": guestUID}
	case name != "" && name != rootUser:
		return map[string]any{"name": name}
	case p.host.UID == 0:
		return map[string]any{"name": limaUser, "uid": guestUID}
	default:
		return nil
	}
}

const (
	rootUser = "root"
	guestUID = 1000
)

// hasFirmware reports whether this machine has the UEFI firmware with which Lima starts QEMU.
func hasFirmware() bool {
	for _, file := range []string{
		"/usr/share/OVMF/OVMF_CODE.fd", "/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/qemu/edk2-x86_64-code.fd",
		"/usr/share/edk2/x64/OVMF_CODE.4m.fd", "/usr/share/AAVMF/AAVMF_CODE.fd", "/usr/share/qemu/edk2-aarch64-code.fd",
	} {
		if exists(file) {
			return true
		}
	}
	return runtime.GOOS == "darwin"
}
