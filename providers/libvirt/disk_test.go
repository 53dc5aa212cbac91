package libvirt_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/spec"
)

const cacheID = "22222222-2222-8333-8444-555555555555"

var cache = spec.Address{Kind: spec.Disk, Name: "cache"}

const (
	mib      = 1 << 20
	cacheVol = "lab.cache.qcow2"
)

// changeOfDisk returns a change of disk.cache as it is now.
func (l *lab) changeOfDisk(action providers.Action, want cty.Value, paths ...string) providers.Change {
	l.t.Helper()
	c := providers.Change{
		Address: cache, Kind: spec.Disk, Action: action, Name: "lab.cache", ID: cacheID,
		Want: want, Policy: policy(nil), Generation: 2,
	}
	if o := l.diskIn(l.see()); o != nil {
		c.Object, c.ID = o, o.ID
	}
	for _, path := range paths {
		c.Edits = append(c.Edits, providers.Edit{Path: path})
	}
	return c
}

// see observes disk.cache and vm.dev.
func (l *lab) see(more ...providers.Known) providers.Inventory {
	l.t.Helper()
	known := append([]providers.Known{
		{Address: dev, Kind: spec.VM, ID: devID, Name: "lab.dev", Want: vm(nil)},
		{Address: cache, Kind: spec.Disk, ID: cacheID, Name: "lab.cache", Want: disk(8*mib, "qcow2")},
	}, more...)
	inv, err := l.provider.Observe(l.t.Context(), providers.Query{Known: known})
	if err != nil {
		l.t.Fatal(err)
	}
	return inv
}

func (l *lab) diskIn(inv providers.Inventory) *providers.Object {
	for _, o := range inv.Objects {
		if o.Kind == spec.Disk && o.Owner != nil && o.Owner.Address == cache && o.ID == cacheID {
			return &o
		}
	}
	return nil
}

// withDisk returns a lab with disk.cache of 8 MiB in it.
func withDisk(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	if got := l.apply(l.changeOfDisk(providers.Create, disk(8*mib, "qcow2"))); !strings.Contains(got, "define: done") {
		t.Fatalf("make disk.cache:\n%s", got)
	}
	l.Calls = nil
	return l
}

// useCache gives disk.cache to vm.dev.
func useCache(c providers.Change) providers.Change {
	c.Uses = map[spec.Address]providers.Used{cache: {Kind: spec.Disk, ID: cacheID, Name: "lab.cache"}}
	return c
}

func dev2(changes map[string]cty.Value) cty.Value {
	all := map[string]cty.Value{"additional_disk": additional("cache")}
	for name, v := range changes {
		all[name] = v
	}
	return vm(all)
}

func TestDiskSizesAreExact(t *testing.T) {
	l := newLab(t)
	odd := 8*mib + 512
	wantText(t, "what was done", `
  . making lab.cache.qcow2 (8389120 bytes) in pool vmctl-lab-k7m2qd9x4r
define: done
`, l.apply(l.changeOfDisk(providers.Create, disk(int64(odd), "qcow2"))))
	wantText(t, "calls", `
define-pool vmctl-lab-k7m2qd9x4r at DIR/data/libvirt/pool
start-pool vmctl-lab-k7m2qd9x4r
upload lab.cache.qcow2.vmctl
make-volume lab.cache.qcow2 of 8388608 bytes
resize-volume lab.cache.qcow2 to 8389120 bytes
`, l.plain(l.calls()))
	if got := number(l.diskIn(l.see()).Attrs.GetAttr("size")); got != fmt.Sprint(odd) {
		t.Errorf("size %s, want %d", got, odd)
	}
}

func TestRawDisk(t *testing.T) {
	l := newLab(t)
	if got := l.apply(l.changeOfDisk(providers.Create, disk(8*mib, "raw"))); !strings.Contains(got, "define: done") {
		t.Fatal(got)
	}
	o := l.diskIn(l.see())
	if got := o.Attrs.GetAttr("format"); got.AsString() != "raw" || o.Name != "lab.cache" {
		t.Errorf("%s is %#v", o.Name, got)
	}
	wantText(t, "what there is", "pool "+poolName+"\n  lab.cache.raw\n  lab.cache.raw.vmctl\n", l.Contents())
}

func number(v cty.Value) string { return v.AsBigFloat().Text('f', 0) }

// A creation that fails at any point leaves nothing, or remains that the next one completes.
func TestDiskThatCannotBeMade(t *testing.T) {
	for _, tc := range []struct{ op, cause, says string }{
		{"upload", "cannot write: No space left on device", "disk_full: make volume lab.cache.qcow2: the disk of pool vmctl-lab-k7m2qd9x4r is full"},
		{"make-volume", "cannot write: No space left on device", "disk_full: make volume lab.cache.qcow2: the disk of pool vmctl-lab-k7m2qd9x4r is full"},
		{"make-volume", "open: Permission denied", "no_permission: make volume lab.cache.qcow2 in pool vmctl-lab-k7m2qd9x4r: open: Permission denied"},
	} {
		l := newLab(t)
		c := l.changeOfDisk(providers.Create, disk(8*mib, "qcow2"))
		l.Refuses[tc.op] = libvirt.ErrLibvirt(tc.cause)
		if got := l.apply(c); !strings.Contains(got, "define: failed "+tc.says) || !strings.Contains(got, "next: ") {
			t.Errorf("%s: %s", tc.op, got)
		}
		if got := l.Contents(); got != "" {
			t.Errorf("%s: there is %s", tc.op, got)
		}
		delete(l.Refuses, tc.op)
		if got := l.apply(c); !strings.Contains(got, "define: done") {
			t.Errorf("%s, again: %s", tc.op, got)
		}
	}
}

// A full disk is called full, too, when only the mark of an imported volume does not fit.
func TestMarkThatDoesNotFit(t *testing.T) {
	l := withDisk(t)
	l.DropVolume(poolName, cacheVol+".vmctl")
	c := l.changeOfDisk(providers.Import, disk(8*mib, "qcow2"))
	c.Mark = &providers.MarkEdit{}
	for _, o := range l.see().Objects {
		if o.Kind == spec.Disk {
			c.Object, c.ID = &o, o.ID
		}
	}
	l.Free = 5
	if got := l.plain(l.apply(c)); !strings.Contains(got, "failed disk_full: write the mark of lab.cache: the disk of pool "+poolName+" is full\n  seen: 4096 bytes are needed, and DIR/data/libvirt/pool has 5\n") {
		t.Errorf("what was done: %s", got)
	}
	l.Free = 1 << 20
	if got := l.apply(c); !strings.Contains(got, ": done") {
		t.Errorf("again: %s", got)
	}
}

// Two data directories make one disk at once: it belongs to the first that marks it,
// whichever makes its volume, and the other one reports that.
func TestDiskThatIsMadeElsewhere(t *testing.T) {
	elsewhere := "define: stale made_elsewhere: define disk.cache: another data directory of this project has made it meanwhile: volume lab.cache.qcow2 ("
	for _, tc := range []struct {
		name         string
		when         string // the volume whose making starts the other directory; "": before the step
		killed       bool   // the other is killed before it makes the volume
		mine, theirs string
		of           string
	}{
		{"before the step", "", false, elsewhere + otherID, "define: done", otherID},
		{"before the step, and they were killed", "", true, elsewhere + otherID, "", otherID},
		{"before its mark", cacheVol + ".vmctl", false, elsewhere + otherID, "define: done", otherID},
		{"before its mark, and they were killed", cacheVol + ".vmctl", true, elsewhere + otherID, "", otherID},
		{"before its volume", cacheVol, false, "define: already\n  = it exists", elsewhere + cacheID, cacheID},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLab(t)
			l.settings.Project.DataDirID = "one"
			l.open()
			c := l.changeOfDisk(providers.Create, disk(8*mib, "qcow2"))
			theirs := ""
			define := func() {
				l.BeforeStore = nil
				own, other := l.provider, c
				other.ID = otherID
				l.settings.Project.DataDirID = "two"
				l.open()
				theirs = l.apply(other)
				l.provider, l.settings.Project.DataDirID = own, "one"
				if tc.killed {
					l.DropVolume(poolName, cacheVol)
					theirs = ""
				}
			}
			if tc.when == "" {
				define()
			}
			l.BeforeStore = func(volume string) {
				if volume == tc.when {
					define()
				}
			}
			if mine := l.apply(c); !strings.Contains(mine, tc.mine) || !strings.Contains(theirs, tc.theirs) {
				t.Errorf("mine says\n%s\nand theirs\n%s", mine, theirs)
			}
			there := "pool " + poolName + "\n  " + cacheVol + "\n  " + cacheVol + ".vmctl\n"
			if tc.killed && tc.when != "" { // the next apply makes it
				there = "pool " + poolName + "\n  " + cacheVol + ".vmctl\n"
			}
			wantText(t, "what there is", there, l.Contents())
			if mark, err := l.Head(t.Context(), poolName, cacheVol+".vmctl", 4096); err != nil || !strings.Contains(string(mark), `"of":"`+tc.of+`"`) {
				t.Errorf("its mark is %s, %v", mark, err)
			}
		})
	}
}

// The next creation completes all remains of a killed one.
func TestDiskThatIsHalfMade(t *testing.T) {
	for _, tc := range []struct {
		name  string
		halve func(l *lab)
		how   string
	}{
		{"no volume yet", func(l *lab) { l.DropVolume(poolName, cacheVol) }, "define: done"},
		{"an empty mark", func(l *lab) {
			l.DropVolume(poolName, cacheVol)
			l.PutFile(poolName, cacheVol+".vmctl", make([]byte, 4096))
		}, "define: done"},
		{"an empty mark of no length", func(l *lab) {
			l.DropVolume(poolName, cacheVol)
			l.PutFile(poolName, cacheVol+".vmctl", nil)
		}, "define: done"},
		{"all but the record", func(*lab) {}, "define: already"},
		{"not grown to its last sector", func(l *lab) {
			l.PutVolume(poolName, libvirt.FakeVolume{Name: cacheVol, Format: "qcow2", Capacity: 8*mib - 512})
		}, "define: already"},
	} {
		l := withDisk(t)
		tc.halve(l)
		c := l.changeOfDisk(providers.Create, disk(8*mib, "qcow2"))
		c.Object = nil
		c.ID = cacheID
		if got := l.apply(c); !strings.Contains(got, tc.how) {
			t.Errorf("%s: %s", tc.name, got)
		}
		if o := l.diskIn(l.see()); o == nil || number(o.Attrs.GetAttr("size")) != "8388608" {
			t.Errorf("%s: afterwards there is %+v", tc.name, o)
		}
	}
}

func TestDiskGrows(t *testing.T) {
	for _, tc := range []struct{ name, running, call string }{
		{"off", "", "resize-volume lab.cache.qcow2 to 16777216 bytes"},
		{"on", "true", "resize-disk lab.cache.qcow2 of lab.dev to 16777216 bytes"},
	} {
		l := withDisk(t)
		want := dev2(off)
		if tc.running != "" {
			want = dev2(nil)
		}
		if got := l.apply(useCache(create(want))); !strings.Contains(got, "define: done") {
			t.Fatal(got)
		}
		l.Calls = nil
		c := l.changeOfDisk(providers.Update, disk(16*mib, "qcow2"), "size")
		c.Generation = 3
		if got := l.apply(c); !strings.Contains(got, "grow: done") {
			t.Errorf("%s: %s", tc.name, got)
		}
		wantText(t, tc.name, tc.call+"\noverwrite lab.cache.qcow2.vmctl\n", l.calls())
		if got := l.apply(l.changeOfDisk(providers.Update, disk(12*mib, "qcow2"), "size")); !strings.Contains(got, "refused shrinks: grow disk.cache: it has 16777216 bytes") {
			t.Errorf("%s, smaller: %s", tc.name, got)
		}
	}
}

// theirs adds somebody else's domain that has disk.cache.
func (l *lab) theirs(state func(d *libvirt.FakeDomain, xml string)) {
	path := l.diskIn(l.see()).Attrs.GetAttr("path").AsString()
	l.Put(otherID, func(d *libvirt.FakeDomain) {
		xml := "<domain type='qemu'><name>theirs</name><uuid>" + otherID + "</uuid><devices><disk type='file' device='disk'><source file=\"" + path +
			"\"/><target dev='vda' bus='virtio'/></disk></devices></domain>"
		d.Name, d.Configured = "theirs", xml
		state(d, xml)
	})
}

func TestDiskThatAStrangerRunsWith(t *testing.T) {
	l := withDisk(t)
	l.theirs(func(d *libvirt.FakeDomain, xml string) { d.Running, d.Power = xml, libvirt.FakeRunning })
	c := l.changeOfDisk(providers.Update, disk(16*mib, "qcow2"), "size")
	if f := c.Object.Findings; len(f) != 1 || f[0].Kind != providers.FindHeldLock || !strings.Contains(f[0].Evidence[0], "domain theirs ("+otherID+"), which is not vmctl's, runs with it") {
		t.Errorf("findings %+v", f)
	}
	var refusal *providers.Problem
	if _, err := l.provider.Steps(c); !errors.As(err, &refusal) || !strings.Contains(refusal.Error(), "domain theirs") {
		t.Errorf("growing it: %v", err)
	}
	c.Object.Findings = nil // the domain was started after the plan was made
	if got := l.apply(c); !strings.Contains(got, "grow: refused disk_in_use: grow disk.cache: volume DIR/data/libvirt/pool/lab.cache.qcow2 is used by domain theirs") {
		t.Errorf("growing it: %s", got)
	}
	if len(l.Calls) > 0 {
		t.Errorf("calls %v", l.Calls)
	}
}

// A file that a process has open is not deleted from under it.
func TestDiskThatAProcessHasOpen(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(l *lab) providers.Change
		file   string
		doing  string
	}{
		"a disk": {func(l *lab) providers.Change {
			want := disk(8*mib, "qcow2")
			l.apply(l.changeOfDisk(providers.Create, want))
			return l.changeOfDisk(providers.Destroy, want)
		}, "lab.cache.qcow2", "delete disk.cache"},
		"a root disk": {func(l *lab) providers.Change {
			want := fromImage(64, map[string]cty.Value{"running": cty.False})
			l.apply(create(want))
			return l.change(providers.Destroy, want)
		}, "DEV.root.qcow2", "delete the root disk of vm.dev"},
	} {
		t.Run(name, func(t *testing.T) {
			l := imageLab(t)
			c := tt.change(l)
			at := filepath.Join(l.dir, "data/libvirt/pool", strings.Replace(tt.file, "DEV", devID, 1))
			fd := filepath.Join(l.proc, "4711", "fd")
			if err := errors.Join(os.MkdirAll(fd, 0o700), os.Symlink(at, filepath.Join(fd, "3"))); err != nil {
				t.Fatal(err)
			}
			l.Calls = nil
			wantText(t, "what was said", `
delete: refused disk_in_use: `+tt.doing+`: another process has it open
  seen: DIR/data/libvirt/pool/`+tt.file+` is open in process 4711 (name unknown)
  next: end what uses it: fuser -v DIR/data/libvirt/pool/`+tt.file+` says who does
`, l.apply(c))
			if len(l.Calls) > 0 {
				t.Errorf("calls %v", l.Calls)
			}
		})
	}
}

// A disk that is the base of an overlay is not deleted: the overlay's owner would lose its
// data.
func TestDiskThatAnOverlayBeginsFrom(t *testing.T) {
	l := withDisk(t)
	at := l.diskIn(l.see()).Attrs.GetAttr("path").AsString()
	l.PutVolume(poolName, libvirt.FakeVolume{Name: "theirs.qcow2", Format: "qcow2", Capacity: 16 * mib, Backing: at})
	wantText(t, "what was done", `
delete: refused disk_in_use: delete disk.cache: volume DIR/data/libvirt/pool/lab.cache.qcow2 is what DIR/data/libvirt/pool/theirs.qcow2 begins from, and would be lost with it
  seen: DIR/data/libvirt/pool/theirs.qcow2 begins from it
  next: delete DIR/data/libvirt/pool/theirs.qcow2 first, if nobody needs it
  next: or keep what it begins from: removed { from = disk.cache, destroy = false }
`, l.plain(l.apply(l.changeOfDisk(providers.Destroy, disk(8*mib, "qcow2")))))
	if got := l.Contents(); !strings.Contains(got, cacheVol+"\n") {
		t.Errorf("there is\n%s", got)
	}

	l.DropVolume(poolName, "theirs.qcow2")
	if got := l.apply(l.changeOfDisk(providers.Destroy, disk(8*mib, "qcow2"))); !strings.Contains(got, "delete: done") {
		t.Errorf("without it:\n%s", got)
	}
}

// A domain that runs from a snapshot uses the disk under it, in whatever folder the overlay
// is.
func TestDiskUnderASnapshotIsInUse(t *testing.T) {
	l := withDisk(t)
	at := l.diskIn(l.see()).Attrs.GetAttr("path").AsString()
	l.theirs(func(d *libvirt.FakeDomain, xml string) {
		over := `<source file='/elsewhere/snap.qcow2'/><backingStore type='file'><source file='/elsewhere/middle.qcow2'/>` +
			`<backingStore type='file'><source file='` + at + `'/><backingStore/></backingStore></backingStore>`
		d.Running, d.Power = strings.Replace(xml, `<source file="`+at+`"/>`, over, 1), libvirt.FakeRunning
		d.Configured = strings.Replace(xml, at, "/elsewhere/snap.qcow2", 1)
	})
	held := slices.ContainsFunc(l.see().Objects, func(o providers.Object) bool {
		return o.Owner == nil && slices.Contains(o.Holds, providers.Claim{Kind: providers.ClaimDisk, Key: cacheID})
	})
	if !held {
		t.Error("the plan does not know who has it")
	}
	if got := l.apply(l.changeOfDisk(providers.Destroy, disk(8*mib, "qcow2"))); !strings.Contains(got, "delete: refused disk_in_use") {
		t.Errorf("delete:\n%s", got)
	}
}

// A disk that only the running domain has, attached without vmctl, is in use.
func TestDiskThatIsAttachedToWhatRunsAlone(t *testing.T) {
	l := withDisk(t)
	l.theirs(func(d *libvirt.FakeDomain, xml string) {
		d.Running, d.Power = xml, libvirt.FakeRunning
		d.Configured = "<domain type='qemu'><name>theirs</name><uuid>" + otherID + "</uuid></domain>"
	})
	holds := false
	for _, o := range l.see().Objects {
		for _, claim := range o.Holds {
			holds = holds || o.Name == "theirs" && claim == providers.Claim{Kind: providers.ClaimDisk, Key: cacheID}
		}
	}
	if !holds {
		t.Error("who runs with the disk does not hold it")
	}
	if got := l.apply(l.changeOfDisk(providers.Destroy, cty.NilVal)); !strings.Contains(got, "delete: refused disk_in_use") {
		t.Error(got)
	}
}

// A domain that vmctl cannot read keeps nobody from deleting a disk that it does not name.
func TestUnreadableDomainsAndADisk(t *testing.T) {
	for _, tc := range []struct{ file, want string }{
		{"/elsewhere/other.qcow2", "delete: done"},
		{"AT", "read domain theirs: read the domain's description: strconv.ParseUint: parsing"},
		{"/tmp/lab.cache.qcow2", "domain theirs (" + otherID + ") may have volume"}, // perhaps a link to it
	} {
		l := withDisk(t)
		file := strings.Replace(tc.file, "AT", l.diskIn(l.see()).Attrs.GetAttr("path").AsString(), 1)
		l.Put(otherID, func(d *libvirt.FakeDomain) {
			d.Name, d.Configured = "theirs", "<domain><vcpu>two</vcpu><devices><disk><source file='"+file+"'/></disk></devices></domain>"
		})
		if got := l.apply(l.changeOfDisk(providers.Destroy, disk(8*mib, "qcow2"))); !strings.Contains(got, tc.want) {
			t.Errorf("%s:\n%s", file, got)
		}
	}
}

func TestWhatCannotBeListedIsNotGone(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(l *lab)
		says    string
	}{
		"pools": {func(l *lab) { l.Refuses["pools"] = libvirt.ErrLibvirt("broken pipe") }, "list the pools of qemu:///session: broken pipe"},
		"the block's pool": {func(l *lab) {
			l.settings.Attrs = cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal("qemu:///session"), "pool": cty.StringVal("ssd")})
			l.open()
		}, "pool ssd, which the provider's block names, does not exist"},
	} {
		l := withDisk(t)
		c := l.changeOfDisk(providers.Destroy, cty.NilVal)
		tc.prepare(l)
		inv := l.see()
		if inv.Partial[spec.Disk] == nil || !strings.Contains(inv.Partial[spec.Disk].Error(), tc.says) || inv.Partial[spec.VM] != nil {
			t.Errorf("%s: partial %q", name, inv.Partial)
		}
		if name == "pools" {
			if got := l.apply(c); !strings.Contains(got, "delete: failed") {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}

// Somebody else's pool that is removed during the listing causes no error.
func TestPoolThatLeaves(t *testing.T) {
	l := withDisk(t)
	l.PutPool("theirs", libvirt.FakePool{Type: "dir", Path: "/theirs"})
	l.Leaving = "theirs"
	if inv := l.see(); len(inv.Partial) > 0 || l.diskIn(inv) == nil {
		t.Errorf("partial %v, objects %+v", inv.Partial, inv.Objects)
	}
	if got := l.apply(l.changeOfDisk(providers.Destroy, cty.NilVal)); !strings.Contains(got, "delete: done") {
		t.Error(got)
	}
}

func TestMarkThatCannotBeRead(t *testing.T) {
	l := withDisk(t)
	c := l.changeOfDisk(providers.Destroy, cty.NilVal)
	l.PutFile(poolName, cacheVol+".vmctl", []byte("broken"))
	inv := l.see()
	if len(inv.Unknown) != 1 || inv.Unknown[0].Name != "lab.cache" || !strings.Contains(inv.Unknown[0].Reason, "it is no owner mark") {
		t.Errorf("unknown %+v", inv.Unknown)
	}
	if got := l.apply(c); strings.Contains(got, "delete: done") || l.Volume(poolName, cacheVol) == nil {
		t.Errorf("its removal: %s", got)
	}
}

func TestCopiedVolumeIsSomebodyElses(t *testing.T) {
	l := withDisk(t)
	l.PutVolume(poolName, libvirt.FakeVolume{Name: "copy.qcow2", Format: "qcow2", Capacity: 8 * mib})
	l.PutFile(poolName, "copy.qcow2.vmctl", l.Volume(poolName, cacheVol+".vmctl"))
	inv := l.see()
	found := false
	for _, o := range inv.Objects {
		if o.Name == "copy" {
			found = o.ID != cacheID && len(o.Findings) == 1 && o.Findings[0].Kind == providers.FindCopy
		}
	}
	if !found || l.diskIn(inv) == nil {
		t.Errorf("objects %+v", inv.Objects)
	}
}

func TestDisksAreJudged(t *testing.T) {
	judge := libvirt.Type(libvirt.Host{}).Kinds[spec.VM]["additional_disk"].Judge
	for _, tc := range []struct {
		before, after cty.Value
		want          providers.Applies
	}{
		{additional(), additional("a"), providers.Live},
		{additional("a"), additional("a", "b"), providers.Live},
		{additional("a", "b"), additional("a", "c", "b"), providers.Live},
		{additional("a"), additional("b", "a"), providers.Restart},
		{additional("a", "b"), additional("b", "a"), providers.Restart},
		{additional("a", "b"), additional("a"), providers.Restart},
		{additional("a"), additional("b"), providers.Restart},
	} {
		if got := judge(tc.before, tc.after, true); got.Applies != tc.want || got.Reason == "" {
			t.Errorf("%#v to %#v: %+v, want %s", tc.before, tc.after, got, tc.want)
		}
		if got := judge(tc.before, tc.after, false); got.Applies != providers.Live {
			t.Errorf("off: %+v", got)
		}
	}
}

func TestAttachmentThatFails(t *testing.T) {
	for _, tc := range []struct{ cause, says string }{
		{"internal error: No more available PCI slots", "redefine: failed no_slot"},
		{"internal error: unable to execute QEMU command 'blockdev-add': Failed to get \"write\" lock", "redefine: failed disk_in_use"},
		{"broken pipe", "redefine: failed libvirt"},
	} {
		l := withDisk(t)
		if got := l.apply(create(vm(nil))); !strings.Contains(got, "start: done") {
			t.Fatal(got)
		}
		before := l.Configured(devID)
		l.Refuses["attach"] = libvirt.ErrLibvirt(tc.cause)
		c := useCache(l.change(providers.Update, dev2(nil), "additional_disk"))
		if got := l.apply(c); !strings.Contains(got, tc.says) {
			t.Errorf("%s: %s", tc.cause, got)
		}
		if l.Configured(devID) != before {
			t.Errorf("%s: its definition changed", tc.cause)
		}
	}
}

// A disk stays as long as a pool that may hold an overlay of it cannot be listed.
func TestDiskStaysWhileAPoolIsHidden(t *testing.T) {
	l := withDisk(t)
	l.PutPool("mine", libvirt.FakePool{Type: "dir", Path: "/mine", Active: true})
	l.PutVolume("mine", libvirt.FakeVolume{
		Name: "over.qcow2", Format: "qcow2", Capacity: 8 << 20, Backing: filepath.Join(l.dir, "data", "libvirt", "pool", cacheVol),
	})
	l.settings.Attrs = cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal("qemu:///session"), "pool": cty.StringVal("mine")})
	l.open()
	l.StopPool("mine")
	if got := l.apply(l.changeOfDisk(providers.Destroy, cty.NilVal)); !strings.Contains(got, "pool mine is not active") {
		t.Errorf("what was done:\n%s", got)
	}
	if !strings.Contains(l.Contents(), cacheVol) {
		t.Errorf("there is\n%s", l.Contents())
	}
}
