package libvirt_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/libvirt"
)

// onHost makes the file of disk.cache on this machine, and returns its path.
func (l *lab) onHost() string {
	l.t.Helper()
	l.file("data/libvirt/pool/"+cacheVol, "its content")
	return filepath.Join(l.dir, "data/libvirt/pool", cacheVol)
}

// link makes a symbolic link beside the lab's folders, and returns its path.
func (l *lab) link(to, name string) string {
	l.t.Helper()
	link := filepath.Join(l.dir, name)
	if err := os.Symlink(to, link); err != nil {
		l.t.Fatal(err)
	}
	return link
}

// at opens the provider with another URI.
func (l *lab) at(uri string) {
	l.t.Helper()
	l.settings.Attrs = cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal(uri), "pool": null})
	l.open()
}

// theirsOn adds somebody else's domain, off, with a disk on a file.
func (l *lab) theirsOn(file string) {
	l.Put(otherID, func(d *libvirt.FakeDomain) {
		d.Name = "theirs"
		d.Configured = "<domain type='qemu'><name>theirs</name><uuid>" + otherID + "</uuid><devices><disk type='file' device='disk'><source file='" + file +
			"'/><target dev='vda' bus='virtio'/></disk></devices></domain>"
	})
}

// theirsHolds reports whether the plan knows that somebody else's domain has disk.cache.
func (l *lab) theirsHolds() bool {
	return slices.ContainsFunc(l.see().Objects, func(o providers.Object) bool {
		return o.Name == "theirs" && slices.Contains(o.Holds, providers.Claim{Kind: providers.ClaimDisk, Key: cacheID})
	})
}

// A domain has a disk by whatever path it names the file. Where that cannot be known, the disk
// stays.
func TestDiskThatADomainNamesByAnotherPath(t *testing.T) {
	const has, may, not = "delete: refused disk_in_use: delete disk.cache: volume DIR/data/libvirt/pool/lab.cache.qcow2 is used by domain theirs",
		"delete: refused disk_in_doubt: delete disk.cache: domain theirs (" + otherID + ") may have volume DIR/data/libvirt/pool/lab.cache.qcow2\n  seen: domain theirs: ",
		"delete: done"
	const remote, socket = "qemu+ssh://host/session", "qemu:///session?socket=/x"
	for name, tc := range map[string]struct {
		uri   string
		path  func(l *lab, at string) string
		wants string
	}{
		"a symbolic link":        {"", func(l *lab, at string) string { return l.link(at, "theirs.img") }, has},
		"a relative link":        {"", func(l *lab, _ string) string { return l.link("data/libvirt/pool/"+cacheVol, "theirs.img") }, has},
		"a link to a link":       {"", func(l *lab, at string) string { return l.link(l.link(at, "one.img"), "two.img") }, has},
		"a link to the folder":   {"", func(l *lab, at string) string { return l.link(filepath.Dir(at), "vms") + "/" + cacheVol }, has},
		"..":                     {"", func(_ *lab, at string) string { return filepath.Dir(at) + "/../pool/" + cacheVol }, has},
		"double slashes":         {"", func(_ *lab, at string) string { return strings.Replace(at, "/pool/", "//pool/./", 1) }, has},
		"a hard link":            {"", hardLink, has},
		"another file":           {"", func(l *lab, _ string) string { l.file("theirs.img", ""); return filepath.Join(l.dir, "theirs.img") }, not},
		"a file of its name":     {"", func(l *lab, _ string) string { l.file(cacheVol, ""); return filepath.Join(l.dir, cacheVol) }, not},
		"a missing file":         {"", func(l *lab, _ string) string { return filepath.Join(l.dir, "missing", cacheVol) }, not},
		"a link to another file": {"", func(l *lab, _ string) string { l.file("a.img", ""); return l.link("a.img", "theirs.img") }, not},
		"a dangling link": {
			"", func(l *lab, _ string) string { return l.link("/nowhere/at.img", "theirs.img") },
			may + "DIR/theirs.img may be DIR/data/libvirt/pool/lab.cache.qcow2: the link DIR/theirs.img leads to /nowhere/at.img, which does not exist\n",
		},
		"a dangling folder": {
			"", func(l *lab, _ string) string { return l.link("/nowhere", "vms") + "/their.img" },
			may + "DIR/vms/their.img may be DIR/data/libvirt/pool/lab.cache.qcow2: the link DIR/vms leads to /nowhere, which does not exist\n",
		},
		"a link that cannot be read": {"", func(l *lab, _ string) string { return l.link("theirs.img", "theirs.img") }, may + "DIR/theirs.img may be "},
		"elsewhere, .. and slashes":  {remote, func(_ *lab, at string) string { return filepath.Dir(at) + "/..//pool/" + cacheVol }, has},
		"elsewhere, the same name": {
			remote, func(*lab, string) string { return "/vms/" + cacheVol },
			may + "/vms/lab.cache.qcow2 may be DIR/data/libvirt/pool/lab.cache.qcow2: they have the same name, and vmctl cannot examine them from here\n",
		},
		"elsewhere, another name":           {remote, func(*lab, string) string { return "/vms/theirs.img" }, not},
		"elsewhere, a link of this machine": {remote, func(l *lab, at string) string { return l.link(at, "theirs.img") }, not},
		"a named socket, the same name":     {socket, func(l *lab, _ string) string { l.file(cacheVol, ""); return filepath.Join(l.dir, cacheVol) }, may + "DIR/lab.cache.qcow2 may be "},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			if tc.uri != "" {
				l.at(tc.uri)
			}
			l.apply(l.changeOfDisk(providers.Create, disk(8*mib, "qcow2")))
			l.theirsOn(tc.path(l, l.onHost()))
			c := l.changeOfDisk(providers.Destroy, disk(8*mib, "qcow2"))
			if got, want := l.theirsHolds(), tc.wants == has; got != want {
				t.Errorf("the plan shows that they have it: %v, want %v", got, want)
			}
			if got := l.plain(l.apply(c)); !strings.HasPrefix(got, tc.wants) {
				t.Errorf("got\n%s\nwant\n%s", got, tc.wants)
			}
			if deleted := !strings.Contains(l.Contents(), "  "+cacheVol+"\n"); deleted != (tc.wants == not) {
				t.Errorf("the volume is deleted: %v", deleted)
			}
		})
	}
}

func hardLink(l *lab, at string) string {
	link := filepath.Join(l.dir, "theirs.img")
	if err := os.Link(at, link); err != nil {
		l.t.Fatal(err)
	}
	return link
}

// A disk that may be in use does not grow, either.
func TestDiskInDoubtDoesNotGrow(t *testing.T) {
	l := withDisk(t)
	l.onHost()
	l.theirsOn(l.link("/nowhere", "theirs.img"))
	got := l.apply(l.changeOfDisk(providers.Update, disk(16*mib, "qcow2"), "size"))
	if !strings.HasPrefix(got, "grow: refused disk_in_doubt: grow disk.cache: domain theirs") || len(l.Calls) > 0 {
		t.Errorf("got %s, calls %v", got, l.Calls)
	}
}

// A disk by the name of a volume in a pool that is not listed may be the disk.
func TestDiskOfAPoolThatIsNotActiveInDoubt(t *testing.T) {
	l := withDisk(t)
	l.PutPool("asleep", libvirt.FakePool{Type: "dir", Path: "/asleep"})
	l.Put(otherID, func(d *libvirt.FakeDomain) {
		d.Name = "theirs"
		d.Configured = "<domain><devices><disk type='volume'><source pool='asleep' volume='" + cacheVol + "'/><target dev='vda'/></disk></devices></domain>"
	})
	if got := l.apply(l.changeOfDisk(providers.Destroy, cty.NilVal)); !strings.HasPrefix(got, "delete: refused disk_in_doubt: ") ||
		!strings.Contains(got, "seen: domain theirs: volume "+cacheVol+" of pool asleep may be ") {
		t.Error(got)
	}
}

// An overlay has its base by whatever path it names that.
func TestOverlayThatNamesItsBaseByAnotherPath(t *testing.T) {
	for name, tc := range map[string]struct{ to, wants string }{
		"a link":          {"AT", "begins from, and would be lost with it\n"},
		"a dangling link": {"/nowhere/at.img", "begins from DIR/base.img may be DIR/data/libvirt/pool/lab.cache.qcow2: the link DIR/base.img leads to /nowhere/at.img"},
		"another file":    {"/dev/null", "delete: done"},
	} {
		t.Run(name, func(t *testing.T) {
			l := withDisk(t)
			at := l.onHost()
			l.PutVolume(poolName, libvirt.FakeVolume{
				Name: "theirs.qcow2", Format: "qcow2", Capacity: 16 * mib, Backing: l.link(strings.Replace(tc.to, "AT", at, 1), "base.img"),
			})
			if got := l.plain(l.apply(l.changeOfDisk(providers.Destroy, disk(8*mib, "qcow2")))); !strings.Contains(got, tc.wants) {
				t.Errorf("got\n%s\nwant\n%s", got, tc.wants)
			}
			if deleted := !strings.Contains(l.Contents(), "  "+cacheVol+"\n"); deleted != (tc.wants == "delete: done") {
				t.Errorf("the volume is deleted: %v", deleted)
			}
		})
	}
}

// An image stays as long as an overlay in any pool begins from it or a domain has it, by whatever
// path.
func TestImageThatOthersUse(t *testing.T) {
	over := func(l *lab, pool, base string) {
		l.PutVolume(pool, libvirt.FakeVolume{Name: "theirs.qcow2", Format: "qcow2", Capacity: 16 * mib, Backing: base})
	}
	another := func(l *lab) { l.PutPool("another", libvirt.FakePool{Type: "dir", Path: "/another", Active: true}) }
	for name, tc := range map[string]struct {
		use   func(l *lab, image string)
		stays bool
	}{
		"nobody":                     {func(*lab, string) {}, false},
		"an overlay by a link":       {func(l *lab, image string) { over(l, poolName, l.link(image, "base.img")) }, true},
		"an overlay in another pool": {func(l *lab, image string) { another(l); over(l, "another", image) }, true},
		"an overlay of another file": {func(l *lab, _ string) { another(l); over(l, "another", "/another/base.qcow2") }, false},
		"a domain":                   {func(l *lab, image string) { l.theirsOn(image) }, true},
		"a domain by a link":         {func(l *lab, image string) { l.theirsOn(l.link(image, "base.img")) }, true},
		"a domain, perhaps, after the root disk is gone": {func(l *lab, _ string) {
			link := l.link("/nowhere", "base.img")
			l.BeforeStore = func(string) {
				l.BeforeStore = nil
				l.theirsOn(link)
			}
		}, true},
		"a domain of another file": {func(l *lab, _ string) { l.theirsOn("/elsewhere.img") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := imageLab(t)
			want := fromImage(64, map[string]cty.Value{"running": cty.False})
			if got := l.apply(create(want)); !strings.Contains(got, "define: done") {
				t.Fatal(got)
			}
			i := slices.IndexFunc(l.VolumesIn(poolName), func(name string) bool { return strings.HasPrefix(name, "vmctl-") && strings.HasSuffix(name, ".qcow2") })
			if i < 0 {
				t.Fatalf("there is no image:\n%s", l.Contents())
			}
			image := l.VolumesIn(poolName)[i]
			l.file("data/libvirt/pool/"+image, "its content")
			c := l.change(providers.Destroy, want)
			tc.use(l, filepath.Join(l.dir, "data/libvirt/pool", image))
			if got := l.apply(c); !strings.Contains(got, "delete: done") {
				t.Fatal(got)
			}
			if stays := slices.Contains(l.VolumesIn(poolName), image); stays != tc.stays {
				t.Errorf("the image stays: %v; there is\n%s", stays, l.Contents())
			}
		})
	}
}

// A process has a file open by whatever path it opened it.
func TestProcessThatOpenedADiskByAHardLink(t *testing.T) {
	l := withDisk(t)
	link := hardLink(l, l.onHost())
	fd := filepath.Join(l.proc, "4711", "fd")
	if err := errors.Join(os.MkdirAll(fd, 0o700), os.Symlink(link, filepath.Join(fd, "3"))); err != nil {
		t.Fatal(err)
	}
	if got := l.apply(l.changeOfDisk(providers.Destroy, disk(8*mib, "qcow2"))); !strings.Contains(got, "is open in process 4711") {
		t.Error(got)
	}
}

// vmctl's own domain keeps a disk that somebody made it name by a link: it is the same disk.
func TestOwnDomainThatNamesItsDiskByALink(t *testing.T) {
	l := withDisk(t)
	l.apply(useCache(create(dev2(off))))
	at := l.onHost()
	link := l.link(at, "theirs.img")
	l.Put(devID, func(d *libvirt.FakeDomain) {
		d.Configured = strings.Replace(d.Configured, `<source file="`+at, `<source file="`+link, 1)
	})
	if !strings.Contains(l.Configured(devID), `<source file="`+link) {
		t.Fatalf("the domain is\n%s", l.Configured(devID))
	}
	if got := l.object(dev2(off)).Attrs.GetAttr("additional_disk"); !got.RawEquals(additional("cache")) {
		t.Errorf("it has %#v", got)
	}
	all := dev2(off).AsValueMap()
	all["memory"] = cty.NumberIntVal(1 << 30)
	if got := l.apply(useCache(l.change(providers.Update, cty.ObjectVal(all), "memory"))); !strings.Contains(got, "redefine: done") {
		t.Error(got)
	}
	if now := l.Configured(devID); strings.Count(now, "<source file=") != 1 {
		t.Errorf("its disks are\n%s", now)
	}
}

// The mark of a daemon behind a named socket is read through libvirt: the file of its path on this
// machine may be another one.
func TestMarksBehindANamedSocketAreReadThroughLibvirt(t *testing.T) {
	for uri, wants := range map[string]bool{"qemu:///session": true, "qemu:///session?socket=/x": false, "qemu+unix:///session?socket=/x": false, "qemu+ssh:///session": false} {
		l := newLab(t)
		l.at(uri)
		l.apply(l.changeOfDisk(providers.Create, disk(8*mib, "qcow2")))
		mark := cacheVol + ".vmctl"
		l.file("data/libvirt/pool/"+mark, strings.Replace(string(l.Volume(poolName, mark)), "disk.cache", "disk.another", 1))
		owner := ""
		for _, o := range l.see().Objects {
			if o.ID == cacheID {
				owner = o.Owner.Address.String()
			}
		}
		if got := owner == "disk.another"; got != wants {
			t.Errorf("%s: the mark names %q", uri, owner)
		}
	}
}

// On another machine, two volumes of one name are known apart by their properties, as long as they do
// not change meanwhile.
func TestVolumesOfOneNameElsewhere(t *testing.T) {
	for name, tc := range map[string]struct {
		mine, theirs string // when the volumes were written to
		wants        string
	}{
		"written at different times": {"1.5", "2.5", "delete: done"},
		"written at the same time":   {"1.5", "1.5", "delete: refused disk_in_doubt"},
		"unknown times":              {"", "", "delete: refused disk_in_doubt"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.at("qemu+ssh://host/session")
			l.apply(l.changeOfDisk(providers.Create, disk(8*mib, "qcow2")))
			l.PutVolume(poolName, libvirt.FakeVolume{Name: cacheVol, Format: "qcow2", Capacity: 8 * mib, Modified: tc.mine})
			l.PutPool("theirs", libvirt.FakePool{Type: "dir", Path: "/theirs", Active: true})
			l.PutVolume("theirs", libvirt.FakeVolume{Name: cacheVol, Format: "qcow2", Capacity: 8 * mib, Modified: tc.theirs})
			l.theirsOn("/theirs/" + cacheVol)
			if got := l.apply(l.changeOfDisk(providers.Destroy, disk(8*mib, "qcow2"))); !strings.HasPrefix(got, tc.wants) {
				t.Errorf("got\n%s\nwant\n%s", got, tc.wants)
			}
		})
	}
}

// A volume that somebody writes to during the comparison is not known from another of its name.
func TestVolumeThatChangesWhileItIsCompared(t *testing.T) {
	l := newLab(t)
	l.at("qemu+ssh://host/session")
	l.apply(l.changeOfDisk(providers.Create, disk(8*mib, "qcow2")))
	l.PutPool("theirs", libvirt.FakePool{Type: "dir", Path: "/theirs", Active: true})
	l.PutVolume("theirs", libvirt.FakeVolume{Name: cacheVol, Format: "qcow2", Capacity: 8 * mib, Modified: "1.5"})
	l.theirsOn("/theirs/" + cacheVol)
	c := l.changeOfDisk(providers.Destroy, disk(8*mib, "qcow2"))
	l.Ticking = true
	if got := l.apply(c); !strings.HasPrefix(got, "delete: refused disk_in_doubt") {
		t.Error(got)
	}
}

// A file in a folder that this user may not enter may be the disk.
func TestDiskThatADomainMayNameInAClosedFolder(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may enter every folder")
	}
	l := withDisk(t)
	link := l.link(l.onHost(), "closed.img")
	closed := filepath.Join(l.dir, "closed")
	if err := errors.Join(os.Mkdir(closed, 0o700), os.Rename(link, filepath.Join(closed, "theirs.img")), os.Chmod(closed, 0)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(closed, 0o700); err != nil { //nolint:gosec // the test's own folder, to be removed
			t.Error(err)
		}
	})
	l.theirsOn(filepath.Join(closed, "theirs.img"))
	got := l.apply(l.changeOfDisk(providers.Destroy, disk(8*mib, "qcow2")))
	if !strings.HasPrefix(got, "delete: refused disk_in_doubt: ") || !strings.Contains(got, "permission denied") {
		t.Error(got)
	}
}
