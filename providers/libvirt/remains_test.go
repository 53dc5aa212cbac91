package libvirt_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
