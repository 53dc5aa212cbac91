package libvirt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/providers/providertest"
)

// withOverlay returns a lab with a running vm.dev and disk.cache, of which somebody made an
// external snapshot: virsh snapshot-create-as NAME snap --disk-only.
func withOverlay(t *testing.T) *lab {
	t.Helper()
	l := withDisk(t)
	l.apply(useCache(create(dev2(nil))))
	l.Put(devID, func(d *libvirt.FakeDomain) {
		for _, text := range []*string{&d.Configured, &d.Running} {
			before := *text
			*text = strings.Replace(before, "lab.cache.qcow2\"></source>", "lab.cache.snap\"></source>\n"+
				`<backingStore type="file"><format type="qcow2"></format><source file="`+l.dir+`/data/libvirt/pool/lab.cache.qcow2"></source></backingStore>`, 1)
			if *text == before {
				t.Fatalf("no disk in\n%s", before)
			}
		}
		d.Snapshots = libvirt.ExternalSnapshot("snap")
	})
	l.Calls = nil
	return l
}

func TestOverlayOfOthers(t *testing.T) {
	l := withOverlay(t)
	o := l.object(dev2(nil))
	if got := o.Attrs.GetAttr("additional_disk"); !got.RawEquals(additional("cache")) {
		t.Errorf("its disk is no longer disk.cache: %#v", got)
	}
	var said []string
	for _, f := range append(o.Findings, l.diskIn(l.see()).Findings...) {
		said = append(said, string(f.Kind)+": "+f.Evidence[0]+" > "+f.Action+strings.Join(providertest.Lines(f.Next), "; "))
	}
	wantText(t, "findings", `
snapshot: disk vda writes into DIR/data/libvirt/pool/lab.cache.snap, an overlay of DIR/data/libvirt/pool/lab.cache.qcow2 > virsh -c qemu:///session blockcommit lab.dev vda --active --pivot --wait
snapshot: it has the snapshot snap > virsh -c qemu:///session snapshot-delete lab.dev snap --metadata
snapshot: domain lab.dev, which has it: disk vda writes into DIR/data/libvirt/pool/lab.cache.snap, an overlay of DIR/data/libvirt/pool/lab.cache.qcow2 > virsh -c qemu:///session blockcommit lab.dev vda --active --pivot --wait
snapshot: domain lab.dev, which has it: it has the snapshot snap > virsh -c qemu:///session snapshot-delete lab.dev snap --metadata
`, l.plain(strings.Join(said, "\n")+"\n"))
}

// A change that touches the definition or the disks is refused before anything goes down;
// other changes go on.
func TestLayersRefuseChanges(t *testing.T) {
	memory := map[string]cty.Value{"memory": cty.NumberIntVal(512 << 20)}
	for _, tc := range []struct {
		name    string
		change  func(l *lab) providers.Change
		refused bool
	}{
		{"an edit of its definition", func(l *lab) providers.Change {
			return useCache(l.change(providers.RestartIt, dev2(memory), "memory"))
		}, true},
		{"its destruction", func(l *lab) providers.Change { return l.change(providers.Destroy, cty.NilVal) }, true},
		{"its disk is grown", func(l *lab) providers.Change {
			return l.changeOfDisk(providers.Update, disk(16*mib, "qcow2"), "size")
		}, true},
		{"its disk is destroyed", func(l *lab) providers.Change { return l.changeOfDisk(providers.Destroy, cty.NilVal) }, true},
		{"a stop", func(l *lab) providers.Change {
			return useCache(l.change(providers.Stop, dev2(map[string]cty.Value{"running": cty.False})))
		}, false},
		{"letting go of it", func(l *lab) providers.Change { return l.change(providers.Forget, cty.NilVal) }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := withOverlay(t)
			before := l.Configured(devID)
			got := l.apply(tc.change(l))
			if refused := strings.HasPrefix(got, "steps: disk vda writes into") || strings.HasPrefix(got, "steps: domain lab.dev, which has it: disk vda writes into"); refused != tc.refused {
				t.Errorf("got\n%s", got)
			}
			if tc.refused && (len(l.Calls) > 0 || l.Configured(devID) != before) {
				t.Errorf("something was done: %v", l.Calls)
			}
		})
	}
}

// A snapshot that is made after the plan makes it stale.
func TestLayerAfterThePlan(t *testing.T) {
	l := withDisk(t)
	l.apply(useCache(create(dev2(off))))
	c := useCache(l.change(providers.Update, dev2(map[string]cty.Value{"running": cty.False, "memory": cty.NumberIntVal(512 << 20)}), "memory"))
	l.Put(devID, func(d *libvirt.FakeDomain) { d.Checkpoints = []string{"before"} })
	l.Calls = nil
	if got := l.apply(c); !strings.Contains(got, "redefine: stale stale_plan") || !strings.Contains(got, "it has the checkpoint before") || len(l.Calls) > 0 {
		t.Errorf("got\n%s\ncalls %v", got, l.Calls)
	}
}

// A running backup is not cut off: a step that would end it is refused, also if the backup
// began after the plan.
func TestJobOfOthers(t *testing.T) {
	l := withDisk(t)
	l.apply(useCache(create(dev2(nil))))
	l.Put(devID, func(d *libvirt.FakeDomain) { d.Job = "backup" })
	l.Calls = nil

	var said []string
	for _, f := range append(l.object(dev2(nil)).Findings, l.diskIn(l.see()).Findings...) {
		said = append(said, string(f.Kind)+": "+f.Evidence[0]+" > "+f.Action+strings.Join(providertest.Lines(f.Next), "; "))
	}
	wantText(t, "findings", `
busy: a backup of it is under way > to end it: virsh -c qemu:///session domjobabort lab.dev
busy: domain lab.dev, which has it: a backup of it is under way > to end it: virsh -c qemu:///session domjobabort lab.dev
`, strings.Join(said, "\n")+"\n")
}

// Each step that would end somebody's long operation is refused: by the plan, and by the step
// where the operation began after the plan.
func TestStepsDuringAJob(t *testing.T) {
	off := map[string]cty.Value{"running": cty.False}
	memory := map[string]cty.Value{"memory": cty.NumberIntVal(512 << 20)}
	for _, tc := range []struct {
		step   string
		change func(l *lab) providers.Change
	}{
		{"stop", func(l *lab) providers.Change { return useCache(l.change(providers.Stop, dev2(off))) }},
		{"redefine", func(l *lab) providers.Change { return useCache(l.change(providers.Update, dev2(memory), "memory")) }},
		{"grow", func(l *lab) providers.Change {
			return l.changeOfDisk(providers.Update, disk(16*mib, "qcow2"), "size")
		}},
	} {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, known %t", tc.step, known), func(t *testing.T) {
				l := withDisk(t)
				l.apply(useCache(create(dev2(nil))))
				c := tc.change(l)
				l.Put(devID, func(d *libvirt.FakeDomain) { d.Job = "backup" })
				want := tc.step + ": refused in_job"
				if known {
					c, want = tc.change(l), "steps: "
				}
				before := l.Configured(devID)
				l.Calls = nil
				if got := l.apply(c); !strings.HasPrefix(got, want) || !strings.Contains(got, "a backup of it is under way") || len(l.Calls) > 0 || l.Configured(devID) != before {
					t.Errorf("got\n%s\nwant %s…, calls %v", got, want, l.Calls)
				}
				l.Put(devID, func(d *libvirt.FakeDomain) { d.Job = "" })
				if got := l.apply(tc.change(l)); strings.Contains(got, "refused") || strings.HasPrefix(got, "steps:") {
					t.Errorf("after it:\n%s", got)
				}
			})
		}
	}
}

// An operation without a name here is a job, too.
func TestJobNames(t *testing.T) {
	for operation, want := range map[int]string{0: "job", 2: "save", 4: "migration", 9: "backup", 10: "snapshot", 99: "job"} {
		if got := libvirt.JobName(operation); got != want {
			t.Errorf("operation %d is called %q, want %q", operation, got, want)
		}
	}
}
