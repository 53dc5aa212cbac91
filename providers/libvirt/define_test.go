package libvirt_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/sshx"
	"vmctl/providers"
	"vmctl/providers/libvirt"
)

var off = map[string]cty.Value{"running": cty.False}

func TestDefine(t *testing.T) {
	l := newLab(t)
	wantText(t, "what was done", `
  . uploading DEV.kernel-6923dd1bc046 (6 bytes) to pool vmctl-lab-k7m2qd9x4r
  . uploading DEV.initrd-KEYS (SIZE bytes) to pool vmctl-lab-k7m2qd9x4r
define: done, off
`, l.steady(l.apply(create(vm(off)))))
	wantText(t, "calls", `
define-pool vmctl-lab-k7m2qd9x4r at DIR/data/libvirt/pool
start-pool vmctl-lab-k7m2qd9x4r
upload DEV.kernel-6923dd1bc046
upload DEV.initrd-KEYS
define lab.dev
`, l.steady(l.plain(l.calls())))
	wantGolden(t, "domain.xml", l.steady(l.plain(l.Configured(devID)))+"\n")
	if o := l.object(vm(off)); o.Owner == nil || o.Owner.Address != dev || o.Owner.ID != lineage || o.Owner.Of != devID || o.Owner.Generation != 1 {
		t.Errorf("mark %+v", o.Owner)
	}
}

// steady replaces the parts of a text that depend on fresh keys.
func (l *lab) steady(s string) string {
	for _, r := range [][2]string{
		{`\.initrd-[0-9a-f]{12} \([0-9]+ bytes\)`, ".initrd-KEYS (SIZE bytes)"},
		{`\.initrd-[0-9a-f]{12}`, ".initrd-KEYS"},
		{` keys="[0-9a-f]+"`, ` keys="PUBLIC"`},
		{` host_key="ssh-ed25519 [^"]+"`, ` host_key="PUBLIC"`},
		{` initrd_stamp="[^"]+"`, ` initrd_stamp="STAMP"`},
	} {
		s = regexp.MustCompile(r[0]).ReplaceAllString(s, r[1])
	}
	return s
}

// initrdOf returns the digest in the name of the initial RAM disk's volume.
func initrdOf(l *lab) string {
	_, rest, _ := strings.Cut(l.Contents(), ".initrd-")
	digest, _, _ := strings.Cut(rest, "\n")
	return digest
}

func TestDefineBringsTheKeys(t *testing.T) {
	l := made(t, vm(off))
	keys := filepath.Join(l.dir, "data", "keys", devID)
	authorized := readFile(t, filepath.Join(keys, "id_ed25519.pub"))
	host := readFile(t, filepath.Join(keys, "ssh_host_ed25519_key"))
	volume := l.Volume("vmctl-lab-"+lineage, devID+".initrd-"+initrdOf(l))
	rest, ok := bytes.CutPrefix(volume, []byte("ramdisk\x00"))
	if !ok {
		t.Fatalf("the user's initrd and its padding to four bytes come first: %q", volume[:16])
	}
	got := unpack(t, rest)
	for name, want := range map[string]string{"vmctl": "", "vmctl/authorized_keys": authorized, "vmctl/ssh_host_ed25519_key": host} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	pinned, err := sshx.PublicKey(filepath.Join(keys, "ssh_host_ed25519_key"))
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, "known_hosts", "lab.dev "+strings.TrimSuffix(pinned, " lab.dev")+"\n", readFile(t, filepath.Join(keys, "known_hosts")))
	for name, mode := range map[string]os.FileMode{
		"": os.ModeDir | 0o700, "id_ed25519": 0o600, "ssh_host_ed25519_key": 0o600, "known_hosts": 0o600,
	} {
		info, err := os.Stat(filepath.Join(keys, name))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), mode)
		}
	}
}

// unpack reads a compressed newc archive.
func unpack(t testing.TB, packed []byte) map[string]string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	field := func(i int) int {
		n := 0
		for _, c := range raw[6+8*i : 14+8*i] {
			n = n<<4 | strings.IndexByte("0123456789abcdef", c)
		}
		return n
	}
	files := map[string]string{}
	at := func(n int) int { return (n + 3) &^ 3 }
	for {
		if string(raw[:6]) != "070701" {
			t.Fatalf("no archive: %q", raw[:6])
		}
		size, name := field(6), field(11)
		body := at(110 + name)
		file := string(raw[110 : 110+name-1])
		if file == "TRAILER!!!" {
			return files
		}
		if mode := field(1); mode != 0o040700 && mode != 0o100600 {
			t.Errorf("%s has mode %o", file, mode)
		}
		files[file] = string(raw[body : body+size])
		raw = raw[at(body+size):]
	}
}

func TestBootArchiveIsDeterministic(t *testing.T) {
	files := []libvirt.ArchiveFile{{Name: "vmctl", Mode: 0o040700}, {Name: "vmctl/a", Mode: 0o100600, Content: []byte("12345")}}
	a, errA := libvirt.BootArchive(files)
	b, errB := libvirt.BootArchive(files)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("two archives of the same files differ: %v %v", errA, errB)
	}
	if got := unpack(t, a); got["vmctl/a"] != "12345" {
		t.Errorf("got %q", got)
	}
}

func TestDefineWithoutAnInitrd(t *testing.T) {
	boot := map[string]cty.Value{
		"kernel": cty.StringVal("vmlinuz"), "kernel_sha256": digestOf("kernel"), "initrd": null, "initrd_sha256": null, "cmdline": cty.StringVal(""),
	}
	want := vm(map[string]cty.Value{"running": cty.False, "boot": cty.ObjectVal(boot)})
	l := made(t, want)
	if got := unpack(t, l.Volume("vmctl-lab-"+lineage, devID+".initrd-"+initrdOf(l))); got["vmctl/authorized_keys"] == "" {
		t.Errorf("the keys are missing: %q", got)
	}
	if got := l.object(want).Attrs.GetAttr("boot").GetAttr("initrd_sha256"); !got.IsNull() {
		t.Errorf("initrd_sha256 = %#v, want null", got)
	}
}

func TestDefineWithAKeyOfTheUsers(t *testing.T) {
	l := newLab(t)
	line, err := sshx.EnsureKey(filepath.Join(l.dir, "files", "mine"), "me")
	if err != nil {
		t.Fatal(err)
	}
	want := vm(map[string]cty.Value{"running": cty.False, "ssh": cty.ObjectVal(map[string]cty.Value{
		"user": cty.StringVal("root"), "identity": cty.StringVal("mine"), "host_key": cty.StringVal("accept-new"),
	})})
	if got := l.apply(create(want)); !strings.Contains(got, "define: done") {
		t.Fatal(got)
	}
	volume := l.Volume("vmctl-lab-"+lineage, devID+".initrd-"+initrdOf(l))
	if got := unpack(t, volume[8:])["vmctl/authorized_keys"]; got != line+"\n" {
		t.Errorf("authorized_keys %q", got)
	}
	for _, name := range []string{"id_ed25519", "known_hosts"} {
		if _, err := os.Stat(filepath.Join(l.dir, "data/keys/"+devID, name)); err == nil {
			t.Errorf("%s was made although it is not used", name)
		}
	}
}

// row L49
// row A57
func TestDefineFailures(t *testing.T) {
	foreign := func(l *lab) {
		l.Put(otherID, func(d *libvirt.FakeDomain) {
			d.Name, d.Configured = "lab.dev", "<domain type='qemu'><name>lab.dev</name><uuid>"+otherID+"</uuid><vcpu>1</vcpu></domain>"
		})
	}
	for _, tc := range []struct {
		name    string
		prepare func(l *lab)
		want    map[string]cty.Value
		says    string
		free    uint64 // after an upload was refused
	}{
		{
			name: "the name is taken", prepare: foreign,
			says: `define: refused name_taken: define vm.dev: a domain of the name lab.dev exists already (99999999-2222-8333-8444-555555555555), and it is not vmctl's
  next: look at it: virsh -c qemu:///session dumpxml lab.dev
  next: set another name in the block of vm.dev
`,
		},
		{
			name: "a domain of ours is not ours",
			prepare: func(l *lab) {
				l.Put(devID, func(d *libvirt.FakeDomain) {
					d.Name, d.Configured = "else", "<domain type='qemu'><name>else</name><uuid>"+devID+"</uuid><vcpu>1</vcpu></domain>"
				})
			},
			says: `define: refused not_ours: define vm.dev: domain else (11111111-2222-8333-8444-555555555555) does not bear the mark of vm.dev
  next: look at it: virsh -c qemu:///session dumpxml 11111111-2222-8333-8444-555555555555
`,
		},
		{
			name:    "no kernel",
			prepare: func(l *lab) { removeFile(l.t, filepath.Join(l.dir, "files/vmlinuz")) },
			says: `define: failed unreadable_file: read DIR/files/vmlinuz: open DIR/files/vmlinuz: no such file or directory
  next: make it readable: ls -l DIR/files/vmlinuz
`,
		},
		{
			name:    "another kernel than was planned",
			prepare: func(l *lab) { l.file("files/vmlinuz", "newer") },
			says: `  . uploading DEV.kernel-6923dd1bc046 (5 bytes) to pool vmctl-lab-k7m2qd9x4r
define: stale stale_plan: upload DIR/files/vmlinuz: the file was changed since the plan was made
  next: vmctl plan
`,
		},
		{
			name: "the disk is too small", prepare: func(l *lab) { l.Free = 5 },
			says: `define: failed disk_full: upload DEV.kernel-6923dd1bc046: the disk of pool vmctl-lab-k7m2qd9x4r is full
  seen: 6 bytes are needed, and DIR/data/libvirt/pool has 5
  next: make room: df -h DIR/data/libvirt/pool
  next: or choose another pool in the provider's block
`,
		},
		{
			name: "the disk fills up meanwhile", free: 3,
			prepare: func(l *lab) {
				l.Refuses["upload"] = libvirt.ErrLibvirt("cannot write to stream: No space left on device")
			},
			says: `  . uploading DEV.kernel-6923dd1bc046 (6 bytes) to pool vmctl-lab-k7m2qd9x4r
define: failed disk_full: upload DEV.kernel-6923dd1bc046: the disk of pool vmctl-lab-k7m2qd9x4r is full
  seen: 6 bytes are needed, and DIR/data/libvirt/pool has 3
  next: make room: df -h DIR/data/libvirt/pool
  next: or choose another pool in the provider's block
`,
		},
		{
			name: "no QEMU", prepare: func(l *lab) { l.NoQEMU = true },
			says: `define: failed no_qemu: define vm.dev: libvirt finds no QEMU for x86_64 on this host
  next: install it: sudo apt-get install qemu-system-x86
`,
		},
		{
			name: "no KVM", prepare: func(l *lab) { l.NoKVM = true }, want: map[string]cty.Value{"accel": cty.StringVal("kvm")},
			says: `define: failed no_kvm: define vm.dev: accel = "kvm", and libvirt finds no usable /dev/kvm
  next: set accel = "auto" or "tcg"
  next: or give QEMU's user access to /dev/kvm
`,
		},
		{
			name:    "a truncated key",
			prepare: func(l *lab) { l.file("data/keys/"+devID+"/id_ed25519", "-----BEGIN OPENSSH PRIVATE KEY-----\n") },
			says: `define: failed keys: make the keys of lab.dev: the private key KEYS/id_ed25519 cannot be used: ssh: no key found; put back an intact copy, or remove it and its .pub for a fresh pair
`,
		},
		{
			name:    "the daemon refuses",
			prepare: func(l *lab) { l.Refuses["define"] = libvirt.ErrLibvirt("unsupported configuration: no") },
			says: `  . uploading DEV.kernel-6923dd1bc046 (6 bytes) to pool vmctl-lab-k7m2qd9x4r
  . uploading DEV.initrd-KEYS (SIZE bytes) to pool vmctl-lab-k7m2qd9x4r
define: failed libvirt: define lab.dev: unsupported configuration: no
`,
		},
		{
			name: "no daemon",
			prepare: func(l *lab) {
				l.Down = libvirt.ErrLibvirt("Failed to connect socket to '/run/user/1000/libvirt/libvirt-sock': No such file or directory")
			},
			says: `define: failed no_connection: connect to qemu:///session: no libvirt daemon answers, and none could be started for this user (Failed to connect socket to '/run/user/1000/libvirt/libvirt-sock': No such file or directory)
  next: install it: sudo apt-get install libvirt-daemon libvirt-daemon-driver-qemu qemu-system-x86
`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLab(t)
			changes := map[string]cty.Value{"running": cty.False}
			for k, v := range tc.want {
				changes[k] = v
			}
			tc.prepare(l)
			l.FreeAfterUpload = tc.free
			wantText(t, "what was said", tc.says, l.steady(l.apply(create(vm(changes)))))
			if got := l.Configured(devID); strings.Contains(got, "lab.dev") {
				t.Errorf("a domain was left behind:\n%s", got)
			}
			wantText(t, "pools left behind", "", l.Contents())
			if _, err := os.Stat(filepath.Join(l.dir, "data/keys/"+devID+"/id_ed25519.pub")); err == nil {
				t.Error("a key was left behind")
			}
		})
	}
}

func TestDefineWithAFolderTooLongForSockets(t *testing.T) {
	l := newLab(t)
	long := "/" + strings.Repeat("a", 60)
	p, err := libvirt.OpenFake(libvirt.Host{UID: 1000, Proc: l.proc, Getenv: func(name string) string {
		return map[string]string{"HOME": long}[name]
	}}, l.settings, l.Fake)
	if err != nil {
		t.Fatal(err)
	}
	l.provider = p
	wantText(t, "what was said", `
define: failed path_too_long: define vm.dev: the folder in which libvirt keeps QEMU's sockets has too long a path
  seen: LONG/.config/libvirt/qemu/lib/domain-9999-lab.dev/monitor.sock has 119 bytes, and a socket's path must have fewer than 108
  next: set XDG_CONFIG_HOME to a folder with a shorter path
  next: or use the system's libvirt: uri = "qemu:///system"
`, strings.ReplaceAll(l.apply(create(vm(off))), long, "LONG"))
	if len(l.Calls) > 0 {
		t.Errorf("something was made: %v", l.Calls)
	}
}

func TestDefineCompletesAnInterruptedAttempt(t *testing.T) {
	l := newLab(t)
	l.PutPool("vmctl-lab-"+lineage, libvirt.FakePool{Type: "dir", Path: "/pool", Active: true, Volumes: map[string][]byte{
		devID + ".kernel-6923dd1bc046": []byte("ker"),
	}})
	if got := l.apply(create(vm(off))); !strings.HasSuffix(got, "define: done, off\n  = removed what an earlier one left: "+devID+".kernel-6923dd1bc046\n") {
		t.Fatalf("after the upload was interrupted:\n%s", got)
	}
	if got := string(l.Volume("vmctl-lab-"+lineage, devID+".kernel-6923dd1bc046")); got != "kernel" {
		t.Errorf("half a kernel is taken for a whole one: %q", got)
	}
	first := l.Contents()
	if got := l.apply(create(vm(off))); got != "define: already, off\n  = it exists\n" {
		t.Fatalf("after the domain was defined:\n%s", got)
	}
	wantText(t, "volumes", first, l.Contents())
}

// A define fails if it cannot remove the remains of an earlier domain.
func TestDefineBesideRemains(t *testing.T) {
	l := made(t, vm(off))
	l.Drop(devID)
	before := l.Contents()
	l.Refuses["delete"] = libvirt.ErrLibvirt("cannot unlink file: Permission denied")
	wantText(t, "what was said", `
define: failed no_permission: define vm.dev: remove what an earlier one left: delete volume DEV.initrd-KEYS of pool vmctl-lab-k7m2qd9x4r: cannot unlink file: Permission denied
  next: see what is there: virsh -c qemu:///session vol-list vmctl-lab-k7m2qd9x4r
  next: make the folder of the pool writable, then: vmctl apply
`, l.steady(l.apply(create(vm(off)))))
	wantText(t, "volumes", before, l.Contents())
	if l.Configured(devID) != "" {
		t.Error("a domain was defined")
	}
}

func TestRedefine(t *testing.T) {
	l := made(t, vm(off))
	before := l.Configured(devID)
	l.Put(devID, func(d *libvirt.FakeDomain) {
		d.Configured = strings.NewReplacer(
			"</metadata>", "<them:note xmlns:them=\"urn:them\">kept</them:note></metadata>",
			`<cpu mode="maximum"></cpu>`, `<cpu mode="custom"><model>Nehalem</model></cpu>`,
			"</devices>", "<rng model='virtio'><backend model='random'>/dev/urandom</backend></rng></devices>",
		).Replace(d.Configured)
	})
	l.file("files/vmlinuz", "newer kernel")
	want := vm(map[string]cty.Value{
		"running": cty.False, "memory": cty.NumberIntVal(512<<20 + 1), "cpus": cty.NumberIntVal(3), "port_forward": forwards("9090"),
		"boot": cty.ObjectVal(map[string]cty.Value{
			"kernel": cty.StringVal("vmlinuz"), "kernel_sha256": digestOf("newer kernel"),
			"initrd": cty.StringVal("initrd.gz"), "initrd_sha256": digestOf("ramdisk"), "cmdline": cty.StringVal(""),
		}),
	})
	wantText(t, "what was done", `
  . uploading DEV.kernel-30bf70407b25 (12 bytes) to pool vmctl-lab-k7m2qd9x4r
redefine: done, off
`, l.steady(l.apply(l.change(providers.Update, want, "memory"))))
	wantText(t, "calls", `
upload DEV.kernel-30bf70407b25
define lab.dev
delete DEV.kernel-6923dd1bc046
`, l.calls())
	after := l.Configured(devID)
	wantGolden(t, "redefined.xml", l.steady(l.plain(after))+"\n")
	for _, kept := range []string{">kept<", "/dev/urandom", "Nehalem"} {
		if !strings.Contains(after, kept) {
			t.Errorf("what somebody else added is lost: %s", kept)
		}
	}
	for _, same := range []string{"<uuid>" + devID, "mac=" + libvirt.MACOf(devID)} {
		if !strings.Contains(before, same) || !strings.Contains(after, same) {
			t.Errorf("%s did not survive", same)
		}
	}
	o := l.object(want)
	if got := o.Attrs.GetAttr("memory"); !got.RawEquals(cty.NumberIntVal(512<<20 + 1)) {
		t.Errorf("memory is read back as %#v", got)
	}
	if o.Owner.Generation != 2 {
		t.Errorf("generation %d", o.Owner.Generation)
	}
}

// A file that is not what its name promises does not stay.
func TestRedefineWithAFileThatWasChanged(t *testing.T) {
	l := made(t, vm(off))
	before := l.Contents()
	l.file("files/vmlinuz", "newer kernel")
	want := vm(map[string]cty.Value{
		"running": cty.False,
		"boot": cty.ObjectVal(map[string]cty.Value{
			"kernel": cty.StringVal("vmlinuz"), "kernel_sha256": digestOf("planned kernel"),
			"initrd": cty.StringVal("initrd.gz"), "initrd_sha256": digestOf("ramdisk"), "cmdline": cty.StringVal(""),
		}),
	})
	if got := l.apply(l.change(providers.Update, want, "boot.kernel_sha256")); !strings.Contains(got, "redefine: stale stale_plan: upload ") {
		t.Errorf("what was done: %s", got)
	}
	wantText(t, "what there is", before, l.Contents())
}

// Two data directories make one VM at once: libvirt gives its name to one of them, and the
// other touches nothing.
func TestDefineOfWhatWasMadeElsewhere(t *testing.T) {
	for name, begin := range map[string]func(l *lab, define func()){
		"before the step": func(_ *lab, define func()) { define() },
		"during the step": func(l *lab, define func()) { l.BeforeDefine = define },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			var before string
			begin(l, func() {
				other := create(vm(nil))
				other.ID = otherID
				l.BeforeDefine = nil
				mine := l.provider
				l.open() // theirs has locks of its own
				l.apply(other)
				l.provider = mine
				before = l.Configured(otherID) + l.Running(otherID)
			})
			got := l.apply(create(vm(nil)))
			if !strings.Contains(got, "define: stale made_elsewhere: define vm.dev: another data directory of this project has made it meanwhile: domain lab.dev ("+otherID+")\n  next: vmctl plan\n") {
				t.Errorf("got\n%s", got)
			}
			if before == "" || l.Configured(otherID)+l.Running(otherID) != before || strings.Contains(l.Contents(), devID) || !strings.Contains(l.Contents(), otherID+".kernel-") {
				t.Errorf("there is\n%s%s", l.Contents(), l.Configured(otherID))
			}
			if keys, err := os.ReadDir(l.settings.Keys); err != nil || len(keys) != 1 || keys[0].Name() != otherID {
				t.Errorf("keys: %v, %v", keys, err)
			}
		})
	}
}

// A failed define keeps the keys that were there before.
func TestDefineThatFailsKeepsEarlierKeys(t *testing.T) {
	l := made(t, vm(off))
	key := filepath.Join(l.dir, "data/keys/"+devID+"/id_ed25519")
	before := readFile(t, key)
	l.Drop(devID)
	l.Refuses["define"] = libvirt.ErrLibvirt("no")
	l.apply(create(vm(off)))
	wantText(t, "the key", before, readFile(t, key))
}

// New files go to the pool that the block names now. Earlier files are found in their old
// pool, and a log stays in its place.
func TestPoolThatChanges(t *testing.T) {
	l := newLab(t)
	use := func(pool string) {
		l.settings.Attrs = cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal("qemu:///session"), "pool": cty.StringVal(pool)})
		l.open()
	}
	for _, name := range []string{"first", "second", "third"} {
		l.PutPool(name, libvirt.FakePool{Type: "dir", Path: "/" + name, Active: true})
	}
	use("first")
	l.apply(create(vm(nil)))
	use("second")
	if got := l.apply(l.change(providers.RestartIt, vm(nil), "memory")); !strings.HasSuffix(got, "redefine: done, off\nstart: done, running\n") {
		t.Fatalf("in another pool:\n%s", got)
	}
	if got := l.object(vm(nil)).Attrs.GetAttr("boot").GetAttr("kernel_sha256"); !got.RawEquals(digestOf("kernel")) {
		t.Errorf("in another pool the kernel is %#v", got)
	}
	wantText(t, "pools", `
pool first
  DEV.console.log
pool second
  DEV.initrd-KEYS
  DEV.kernel-6923dd1bc046
pool third
`, l.steady(l.Contents()))
	use("third")
	l.apply(l.change(providers.Destroy, cty.NilVal))
	wantText(t, "pools after its destruction", "pool first\npool second\npool third\n", l.Contents())
}

func TestPools(t *testing.T) {
	system := func(l *lab) {
		l.settings.Attrs = cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal("qemu:///system"), "pool": null})
	}
	named := func(l *lab) {
		l.settings.Attrs = cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal("qemu:///session"), "pool": cty.StringVal("mine")})
	}
	for _, tc := range []struct {
		name    string
		prepare func(l *lab)
		want    string // pools with vm.dev in them, or the failure
	}{
		{name: "the session's own", prepare: func(*lab) {}, want: "pool vmctl-lab-k7m2qd9x4r\n  DEV.initrd-KEYS\n  DEV.kernel-6923dd1bc046\n"},
		{name: "the system's own", prepare: system, want: "pool vmctl\n  DEV.initrd-KEYS\n  DEV.kernel-6923dd1bc046\n"},
		{
			name: "the system's default", want: "pool default\n  DEV.initrd-KEYS\n  DEV.kernel-6923dd1bc046\n",
			prepare: func(l *lab) {
				system(l)
				l.PutPool("default", libvirt.FakePool{Type: "dir", Path: "/var/lib/libvirt/images", Active: true})
			},
		},
		{
			name: "the system's default is not active", want: "pool default\npool vmctl\n  DEV.initrd-KEYS\n  DEV.kernel-6923dd1bc046\n",
			prepare: func(l *lab) {
				system(l)
				l.PutPool("default", libvirt.FakePool{Type: "dir", Path: "/var/lib/libvirt/images"})
			},
		},
		{
			name: "one's own was stopped", want: "pool vmctl-lab-k7m2qd9x4r\n  DEV.initrd-KEYS\n  DEV.kernel-6923dd1bc046\n",
			prepare: func(l *lab) { l.PutPool("vmctl-lab-"+lineage, libvirt.FakePool{Type: "dir", Path: "/elsewhere"}) },
		},
		{
			name: "the user's", want: "pool mine\n  DEV.initrd-KEYS\n  DEV.kernel-6923dd1bc046\n",
			prepare: func(l *lab) {
				named(l)
				l.PutPool("mine", libvirt.FakePool{Type: "fs", Path: "/mine", Active: true})
			},
		},
		{
			name: "the user's does not exist", prepare: named,
			want: `define: failed no_pool: find pool "mine": it does not exist: no storage pool with matching name 'mine'
  next: see what there is: virsh -c qemu:///session pool-list --all
`,
		},
		{
			name: "the user's is not active",
			prepare: func(l *lab) {
				named(l)
				l.PutPool("mine", libvirt.FakePool{Type: "dir", Path: "/mine"})
			},
			want: `define: failed no_pool: use pool "mine": it is not active
  next: start it: virsh -c qemu:///session pool-start mine
`,
		},
		{
			name: "the user's holds no files",
			prepare: func(l *lab) {
				named(l)
				l.PutPool("mine", libvirt.FakePool{Type: "logical", Path: "/dev/mine", Active: true})
			},
			want: `define: failed no_pool: use pool "mine": it is of type "logical", and vmctl needs one of files: dir, fs or netfs
  next: leave pool out of the provider's block: vmctl makes one
`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLab(t)
			tc.prepare(l)
			l.open()
			got := l.apply(create(vm(off)))
			if strings.HasSuffix(got, "define: done, off\n") {
				got = l.steady(l.Contents())
			}
			wantText(t, "pools", tc.want, got)
		})
	}
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func removeFile(t testing.TB, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}
