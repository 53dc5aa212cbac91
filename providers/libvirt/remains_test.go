package libvirt_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/spec"
)

// asleep makes vmctl's own pool inactive, as a reboot does. Its folder exists.
func (l *lab) asleep() {
	l.t.Helper()
	if err := os.MkdirAll(filepath.Join(l.dir, "data", "libvirt", "pool"), 0o700); err != nil {
		l.t.Fatal(err)
	}
	l.StopPool(poolName)
	l.Calls = nil
}

// A root disk with data outlives a domain that was removed by hand, also in a pool that is not
// active when its block is applied again.
func TestWrittenRootOfAnInactivePool(t *testing.T) {
	for name, stop := range map[string]func(*lab){
		"inactive":                              (*lab).asleep,
		"inactive, and its folder is not there": func(l *lab) { l.StopPool(poolName) },
	} {
		t.Run(name, func(t *testing.T) {
			l := imageLab(t)
			l.apply(create(vm(off))) // makes the pool
			c := create(fromImage(64, nil))
			c.Address, c.Name, c.ID = spec.Address{Kind: spec.VM, Name: "ops"}, "lab.ops", otherID
			root := otherID + ".root.qcow2"
			l.PutVolume(poolName, libvirt.FakeVolume{Name: root, Format: "qcow2", Capacity: 64 << 20, Allocation: 5 << 20, Backing: ownImage})
			stop(l)
			got := l.apply(c)
			if !strings.Contains(got, "define: refused root_disk_left") && !strings.Contains(got, "already in use") {
				t.Errorf("what was done:\n%s", got)
			}
			if !strings.Contains(l.Contents(), root) {
				t.Errorf("the root disk is deleted; there is\n%s", l.Contents())
			}
			if strings.Contains(l.calls(), "delete-volume "+root) {
				t.Errorf("calls:\n%s", l.calls())
			}
		})
	}
}

// All files of a VM go, also those of a pool that is not active.
func TestDestroyInAnInactivePool(t *testing.T) {
	for _, name := range []string{"image", "boot"} {
		for _, action := range []providers.Action{providers.Destroy, providers.Forget} {
			t.Run(name+" "+string(action), func(t *testing.T) {
				l := imageLab(t)
				want := vm(off)
				if name == "image" {
					want = fromImage(64, nil)
				}
				l.apply(create(want))
				c := l.change(action, want)
				if action == providers.Forget {
					l.Drop(devID)
					c.Object = nil
				}
				l.asleep()
				got := l.apply(c)
				if !strings.Contains(got, "gone") || strings.Contains(got, "next:") {
					t.Errorf("what was done:\n%s", got)
				}
				if got := l.Contents(); got != "" {
					t.Errorf("there is\n%s", got)
				}
			})
		}
	}
}

// hidden returns a lab whose vm.dev has its files in a pool that the provider's block named
// once, and that is not active any more.
func hidden(t *testing.T, want cty.Value) *lab {
	t.Helper()
	l := imageLab(t)
	block := func(pool cty.Value) {
		l.settings.Attrs = cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal("qemu:///session"), "pool": pool})
		l.open()
	}
	folder := filepath.Join(l.dir, "mine")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	l.PutPool("mine", libvirt.FakePool{Type: "dir", Path: folder, Active: true})
	block(cty.StringVal("mine"))
	if got := l.apply(create(want)); !strings.Contains(got, "define: done") {
		t.Fatal(got)
	}
	block(null)
	l.StopPool("mine")
	l.Calls = nil
	return l
}

// A file in a pool that is not active is not gone, and nothing is deleted beside it.
func TestFilesOfAHiddenPool(t *testing.T) {
	want := fromImage(64, nil)
	l := hidden(t, want)
	before := l.Contents()
	o := l.object(want)
	if why := o.Unreadable["root_disk.size"]; !strings.Contains(why, "pool mine is not active") {
		t.Errorf("the size of its root disk is unreadable because %q; findings %+v", why, o.Findings)
	}
	want128 := fromImage(128, nil)
	for _, tc := range []struct {
		name   string
		change providers.Change
	}{{"delete", l.change(providers.Destroy, want)}, {"redefine", l.change(providers.Update, want128, "root_disk.size")}} {
		got := l.apply(tc.change)
		if !strings.HasPrefix(got, tc.name+": failed no_pool") || !strings.Contains(got, "next: start it: virsh -c qemu:///session pool-start mine") {
			t.Errorf("%s:\n%s", tc.name, got)
		}
		if !strings.HasPrefix(l.Contents(), before) || l.Configured(devID) == "" {
			t.Errorf("after %s there is\n%s", tc.name, l.Contents())
		}
	}
	boot := hidden(t, vm(off))
	if got := boot.apply(boot.change(providers.Destroy, vm(off))); !strings.HasPrefix(got, "delete: failed no_pool") {
		t.Errorf("delete of a VM with boot files:\n%s", got)
	}

	gone := hidden(t, want)
	gone.DropPool("mine")
	if got := gone.apply(gone.change(providers.Destroy, want)); !strings.Contains(got, "no pool has the folder") {
		t.Errorf("delete without the pool:\n%s", got)
	}
	if err := os.Remove(filepath.Join(gone.dir, "mine")); err != nil {
		t.Fatal(err)
	}
	if got := gone.apply(gone.change(providers.Destroy, want)); !strings.HasPrefix(got, "delete: done, gone") {
		t.Errorf("delete without the pool and its folder:\n%s", got)
	}
	own := imageLab(t)
	own.apply(create(want))
	own.DropPool(poolName)
	if got := own.apply(own.change(providers.Destroy, want)); !strings.HasPrefix(got, "delete: done, gone") {
		t.Errorf("delete without vmctl's own pool:\n%s", got)
	}
}

// The files of a pool that goes away while it is listed are not known.
func TestRootInALeavingPool(t *testing.T) {
	want := fromImage(64, nil)
	l := hidden(t, want)
	l.Leaving = "mine"
	o := l.object(want)
	if o.Unreadable["root_disk.size"] == "" {
		t.Errorf("it is seen as %+v", o)
	}
}

// A recorded disk in a pool that is not active is unknown, and not gone.
func TestDiskInAHiddenPool(t *testing.T) {
	l := newLab(t)
	l.PutPool("ssd", libvirt.FakePool{Type: "dir", Path: "/ssd", Active: true})
	known := providers.Known{
		Address: spec.Address{Kind: spec.Disk, Name: "fast"}, Kind: spec.Disk, ID: otherID, Name: "lab.fast",
		Prior: cty.ObjectVal(map[string]cty.Value{"path": cty.StringVal("/ssd/lab.fast.raw")}),
	}
	if got := l.see(known).Unknown; len(got) > 0 {
		t.Errorf("its pool is listed and lacks it, and it is unknown: %+v", got)
	}
	l.StopPool("ssd")
	if got := l.see(known).Unknown; len(got) != 1 || got[0].ID != otherID || got[0].Reason != "pool ssd is not active" {
		t.Errorf("unknown: %+v", got)
	}
}

// A change leaves the files with which the guest runs: the CD-ROM in its drive, and its log.
func TestFilesOfARunningGuestStay(t *testing.T) {
	l := imageLab(t)
	l.apply(create(fromImage(64, map[string]cty.Value{"running": cty.True})))
	old, log := devID+".seed-000000000000.iso", devID+".console.log.0"
	l.PutFile(poolName, old, nil)
	l.PutFile(poolName, log, nil)
	l.Put(devID, func(d *libvirt.FakeDomain) {
		d.Running = regexp.MustCompile(devID+`\.seed-[0-9a-f]+\.iso`).ReplaceAllString(d.Running, old)
	})
	want := fromImage(128, map[string]cty.Value{"running": cty.True})
	if got := l.apply(l.change(providers.Update, want, "root_disk.size")); got != "redefine: done, running\n" {
		t.Errorf("what was done:\n%s", got)
	}
	for _, name := range []string{old, log} {
		if !strings.Contains(l.Contents(), name+"\n") {
			t.Errorf("%s is deleted", name)
		}
	}
}

// A file that cannot be read is not taken for gone.
func TestSeedThatCannotBeRead(t *testing.T) {
	l := imageLab(t)
	l.apply(create(fromImage(64, nil)))
	for name := range strings.FieldsSeq(l.Contents()) {
		if strings.Contains(name, ".seed-") {
			l.Unreadable[name] = libvirt.ErrLibvirt("busy")
		}
	}
	l.Calls = nil
	if got := l.apply(create(fromImage(64, nil))); !strings.Contains(got, "define: failed libvirt: ") || !strings.Contains(got, "busy") {
		t.Errorf("what was done:\n%s", got)
	}
	wantText(t, "calls", "\n\n", l.calls())
}

// A damaged mark is read as far as possible.
func TestMarkWithDamagedValues(t *testing.T) {
	for _, tc := range []struct {
		want            cty.Value
		intact, damaged string
	}{{vm(off), `guest="`, `guest="x`}, {fromImage(64, nil), ` root="`, ` settled="x" root="`}} {
		l := imageLab(t)
		l.apply(create(tc.want))
		before := l.Configured(devID)
		l.Put(devID, func(d *libvirt.FakeDomain) { d.Configured = strings.Replace(d.Configured, tc.intact, tc.damaged, 1) })
		if l.Configured(devID) == before {
			t.Fatalf("nothing has %s", tc.intact)
		}
		if inv := l.observe(tc.want); len(inv.Unknown) > 0 || len(inv.Objects) != 1 {
			t.Errorf("%s: unknown %+v", tc.damaged, inv.Unknown)
		}
	}
}

// While vmctl's own pool cannot be started, nothing is called gone.
func TestOwnPoolThatDoesNotStart(t *testing.T) {
	l := made(t, vm(off))
	c := l.change(providers.Forget, vm(off))
	l.Drop(devID)
	c.Object = nil
	l.asleep()
	l.Refuses["start-pool"] = libvirt.ErrLibvirt("no")
	if got := l.apply(c); !strings.HasPrefix(got, "delete: failed no_pool") {
		t.Errorf("what was done:\n%s", got)
	}
}
