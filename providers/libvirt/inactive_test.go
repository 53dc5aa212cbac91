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

// Observe does not start a pool, and still reads its files.
func TestLookingStartsNoPool(t *testing.T) {
	l := newLab(t)
	want := disk(8*mib, "raw")
	l.apply(l.changeOfDisk(providers.Create, want))
	before := l.changeOfDisk(providers.Destroy, want).Object
	folder := filepath.Join(l.dir, "data/libvirt/pool")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	volumes := map[string][]byte{}
	for name := range strings.FieldsSeq(l.Contents()) {
		if name == "pool" || name == poolName {
			continue
		}
		content := l.Volume(poolName, name)
		if name == "lab.cache.raw" {
			content = make([]byte, 8*mib)
		}
		volumes[name] = content
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.PutPool(poolName, libvirt.FakePool{Type: "dir", Path: folder, Volumes: volumes})
	l.Calls = nil
	after := l.changeOfDisk(providers.Destroy, want).Object
	if after == nil || after.Fingerprint != before.Fingerprint || !after.Attrs.RawEquals(before.Attrs) || *after.Owner != *before.Owner {
		t.Errorf("it is seen as %+v, and was %+v", after, before)
	}
	if err := os.Remove(filepath.Join(folder, "lab.cache.raw")); err != nil {
		t.Fatal(err)
	}
	if o := l.changeOfDisk(providers.Destroy, want).Object; o != nil {
		t.Errorf("without its file it is seen as %+v", o)
	}
	if len(l.Calls) > 0 {
		t.Errorf("looking changed something: %v", l.Calls)
	}

	// A folder that cannot be read is reported, with a command to type.
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	inv := l.see()
	if got := inv.Partial[spec.Disk]; got == nil || !strings.HasSuffix(got.Error(), "is not active") || got.Next[0].Text != "start it: virsh -c qemu:///session pool-start "+poolName {
		t.Errorf("the listing is partial because %v", got)
	}
}
