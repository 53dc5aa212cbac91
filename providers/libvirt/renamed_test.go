package libvirt_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/libvirt"
)

// vmctl finds its files of a domain that somebody renamed, and removes them with it.
func TestRenamedByHand(t *testing.T) {
	for name, want := range map[string]cty.Value{"a kernel": vm(off), "an image": fromImage(64, map[string]cty.Value{"running": cty.False})} {
		t.Run(name, func(t *testing.T) {
			l := imageLab(t)
			l.apply(create(want))
			files := l.Contents()
			if !l.Rename(devID, "theirs") {
				t.Fatal("it could not be renamed")
			}
			o := l.object(want)
			if o.Name != "theirs" || len(o.Findings) > 0 {
				t.Fatalf("it is seen as %s, with %+v", o.Name, o.Findings)
			}
			c := l.change(providers.Update, larger(want), "memory")
			if got := l.apply(c); !strings.Contains(got, "redefine: done, off\n") || l.Contents() != files {
				t.Errorf("a change:\n%s%s", got, l.Contents())
			}
			if got := l.apply(l.change(providers.Destroy, want)); !strings.HasPrefix(got, "delete: done, gone\n") || strings.Contains(l.Contents(), devID) {
				t.Errorf("its end:\n%s%s", got, l.Contents())
			}
			if left, err := os.ReadDir(l.settings.Keys); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// The files that an older vmctl named by the domain's name are used as they are, until a
// change writes them again.
func TestFilesOfAnOlderVersion(t *testing.T) {
	l := made(t, vm(nil))
	for name := range strings.FieldsSeq(l.Contents()) {
		if part, ok := strings.CutPrefix(name, devID); ok {
			l.PutFile(poolName, "lab.dev"+part, l.Volume(poolName, name))
			l.DropVolume(poolName, name)
		}
	}
	older := strings.NewReplacer(devID+".kernel", "lab.dev.kernel", devID+".initrd", "lab.dev.initrd", devID+".console", "lab.dev.console")
	l.Put(devID, func(d *libvirt.FakeDomain) {
		d.Configured, d.Running = older.Replace(d.Configured), older.Replace(d.Running)
	})
	if o := l.object(vm(nil)); len(o.Findings) > 0 || !o.Attrs.GetAttr("boot").GetAttr("kernel_sha256").RawEquals(digestOf("kernel")) {
		t.Errorf("it is seen as %#v, with %+v", o.Attrs, o.Findings)
	}
	if got := l.apply(l.change(providers.RestartIt, larger(vm(nil)), "memory")); !strings.HasSuffix(got, "start: done, running\n") {
		t.Fatal(got)
	}
	log := filepath.Join(l.dir, "data/libvirt/pool/lab.dev.console.log")
	if got := l.Contents(); strings.Contains(got, "lab.dev.kernel") || strings.Contains(got, "lab.dev.initrd") || !strings.Contains(l.Configured(devID), log) {
		t.Errorf("after a change:\n%s", got)
	}
	if got := l.apply(l.change(providers.Destroy, vm(nil))); strings.Contains(l.Contents(), "lab.dev") {
		t.Errorf("after its end:\n%s%s", got, l.Contents())
	}
}
