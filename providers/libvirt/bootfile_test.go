package libvirt_test

import (
	"strings"
	"testing"

	"vmctl/providers"
	"vmctl/providers/libvirt"
)

const kernelVol = devID + ".kernel-6923dd1bc046"

// Spoilt boot files are uploaded again while the VM runs, and before a restart takes it down.
func TestSpoiltBootFiles(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(l *lab)
		says  string
	}{
		{"gone", func(l *lab) { l.DropVolume(poolName, kernelVol) }, ", which is gone"},
		{"truncated", func(l *lab) { l.PutFile(poolName, kernelVol, []byte("ker")) }, ", which was written to since it was uploaded"},
		{"overwritten", func(l *lab) { l.PutFile(poolName, kernelVol, []byte("lenrek")) }, ", which was written to since it was uploaded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := made(t, vm(nil))
			tc.spoil(l)
			o := l.object(vm(nil))
			if got := evidence(o, providers.FindPartial); !strings.HasSuffix(got, tc.says) {
				t.Fatalf("evidence %q", got)
			}
			c := l.change(providers.RestartIt, vm(nil))
			steps, err := l.provider.Steps(c)
			if err != nil {
				t.Fatal(err)
			}
			if steps[0].Op != "upload" || steps[1].Op != "stop" {
				t.Errorf("a restart begins with %s and %s", steps[0].Op, steps[1].Op)
			}
			l.Calls = nil
			if got := l.apply(l.change(providers.Update, vm(nil))); !strings.Contains(got, "redefine: done, running") {
				t.Errorf("got\n%s", got)
			}
			if got := string(l.Volume(poolName, kernelVol)); got != "kernel" {
				t.Errorf("the kernel is %q", got)
			}
			if o := l.object(vm(nil)); len(o.Findings) > 0 {
				t.Errorf("findings %+v", o.Findings)
			}
			tc.spoil(l)
			if got := l.apply(l.change(providers.RestartIt, vm(nil))); !strings.Contains(got, "upload: done, running") || !strings.Contains(got, "start: done, running") {
				t.Errorf("a restart says\n%s", got)
			}
		})
	}
}

// A restart whose upload fails takes nothing down.
func TestSpoiltBootFilesThatCannotBeUploaded(t *testing.T) {
	l := made(t, vm(nil))
	l.DropVolume(poolName, kernelVol)
	c := l.change(providers.RestartIt, vm(nil))
	l.Refuses["upload"] = libvirt.ErrLibvirt("No space left on device")
	l.Calls = nil
	if got := l.apply(c); !strings.Contains(got, "upload: failed") || strings.Contains(got, "stop:") || l.Running(devID) == "" {
		t.Errorf("got\n%s\ncalls %v", got, l.Calls)
	}
}

func evidence(o *providers.Object, kind providers.FindingKind) string {
	for _, f := range o.Findings {
		if f.Kind == kind {
			return f.Evidence[0]
		}
	}
	return ""
}
