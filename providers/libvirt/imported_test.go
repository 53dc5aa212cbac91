package libvirt_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/spec"
)

const handmade = `<domain type='qemu'>
  <name>old</name>
  <uuid>` + otherID + `</uuid>
  <metadata><them:note xmlns:them="urn:them">kept</them:note></metadata>
  <memory unit='KiB'>262144</memory>
  <currentMemory unit='KiB'>131072</currentMemory>
  <vcpu current='1'>2</vcpu>
  <os><type arch='x86_64' machine='pc'>hvm</type></os>
  <unheard-of attribute='stays'/>
  <devices>
    <disk type='file' device='disk'><source file='/mine/notes.img'/><target dev='vda' bus='virtio'/></disk>
    <disk type='volume' device='disk'><source pool='` + poolName + `' volume='` + cacheVol + `'/><target dev='vdb' bus='virtio'/></disk>
    <disk type='block' device='disk'><source dev='/dev/mine/data'/><target dev='vdc' bus='virtio'/></disk>
    <disk type='volume' device='disk'><source pool='mine' volume='more.img'/><target dev='vdd' bus='virtio'/></disk>
    ` + remoteDisks + `
    <serial type='pty'><log file='/mine/old.console.log'/></serial>
  </devices>
</domain>`

// remoteDisks are disks without a file.
const remoteDisks = `<disk type='network' device='disk'><source protocol='rbd' name='rbd/precious'><host name='ceph' port='6789'/></source><target dev='vde' bus='virtio'/></disk>
    <disk type='nvme' device='disk'><source type='pci' managed='yes' namespace='1'><address domain='0x0000' bus='0x01' slot='0x00' function='0x0'/></source><target dev='vdf' bus='virtio'/></disk>`

// found returns a lab with somebody else's domain, and the change that imports it.
func found(t *testing.T, running bool) (*lab, providers.Change) {
	t.Helper()
	l := withDisk(t)
	l.Put(otherID, func(d *libvirt.FakeDomain) {
		d.Name, d.Configured = "old", handmade
		if running {
			d.Running, d.Power = handmade, libvirt.FakeRunning
		}
	})
	want := vm(map[string]cty.Value{
		"boot": cty.NullVal(cty.DynamicPseudoType), "additional_disk": additional("cache"), "port_forward": none,
	})
	inv, err := l.provider.Observe(t.Context(), providers.Query{Known: []providers.Known{
		{Address: dev, Kind: spec.VM, Name: "lab.dev", Import: "old", Want: want},
		{Address: cache, Kind: spec.Disk, ID: cacheID, Name: "lab.cache"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if inv.Found[dev] != otherID {
		t.Fatalf("found %v", inv.Found)
	}
	c := useCache(providers.Change{
		Address: dev, Kind: spec.VM, Action: providers.Import, Name: "old", ID: otherID, Want: want, Policy: policy(nil), Generation: 1,
		Mark: &providers.MarkEdit{},
	})
	for _, o := range inv.Objects {
		if o.ID == otherID {
			c.Object = &o
		}
	}
	return l, c
}

func TestImportWritesTheMarkAlone(t *testing.T) {
	l, c := found(t, true)
	a := c.Object.Attrs
	for name, want := range map[string]cty.Value{
		"memory": cty.NumberIntVal(256 << 20), "cpus": cty.NumberIntVal(1), "accel": cty.StringVal("tcg"), "additional_disk": additional("cache"),
	} {
		if got := a.GetAttr(name); !got.RawEquals(want) {
			t.Errorf("%s is shown as %#v, want %#v", name, got, want)
		}
	}
	if !a.GetAttr("boot").IsNull() || !a.GetAttr("address").IsNull() {
		t.Errorf("it shows %#v", a)
	}
	wantText(t, "what was done", "redefine: done, running\n", l.apply(c))
	after := l.Configured(otherID)
	from, to := strings.Index(after, "<vmctl:owner"), strings.Index(after, "</vmctl:owner>")
	if from < 0 || to < 0 {
		t.Fatal(after)
	}
	wantText(t, "the rest of its XML", handmade, after[:from]+after[to+len("</vmctl:owner>"):])
	if !strings.Contains(after, `<vmctl:kept path="/mine/notes.img">`) || !strings.Contains(after, `address="disk.cache"`) {
		t.Errorf("the mark: %s", after[from:to])
	}
}

func TestImportedDomainIsChangedWhereItIsWantedOtherwise(t *testing.T) {
	l, c := found(t, false)
	l.apply(c)
	look := func() *providers.Object {
		inv := l.see(providers.Known{Address: dev, Kind: spec.VM, ID: otherID, Name: "old", Want: c.Want})
		for _, o := range inv.Objects {
			if o.ID == otherID {
				return &o
			}
		}
		t.Fatal("it is gone")
		return nil
	}
	c.Object = look()
	if got := c.Object.Attrs.GetAttr("additional_disk"); !got.RawEquals(additional("cache")) || c.Object.Owner == nil {
		t.Errorf("after its import it shows %#v", got)
	}
	all := c.Want.AsValueMap()
	all["memory"], all["additional_disk"] = cty.NumberIntVal(512<<20), additional()
	c.Want, c.Action, c.Generation, c.Prior = cty.ObjectVal(all), providers.Update, 2, cty.EmptyObjectVal
	c.Edits = []providers.Edit{{Path: "memory"}, {Path: "additional_disk"}}
	before := l.Configured(otherID)
	wantText(t, "what was done to a domain with an unknown element", `
redefine: refused unknown_element: redefine vm.dev: its definition would lose elements that this vmctl does not know: <domain/unheard-of>
  seen: unknown: <domain/unheard-of>
  next: make the change by hand: virsh -c qemu:///session edit old
`, l.apply(c))
	if l.Configured(otherID) != before {
		t.Errorf("it is defined as\n%s", l.Configured(otherID))
	}
	l.Put(otherID, func(d *libvirt.FakeDomain) {
		d.Configured = strings.Replace(d.Configured, "<unheard-of attribute='stays'/>", "", 1)
	})
	c.Object = look()
	wantText(t, "what was done", "redefine: done, off\n", l.apply(c))
	after := l.Configured(otherID)
	for text, there := range map[string]bool{
		"/mine/notes.img": true, "/dev/mine/data": true, "more.img": true, "rbd/precious": true, "vdf": true, cacheVol: false, ">536870912<": true, "vmctl0": false, "kept</them:note>": true,
	} {
		rest, _, _ := strings.Cut(after, "<vmctl:owner")
		_, tail, _ := strings.Cut(after, "</vmctl:owner>")
		if strings.Contains(rest+tail, text) != there {
			t.Errorf("%s is in it: %t\n%s", text, !there, after)
		}
	}
	l.PutPool("mine", libvirt.FakePool{Type: "dir", Path: "/mine", Active: true, Volumes: map[string][]byte{"notes.img": nil, "old.console.log": nil}})
	c.Object, c.Action = look(), providers.Destroy
	wantText(t, "its destruction", "delete: done, gone\n  = what it had when it was imported stays: /mine/notes.img, /dev/mine/data, mine/more.img\n", l.apply(c))
	if got := l.Contents(); !strings.Contains(got, "notes.img") || !strings.Contains(got, "old.console.log") || !strings.Contains(got, cacheVol) {
		t.Errorf("there is\n%s", got)
	}
}

func TestNetworkOfAnImportedDomainIsItsOwn(t *testing.T) {
	l, c := found(t, false)
	c.Edits = append(c.Edits, providers.Edit{Path: "port_forward"})
	var refusal *providers.Problem
	if _, err := l.provider.Steps(c); !errors.As(err, &refusal) || !strings.Contains(refusal.Error(), "its network is its own") {
		t.Errorf("a port forwarded into it: %v", err)
	}
}

// A disk without a file that somebody added to vmctl's own domain stays.
func TestRemoteDiskOfAnOwnDomainStays(t *testing.T) {
	l := made(t, vm(off))
	l.Put(devID, func(d *libvirt.FakeDomain) {
		d.Configured = strings.Replace(d.Configured, "</devices>", remoteDisks+"</devices>", 1)
	})
	all := vm(off).AsValueMap()
	all["memory"] = cty.NumberIntVal(1 << 30)
	wantText(t, "what was done", "redefine: done, off\n", l.apply(l.change(providers.Update, cty.ObjectVal(all), "memory")))
	if after := l.Configured(devID); !strings.Contains(after, "rbd/precious") || !strings.Contains(after, "vdf") {
		t.Errorf("it has\n%s", after)
	}
}

// A change of vmctl's own domain says which elements it loses; a start without one loses none.
func TestUnknownElementOfAnOwnDomain(t *testing.T) {
	l := made(t, vm(off))
	const element = "<unheard-of attribute='stays'/>"
	l.Put(devID, func(d *libvirt.FakeDomain) {
		d.Configured = strings.Replace(d.Configured, "<devices>", element+"<devices>", 1)
	})
	all := vm(off).AsValueMap()
	all["memory"] = cty.NumberIntVal(1 << 30)
	wantText(t, "what was done", "redefine: done, off\n  = its definition loses what this vmctl does not know: <domain/unheard-of>\n",
		l.apply(l.change(providers.Update, cty.ObjectVal(all), "memory")))
}
