package libvirt_test

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/spec"
)

// qcow2 returns an empty image with a disk of so many MiB.
func qcow2(mib uint64) string {
	b := make([]byte, 4<<16)
	copy(b, "QFI\xfb")
	for at, v := range map[int]uint64{24: mib << 20, 40: 3 << 16, 48: 1 << 16} {
		binary.BigEndian.PutUint64(b[at:], v)
	}
	for at, v := range map[int]uint32{4: 3, 20: 16, 36: 1, 56: 1} {
		binary.BigEndian.PutUint32(b[at:], v)
	}
	return string(b)
}

// imageLab returns a lab with an image of 8 MiB.
func imageLab(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.file("files/debian.qcow2", qcow2(8))
	return l
}

// fromImage returns a vm that begins as an image, with a disk of so many MiB.
func fromImage(mib int64, changes map[string]cty.Value) cty.Value {
	all := map[string]cty.Value{
		"running": cty.False, "boot": cty.NullVal(cty.DynamicPseudoType), "port_forward": cty.ListValEmpty(forwards("auto").Type().ElementType()),
		"image":     image("debian.qcow2", ""),
		"root_disk": cty.ObjectVal(map[string]cty.Value{"size": cty.NumberIntVal(mib << 20)}),
		"cloud_init": cty.ObjectVal(map[string]cty.Value{
			"user_data": cty.StringVal("#cloud-config\nruncmd: [ls]\n"), "network_config": null,
		}),
	}
	for name, v := range changes {
		all[name] = v
	}
	return vm(all)
}

func image(source, sha256 string) cty.Value {
	sum := null
	if sha256 != "" {
		sum = cty.StringVal(sha256)
	}
	return cty.ObjectVal(map[string]cty.Value{"source": cty.StringVal(source), "sha256": sum})
}

// still replaces the parts of a seed that depend on fresh keys, and the digest of an image.
func still(s string) string {
	for _, r := range [][2]string{
		{`\.seed-[0-9a-f]{12}\.iso`, ".seed-DIGEST.iso"},
		{`-image-[0-9a-f]{16}`, "-image-DIGEST"},
		{` keys="[0-9a-f]+"`, ` keys="PUBLIC"`},
		{` host_key="ssh-ed25519 [^"]+"`, ` host_key="PUBLIC"`},
		{` sha256="[0-9a-f]+"`, ` sha256="DIGEST"`},
	} {
		s = regexp.MustCompile(r[0]).ReplaceAllString(s, r[1])
	}
	return s
}

// volumes lists the content of the pool.
func (l *lab) volumes() string { return still(l.plain(l.Contents())) }

func TestDefineOfAnImage(t *testing.T) {
	l := imageLab(t)
	got := l.apply(create(fromImage(64, nil)))
	wantText(t, "what was done", `
  . reading debian.qcow2 (262144 bytes)
  . uploading image vmctl-k7m2qd9x4r-image-DIGEST.qcow2 (262144 bytes) to pool vmctl-lab-k7m2qd9x4r
  . uploading image vmctl-k7m2qd9x4r-image-DIGEST.qcow2: 100% of 262144 bytes
define: done, off
`, regexp.MustCompile(`(?m)^.*: [0-9]?[0-9]% of.*\n`).ReplaceAllString(still(got), ""))
	wantText(t, "calls", `
define-pool vmctl-lab-k7m2qd9x4r at DIR/data/libvirt/pool
start-pool vmctl-lab-k7m2qd9x4r
upload vmctl-k7m2qd9x4r-image-DIGEST.qcow2
upload vmctl-k7m2qd9x4r-image-DIGEST.qcow2.complete
make-volume DEV.root.qcow2 of 67108864 bytes
upload DEV.seed-DIGEST.iso
define lab.dev
`, still(l.plain(l.calls())))
	wantGolden(t, "image.xml", still(l.plain(l.Configured(devID)))+"\n")

	o := l.object(fromImage(64, nil))
	if got := o.Attrs.GetAttr("root_disk").GetAttr("size"); !got.RawEquals(cty.NumberIntVal(64 << 20)) {
		t.Errorf("root_disk.size = %#v", got)
	}
	if got := o.Attrs.GetAttr("image"); !got.RawEquals(image("debian.qcow2", digestOf(qcow2(8)).AsString())) {
		t.Errorf("image = %#v", got)
	}
	if got := o.Attrs.GetAttr("additional_disk"); got.LengthInt() != 0 {
		t.Errorf("its own disk is shown among the additional ones: %#v", got)
	}
	l.Calls = nil
	wantText(t, "again", "define: already, off\n  = it exists\n", l.apply(create(fromImage(64, nil))))
	wantText(t, "calls", "\n\n", l.calls())
}

// An uploaded image is not read again, and its file is not needed.
func TestImageIsUploadedOnce(t *testing.T) {
	l := imageLab(t)
	sum := digestOf(qcow2(8)).AsString()
	l.apply(create(fromImage(64, nil)))
	l.Calls = nil
	if err := os.Remove(filepath.Join(l.dir, "files", "debian.qcow2")); err != nil {
		t.Fatal(err)
	}
	second := create(fromImage(32, map[string]cty.Value{"image": image("debian.qcow2", strings.ToUpper(sum))}))
	second.Address, second.Name, second.ID = spec.Address{Kind: spec.VM, Name: "ops"}, "lab.ops", otherID
	wantText(t, "what was done", "define: done, off\n", l.apply(second))
	wantText(t, "calls", `
make-volume OPS.root.qcow2 of 33554432 bytes
upload OPS.seed-DIGEST.iso
define lab.ops
`, still(l.calls()))

	// The image is deleted with the last VM that began as it.
	l.Calls = nil
	c := l.change(providers.Destroy, fromImage(64, nil))
	wantText(t, "the first goes", `
delete: done, gone
  = removed its root disk DIR/data/libvirt/pool/DEV.root.qcow2
  = removed volumes: DEV.seed-DIGEST.iso
`, still(l.apply(c)))
	wantText(t, "calls", "delete DEV.root.qcow2\nundefine lab.dev\ndelete DEV.seed-DIGEST.iso\n", still(l.calls()))
	if got := l.volumes(); !strings.Contains(got, "image-DIGEST.qcow2\n") || !strings.Contains(got, otherID+".root.qcow2") {
		t.Errorf("the pool holds\n%s", got)
	}
}

func TestDeleteRemovesTheImage(t *testing.T) {
	l := imageLab(t)
	l.apply(create(fromImage(64, nil)))
	l.Calls = nil
	wantText(t, "what was done", `
delete: done, gone
  = removed its root disk DIR/data/libvirt/pool/DEV.root.qcow2
  = removed volumes: DEV.seed-DIGEST.iso, vmctl-k7m2qd9x4r-image-DIGEST.qcow2.complete, vmctl-k7m2qd9x4r-image-DIGEST.qcow2
  = removed the empty pool vmctl-lab-k7m2qd9x4r
`, still(l.apply(l.change(providers.Destroy, fromImage(64, nil)))))
	// The disk is deleted before the domain: from the domain, the plan knows the owner of the
	// disk.
	wantText(t, "calls", `
delete DEV.root.qcow2
undefine lab.dev
delete DEV.seed-DIGEST.iso
delete vmctl-k7m2qd9x4r-image-DIGEST.qcow2.complete
delete vmctl-k7m2qd9x4r-image-DIGEST.qcow2
remove-pool vmctl-lab-k7m2qd9x4r
`, still(l.calls()))
}

// The remains of an interrupted upload do not have the content that their name promises.
func TestInterruptedUploadIsDoneAgain(t *testing.T) {
	l := imageLab(t)
	l.apply(create(fromImage(64, nil)))
	name := regexp.MustCompile(`vmctl-k7m2qd9x4r-image-[0-9a-f]{16}\.qcow2`).FindString(l.Contents())
	l.apply(l.change(providers.Destroy, fromImage(64, nil)))
	l.apply(create(vm(off))) // makes the pool
	l.PutFile(poolName, name, []byte("half"))
	l.Calls = nil
	second := create(fromImage(64, nil))
	second.Address, second.Name, second.ID = spec.Address{Kind: spec.VM, Name: "ops"}, "lab.ops", otherID
	l.apply(second)
	wantText(t, "calls", `
delete vmctl-k7m2qd9x4r-image-DIGEST.qcow2
upload vmctl-k7m2qd9x4r-image-DIGEST.qcow2
upload vmctl-k7m2qd9x4r-image-DIGEST.qcow2.complete
make-volume OPS.root.qcow2 of 67108864 bytes
upload OPS.seed-DIGEST.iso
define lab.ops
`, still(l.calls()))
	if got := l.Volume(poolName, name); string(got) != qcow2(8) {
		t.Errorf("the image holds %d bytes", len(got))
	}
}

// A failure at any point leaves nothing, neither keys nor a pool.
func TestDefineOfAnImageFails(t *testing.T) {
	zeros := strings.Repeat("0", 64)
	for _, tt := range []struct {
		name, want string
		change     map[string]cty.Value
		prepare    func(*lab)
	}{
		{
			"of a page", `
define: failed no_image: upload the image of vm.dev: page.qcow2 is no qcow2 image to start from: it is a web page: the address leads to a page about the image, or to a login
  next: look at it, and use the address of the image itself
`,
			map[string]cty.Value{"image": image("page.qcow2", "")},
			func(l *lab) { l.file("files/page.qcow2", "<html>") },
		},
		{
			"of another file", `
define: failed wrong_sha256: upload the image of vm.dev: checksum mismatch: debian.qcow2 is not the file that sha256 names
  seen: wanted sha256 ` + zeros + `
  seen: found sha256 ` + digestOf(qcow2(8)).AsString() + `
  next: see that it is the file that was meant: ls -l DIR/files/debian.qcow2
  next: if it is, write sha256 = "` + digestOf(qcow2(8)).AsString() + `"
`, map[string]cty.Value{"image": image("debian.qcow2", zeros)}, nil,
		},
		{
			"of no file", `
define: failed unreadable_file: read DIR/files/none.qcow2: open DIR/files/none.qcow2: no such file or directory
  next: make it readable: ls -l DIR/files/none.qcow2
`, map[string]cty.Value{"image": image("none.qcow2", "")}, nil,
		},
		{
			"larger than the disk", `
define: failed root_disk_too_small: make the root disk of vm.dev: its size is 67108864 bytes, and the disk in the image large.qcow2 has 2147483648
  next: write root_disk { size = "2GiB" } into vm.dev, or more
`,
			map[string]cty.Value{"image": image("large.qcow2", "")},
			func(l *lab) { l.file("files/large.qcow2", qcow2(2048)) },
		},
		{
			"where there is no room", `
define: failed disk_full: upload vmctl-k7m2qd9x4r-image-DIGEST.qcow2: the disk of pool vmctl-lab-k7m2qd9x4r is full
  seen: 262144 bytes are needed, and DIR/data/libvirt/pool has 1000
  next: make room: df -h DIR/data/libvirt/pool
  next: or choose another pool in the provider's block
`, nil, func(l *lab) { l.Free = 1000 },
		},
		{
			"where the upload breaks off", `
define: failed libvirt: upload vmctl-k7m2qd9x4r-image-DIGEST.qcow2 in pool vmctl-lab-k7m2qd9x4r: cannot write data to stream: Input/output error
`, nil, func(l *lab) {
				l.Refuses["upload"] = libvirt.ErrLibvirt("cannot write data to stream: Input/output error")
			},
		},
		{
			"where no disk can be made", `
define: failed disk_full: make the root disk of vm.dev: the disk of pool vmctl-lab-k7m2qd9x4r is full
  seen: DIR/data/libvirt/pool has 1099511627776 bytes left
  next: make room: df -h DIR/data/libvirt/pool
  next: or choose another pool in the provider's block
`, nil, func(l *lab) { l.Refuses["make-volume"] = libvirt.ErrLibvirt("qemu-img: No space left on device") },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := imageLab(t)
			if tt.prepare != nil {
				tt.prepare(l)
			}
			got := still(l.apply(create(fromImage(64, tt.change))))
			wantText(t, "what was done", tt.want, regexp.MustCompile(`(?m)^  \. .*\n`).ReplaceAllString(got, ""))
			if left := l.Contents(); left != "" {
				t.Errorf("what is left in pools:\n%s", left)
			}
			if left, err := filepath.Glob(filepath.Join(l.settings.Keys, "*")); err != nil || len(left) > 0 {
				t.Errorf("keys are left: %v %v", left, err)
			}
		})
	}
}

// The seed loses its keys when the guest has them, and later changes bring none back.
func TestUnkey(t *testing.T) {
	running := fromImage(64, map[string]cty.Value{"running": cty.True})
	l := imageLab(t)
	l.apply(create(running))
	before := l.Volume(poolName, l.seedName())
	if !strings.Contains(string(before), "multipart") { // the user's part, and the one with the keys
		t.Fatal("the first seed holds no keys")
	}
	l.Calls = nil
	wantText(t, "the first time", "done\n", l.unkey(running))
	wantText(t, "calls", `
upload DEV.seed-DIGEST.iso
define lab.dev
insert DEV.seed-DIGEST.iso into lab.dev
delete DEV.seed-DIGEST.iso
`, still(l.calls()))
	after := string(l.Volume(poolName, l.seedName()))
	if strings.Contains(after, "multipart") || !strings.Contains(after, "runcmd") || !strings.Contains(after, devID) {
		t.Error("the second seed holds more than the user wrote, or less, or another instance")
	}
	if !strings.Contains(l.Running(devID), l.seedName()) {
		t.Error("the drive of the running guest has the first seed")
	}
	l.Calls = nil
	wantText(t, "the second time", "already\n", l.unkey(running))
	wantText(t, "calls", "\n\n", l.calls())

	larger := fromImage(64, map[string]cty.Value{"memory": cty.NumberIntVal(512 << 20)})
	l.Put(devID, func(d *libvirt.FakeDomain) { d.Power, d.Running = libvirt.FakeOff, "" })
	l.apply(l.change(providers.Update, larger, "memory"))
	wantText(t, "calls of another change", "define lab.dev\n", l.calls())
}

// unkey carries out the step that removes the keys from the seed.
func (l *lab) unkey(want cty.Value) string {
	l.t.Helper()
	r, err := l.provider.Do(l.t.Context(), providers.Work{
		Step:   providers.Step{Op: "unkey", Address: dev, Object: devID, Name: "lab.dev"},
		Expect: l.object(want).Fingerprint, Want: want, Policy: policy(nil), Generation: 1,
	}, func(providers.Progress) {})
	if err != nil {
		return l.failure("unkey", err)
	}
	return string(r.How) + "\n"
}

// seedName returns the name of the seed in the pool.
func (l *lab) seedName() string {
	return regexp.MustCompile(devID + `\.seed-[0-9a-f]{12}\.iso`).FindString(l.Contents())
}

// A guest whose keys vmctl lost keeps them, until the spec asks for others: it gets these at
// its next start, and stays the same instance.
func TestLostKeysOfAnImage(t *testing.T) {
	want := fromImage(64, nil)
	l := imageLab(t)
	l.apply(create(want))
	wantText(t, "before", "done\n", l.unkey(want))
	if err := os.RemoveAll(l.settings.Keys); err != nil {
		t.Fatal(err)
	}
	wantText(t, "what is found", "KEYS/id_ed25519 is missing", l.lacks(want))
	l.Calls = nil
	more := fromImage(64, map[string]cty.Value{"cpus": cty.NumberIntVal(2)})
	l.apply(l.change(providers.Update, more, "cpus"))
	wantText(t, "calls without keys", "define lab.dev\n", still(l.calls()))
	l.Calls = nil
	l.apply(rekeyed(l.change(providers.Update, more)))
	wantText(t, "calls with new ones", `
upload DEV.seed-DIGEST.iso
define lab.dev
delete DEV.seed-DIGEST.iso
`, still(l.calls()))
	seed := string(l.Volume(poolName, l.seedName()))
	if !strings.Contains(seed, devID) || !strings.Contains(seed, "multipart") {
		t.Error("the guest would be set up anew, as another instance, or gets no keys")
	}
	wantText(t, "after it", "done\n", l.unkey(more))
	wantText(t, "what is found after it", "", l.lacks(more))
}

func TestRootDiskGrows(t *testing.T) {
	for _, tt := range []struct {
		name, calls string
		running     bool
	}{
		{"off", "resize-volume DEV.root.qcow2 to 134217728 bytes\ndefine lab.dev\n", false},
		{"running", "resize-disk DEV.root.qcow2 of lab.dev to 134217728 bytes\ndefine lab.dev\n", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			power := map[string]cty.Value{"running": cty.BoolVal(tt.running)}
			l := imageLab(t)
			l.apply(create(fromImage(64, power)))
			l.Calls = nil
			l.apply(l.change(providers.Update, fromImage(128, power), "root_disk.size"))
			wantText(t, "calls", tt.calls, l.calls())
			if got := l.object(fromImage(128, power)).Attrs.GetAttr("root_disk").GetAttr("size"); !got.RawEquals(cty.NumberIntVal(128 << 20)) {
				t.Errorf("root_disk.size = %#v", got)
			}
			wantText(t, "to shrink it", `
redefine: refused disk_shrinks: change vm.dev: its root disk has 134217728 bytes, and a disk does not shrink to 67108864: what is at its end would be lost
  next: write root_disk { size = "128MiB" } into vm.dev
`, l.apply(l.change(providers.Update, fromImage(64, power), "root_disk.size")))
		})
	}
}

// A root disk that somebody has written to, and whose domain is gone, is never overwritten; a
// root disk without data is made again.
func TestRootDiskThatIsInTheWay(t *testing.T) {
	l := imageLab(t)
	l.apply(create(vm(off))) // makes the pool
	at := filepath.Join(l.dir, "data", "libvirt", "pool", otherID+".root.qcow2")
	c := create(fromImage(64, nil))
	c.Address, c.Name, c.ID = spec.Address{Kind: spec.VM, Name: "ops"}, "lab.ops", otherID

	l.PutVolume(poolName, libvirt.FakeVolume{Name: otherID + ".root.qcow2", Format: "qcow2", Capacity: 64 << 20, Allocation: 5 << 20, Backing: ownImage})
	l.Calls = nil
	wantText(t, "with data", `
define: refused root_disk_left: define vm.ops: the root disk of an earlier one is still there, and its domain is not
  seen: `+l.plain(at)+` holds 5242880 bytes
  next: keep it: move it out of the pool, then: virsh -c qemu:///session pool-refresh vmctl-lab-k7m2qd9x4r
  next: or throw away what is on it: virsh -c qemu:///session vol-delete --pool vmctl-lab-k7m2qd9x4r OPS.root.qcow2
`, l.apply(c))
	wantText(t, "calls", "\n\n", l.calls())

	gone := providers.Change{Address: c.Address, Kind: spec.VM, Action: providers.Forget, Name: c.Name, ID: c.ID}
	wantText(t, "forgotten, with data", `
delete: already_gone, gone
  = its root disk stays, for 5242880 bytes were written to it; to delete it: virsh -c qemu:///session vol-delete --pool vmctl-lab-k7m2qd9x4r OPS.root.qcow2
`, l.apply(gone))
	wantText(t, "calls", "\n\n", l.calls())

	l.PutVolume(poolName, libvirt.FakeVolume{Name: otherID + ".root.qcow2", Format: "qcow2", Capacity: 64 << 20, Allocation: 200 << 10, Backing: ownImage})
	if got := l.apply(c); !strings.Contains(got, "define: done, off\n  = removed what an earlier one left: "+otherID+".root.qcow2\n") {
		t.Errorf("without data:\n%s", got)
	}
}

// ownImage is the path of an image that this project uploaded.
const ownImage = "/pool/vmctl-k7m2qd9x4r-image-0123456789abcdef.qcow2"

// A disk of the spec with the name of a vm's root disk is no root disk.
func TestDiskOfTheNameOfARootDisk(t *testing.T) {
	const volume = devID + ".root.qcow2"
	l := imageLab(t)
	c := l.changeOfDisk(providers.Create, disk(8*mib, "qcow2"))
	c.Address, c.Name, c.ID = spec.Address{Kind: spec.Disk, Name: "mine"}, devID+".root", otherID
	l.apply(c)
	stays := func(when string) {
		t.Helper()
		if got := l.Contents(); !strings.Contains(got, volume+"\n  "+volume+".vmctl\n") {
			t.Errorf("%s, there is\n%s", when, got)
		}
	}
	stays("once it is made")
	if got := l.apply(create(vm(off))); !strings.HasSuffix(got, "define: done, off\n") {
		t.Errorf("a vm without an own disk:\n%s", got)
	}
	stays("when vm.dev is made")
	if got := l.apply(l.change(providers.Update, vm(map[string]cty.Value{"running": cty.False, "cpus": cty.NumberIntVal(3)}), "cpus")); !strings.Contains(got, "redefine: done") {
		t.Errorf("a change:\n%s", got)
	}
	stays("when vm.dev is changed")
	if got := l.apply(l.change(providers.Destroy, vm(off))); !strings.Contains(got, "delete: done") {
		t.Errorf("its end:\n%s", got)
	}
	stays("when vm.dev is deleted")
	gone := providers.Change{Address: dev, Kind: spec.VM, Action: providers.Forget, Name: "lab.dev", ID: devID}
	wantText(t, "a vm that went by hand is forgotten", "delete: already_gone, gone\n", l.apply(gone))
	stays("when vm.dev is forgotten")
	if got := l.apply(create(fromImage(64, nil))); !strings.Contains(got, "define: failed") {
		t.Errorf("a vm of an image:\n%s", got)
	}
	stays("when vm.dev could not be made")
}

// A root disk that is the base of other volumes is not deleted with its VM.
func TestRootDiskThatOthersBeginFrom(t *testing.T) {
	stopped := fromImage(64, map[string]cty.Value{"running": cty.False})
	root := func(l *lab) string { return filepath.Join(l.dir, "data/libvirt/pool/"+devID+".root.qcow2") }
	for _, tc := range []struct {
		name, who  string
		begin, end func(l *lab)
	}{
		{"a volume", "DIR/data/libvirt/pool/theirs.qcow2", func(l *lab) {
			l.PutVolume(poolName, libvirt.FakeVolume{Name: "theirs.qcow2", Format: "qcow2", Capacity: 64 * mib, Backing: root(l)})
		}, func(l *lab) { l.DropVolume(poolName, "theirs.qcow2") }},
		{"another domain", "domain theirs", func(l *lab) {
			if err := l.Define(t.Context(), `<domain type="qemu"><name>theirs</name><uuid>`+otherID+`</uuid><devices><disk type="file" device="disk">`+
				`<source file="/elsewhere"></source><backingStore type="file"><source file="`+root(l)+`"></source></backingStore>`+
				`<target dev="vda"></target></disk></devices></domain>`); err != nil {
				t.Fatal(err)
			}
		}, func(l *lab) { l.Drop(otherID) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := imageLab(t)
			l.apply(create(stopped))
			tc.begin(l)
			got := l.plain(l.apply(l.change(providers.Destroy, stopped)))
			if !strings.HasPrefix(got, "delete: refused disk_in_use: ") || !strings.Contains(got, "  seen: "+tc.who+" begins from it\n") {
				t.Errorf("got\n%s", got)
			}
			if !strings.Contains(l.Contents(), devID+".root.qcow2\n") || l.Configured(devID) == "" {
				t.Errorf("something is gone: %s", l.Contents())
			}
			tc.end(l)
			if got := l.apply(l.change(providers.Destroy, stopped)); !strings.Contains(got, "delete: done") {
				t.Errorf("without it:\n%s", got)
			}
		})
	}
}

// A file at the time of the plan may be a pipe by now: no step waits for its writer, and
// nothing is begun.
func TestImageThatBecameAPipe(t *testing.T) {
	l := imageLab(t)
	at := filepath.Join(l.dir, "files", "debian.qcow2")
	if err := errors.Join(os.Remove(at), exec.Command("mkfifo", at).Run()); err != nil {
		t.Fatal(err)
	}
	wantText(t, "an image", `
define: failed unreadable_file: read DIR/files/debian.qcow2: it is no regular file
  next: make it readable: ls -l DIR/files/debian.qcow2
`, l.plain(l.apply(create(fromImage(64, nil)))))

	kernel := filepath.Join(l.dir, "files", "vmlinuz")
	if err := errors.Join(os.RemoveAll(kernel), exec.Command("mkfifo", kernel).Run()); err != nil {
		t.Fatal(err)
	}
	if got := l.apply(create(vm(off))); !strings.Contains(l.plain(got), "failed unreadable_file: read DIR/files/vmlinuz: it is no regular file") {
		t.Errorf("a kernel:\n%s", got)
	}
}

func TestRootDiskThatIsGone(t *testing.T) {
	want := fromImage(64, nil)
	l := imageLab(t)
	l.apply(create(want))
	l.DropVolume(poolName, devID+".root.qcow2")
	o := l.object(want)
	if got := o.Attrs.GetAttr("root_disk"); !got.IsNull() {
		t.Errorf("root_disk = %#v", got)
	}
	if f := o.Findings[0]; f.Kind != providers.FindMissing || !strings.HasSuffix(f.Evidence[0], devID+".root.qcow2 is gone") {
		t.Errorf("found %v", o.Findings)
	}
	wantText(t, "to change it", `
redefine: failed no_root_disk: change vm.dev: its root disk DIR/data/libvirt/pool/DEV.root.qcow2 is gone
  next: see what there is: virsh -c qemu:///session vol-list POOL
  next: to begin again from the image: vmctl apply --allow-replace=vm.dev
`, l.apply(l.change(providers.Update, fromImage(128, nil), "root_disk.size")))
}

// What is seen depends neither on what is wanted nor on what was.
func TestSeenWhateverIsWanted(t *testing.T) {
	l := imageLab(t)
	l.apply(create(fromImage(64, nil)))
	sum := digestOf(qcow2(8)).AsString()
	for _, state := range []string{"made", "root disk gone"} {
		if state != "made" {
			l.DropVolume(poolName, devID+".root.qcow2")
		}
		plain := l.known(cty.NilVal, cty.NilVal)
		for _, want := range []cty.Value{
			fromImage(64, nil), fromImage(128, nil), vm(off), fromImage(64, map[string]cty.Value{"name": cty.StringVal("other")}),
			fromImage(64, map[string]cty.Value{"image": image("debian.qcow2", sum)}),
			fromImage(64, map[string]cty.Value{"image": image("other.qcow2", "")}),
		} {
			for _, prior := range []cty.Value{cty.NilVal, fromImage(64, nil), want} {
				if diff := cmp.Diff(plain.GoString(), l.known(prior, want).GoString()); diff != "" {
					t.Errorf("%s: with the wish %#v:\n%s", state, want, diff)
				}
			}
		}
	}
}

// Nobody calls a root disk gone whose pool could not be listed.
func TestRootDiskThatCannotBeSeen(t *testing.T) {
	l := imageLab(t)
	want := fromImage(64, off)
	l.apply(create(want))
	l.Refuses["pools"] = errors.New("busy")
	o := l.object(want)
	wantText(t, "its source", "debian.qcow2", o.Attrs.GetAttr("image").GetAttr("source").AsString())
	if got := o.Unreadable["root_disk.size"]; !strings.HasSuffix(got, "list the pools of qemu:///session: busy") {
		t.Errorf("its size is unreadable: %q", got)
	}
}

// known returns the attributes of vm.dev for a query with that record and spec.
func (l *lab) known(prior, want cty.Value) cty.Value {
	l.t.Helper()
	inv, err := l.provider.Observe(l.t.Context(), providers.Query{Known: []providers.Known{
		{Address: dev, Kind: spec.VM, ID: devID, Name: "lab.dev", Prior: prior, Want: want},
	}})
	if err != nil || len(inv.Objects) != 1 {
		l.t.Fatalf("%v %+v", err, inv)
	}
	return inv.Objects[0].Attrs
}

func TestStepsOfAnImage(t *testing.T) {
	l := imageLab(t)
	c := create(fromImage(64, map[string]cty.Value{"running": cty.True}))
	c.Policy = policy(map[string]cty.Value{
		"ssh":      cty.ObjectVal(map[string]cty.Value{"wait": cty.True, "wait_timeout": cty.NumberIntVal(300)}),
		"timeouts": cty.ObjectVal(map[string]cty.Value{"create": cty.NumberIntVal(7), "delete": cty.NumberIntVal(9)}),
	})
	steps, err := l.provider.Steps(c)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, s := range steps {
		got.WriteString(strings.Join([]string{s.Op, string(s.Phase), string(s.Class), s.Timeout.String()}, " ") + "\n")
	}
	wantText(t, "steps", `
define make contractual 7s
start up contractual 10m0s
wait_ssh ready contractual 5m0s
unkey tidy diagnostic 1m0s
`, got.String())
	wantText(t, "what the first may leave", "domain lab.dev ("+devID+") at qemu:///session\n"+
		"volumes DEV.root.qcow2, DEV.seed-*, vmctl-k7m2qd9x4r-image-*\nkeys in KEYS\n",
		l.plain(strings.Join(steps[0].Leaves, "\n")+"\n"))
}

func TestCheckOfCloudInit(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		changes    map[string]cty.Value
	}{
		{"as it should be", "", nil},
		{
			"without an image", "cloud_init: Nothing reads cloud_init: Only a guest that begins as an image is set up by cloud-init: set `image`, or remove the block.\n",
			map[string]cty.Value{"image": cty.NullVal(cty.DynamicPseudoType), "boot": vm(nil).GetAttr("boot")},
		},
		{
			"that begins wrongly", "cloud_init.user_data: Unusable user_data: cloud-init cannot use it: it begins with \"users:\", which cloud-init passes over: begin with \"#cloud-config\" for settings, or with \"#!/bin/sh\" for a script.\n",
			map[string]cty.Value{"cloud_init": cty.ObjectVal(map[string]cty.Value{"user_data": cty.StringVal("users:\n- x\n"), "network_config": null})},
		},
		{
			"that is too long", "cloud_init.network_config: Unusable network_config: cloud-init cannot use it: it has 1048577 bytes, and 1048576 are the most.\n",
			map[string]cty.Value{"cloud_init": cty.ObjectVal(map[string]cty.Value{"user_data": null, "network_config": cty.StringVal(strings.Repeat("x", 1<<20+1))})},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got strings.Builder
			for _, f := range libvirt.Type(libvirt.Host{}).Check(spec.VM, fromImage(64, tt.changes)) {
				got.WriteString(f.Path + ": " + f.Summary + ": " + f.Detail + "\n")
			}
			wantText(t, "flaws", tt.want, got.String())
		})
	}
}

// Sizes of disks that would be rounded are refused before anything is made.
func TestCheckOfSizes(t *testing.T) {
	root := func(size cty.Value) cty.Value {
		return fromImage(64, map[string]cty.Value{"root_disk": cty.ObjectVal(map[string]cty.Value{"size": size})})
	}
	const odd = 64*mib + 511
	for _, tt := range []struct {
		name, want string
		kind       spec.Kind
		attrs      cty.Value
	}{
		{"a root disk", "", spec.VM, root(cty.NumberIntVal(64*mib + 512))},
		{"a root disk whose size is known later", "", spec.VM, root(cty.UnknownVal(cty.Number))},
		{"a vm without a root disk", "", spec.VM, vm(map[string]cty.Value{"root_disk": cty.NullVal(cty.Object(map[string]cty.Type{"size": cty.Number}))})},
		{
			"a root disk with a part of a sector", "root_disk.size: Impossible size: A disk has whole sectors of 512 bytes, and 67109375 is not a multiple of 512. The next larger size is `67109376B`.\n",
			spec.VM, root(cty.NumberIntVal(odd)),
		},
		{"a disk", "", spec.Disk, disk(64*mib+512, "raw")},
		{
			"a disk with a part of a sector", "size: Impossible size: A disk has whole sectors of 512 bytes, and 67109375 is not a multiple of 512. The next larger size is `67109376B`.\n",
			spec.Disk, disk(odd, "raw"),
		},
	} {
		var got strings.Builder
		for _, f := range libvirt.Type(libvirt.Host{}).Check(tt.kind, tt.attrs) {
			got.WriteString(f.Path + ": " + f.Summary + ": " + f.Detail + "\n")
		}
		wantText(t, tt.name, tt.want, got.String())
	}
}

func TestHostname(t *testing.T) {
	for _, tt := range []struct{ name, key, want string }{
		{"dev", "", "dev"},
		{"web", "a", "web-a"},
		{"Web_1", "Zürich.4", "web-1-z-rich-4"},
		{"_", "", "guest"},
		{strings.Repeat("a", 62), "-b", strings.Repeat("a", 62)},
	} {
		if got := libvirt.Hostname(tt.name, tt.key); got != tt.want {
			t.Errorf("hostname of %s[%q] = %s, want %s", tt.name, tt.key, got, tt.want)
		}
	}
}
