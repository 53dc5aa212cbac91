package libvirt_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/libvirt"
)

// holding returns a lab with vm.dev, off, with disk.cache, two fixed ports and one that the
// kernel chooses, and with somebody else's additions.
func holding(t *testing.T) *lab {
	t.Helper()
	l := withDisk(t)
	l.apply(useCache(create(heldWant())))
	l.Put(devID, func(d *libvirt.FakeDomain) {
		d.Configured = strings.Replace(d.Configured, "<devices>", `<devices>
    <disk type="block" device="cdrom"><source dev="/dev/sr0"></source><target dev="sdx" bus="sata"></target></disk>`, 1)
		d.Configured = strings.Replace(d.Configured, "<metadata>", `<metadata><their:note xmlns:their="urn:theirs">keep me</their:note>`, 1)
	})
	l.Calls = nil
	return l
}

func heldWant() cty.Value {
	return dev2(map[string]cty.Value{"running": cty.False, "port_forward": forwards("8081", "8082", "auto")})
}

// yielding returns a change that gives up all disks and ports, while another change takes the
// given claims.
func (l *lab) yielding(claims ...providers.Claim) providers.Change {
	l.t.Helper()
	c := l.change(providers.Update, vm(map[string]cty.Value{"running": cty.False, "port_forward": none}), "additional_disk", "port_forward")
	c.Yields = claims
	return c
}

var (
	cacheClaim = providers.Claim{Kind: providers.ClaimDisk, Key: cacheID}
	portClaim  = providers.Claim{Kind: providers.ClaimPort, Key: "127.0.0.1:8082/tcp"}
)

// detached does the first step of a change, which frees, and returns the differences in the
// description of the domain.
func (l *lab) detached(c providers.Change) (said string, gone, came []string) {
	l.t.Helper()
	before := normal(l.t, l.Configured(devID))
	steps, err := l.provider.Steps(c)
	if err != nil || steps[0].Op != "detach" {
		l.t.Fatalf("steps %+v, %v", steps, err)
	}
	r, err := l.provider.Do(l.t.Context(), providers.Work{Step: steps[0], Expect: c.Object.Fingerprint, Policy: c.Policy}, func(providers.Progress) {})
	if err != nil {
		return l.failure("detach", err), nil, nil
	}
	gone, came = apart(before, normal(l.t, l.Configured(devID)))
	return string(r.How), gone, came
}

// normal returns a domain as libvirtxml writes it, a line for each element.
func normal(t testing.TB, text string) []string {
	t.Helper()
	var d libvirt.XMLDomain
	if err := d.Unmarshal(text); err != nil {
		t.Fatal(err)
	}
	text, err := d.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`>\s*<`).ReplaceAllString(text, ">\n<")
	return strings.Split(text, "\n")
}

// apart returns the lines that only one of two texts has.
func apart(before, after []string) (gone, came []string) {
	for _, line := range before {
		if !slices.Contains(after, line) {
			gone = append(gone, line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			came = append(came, line)
		}
	}
	return gone, came
}

func TestDetachOfADiskFromWhatIsOff(t *testing.T) {
	l := holding(t)
	said, gone, came := l.detached(l.yielding(cacheClaim))
	wantText(t, "how it ended", "done", said)
	want := []string{
		`<disk type="file" device="disk">`, `<driver name="qemu" type="qcow2">`, `</driver>`,
		`<source file="` + l.dir + `/data/libvirt/pool/lab.cache.qcow2">`, `<target dev="vda" bus="virtio">`, `<serial>cache</serial>`,
	}
	if diff := cmp.Diff(want, gone); diff != "" {
		t.Errorf("what is gone (-want +got):\n%s", diff)
	}
	if len(came) > 0 {
		t.Errorf("there is now %q", came)
	}
	if text := l.Configured(devID); !strings.Contains(text, "keep me") || !strings.Contains(text, "/dev/sr0") || strings.Count(text, "hostfwd=") != 4 {
		t.Errorf("it is\n%s", text)
	}
	wantText(t, "calls", "define lab.dev\n", l.calls())
	if l.Volume(poolName, cacheVol) == nil {
		t.Error("the disk is gone")
	}
	if o := l.object(heldWant()); slices.Contains(o.Holds, cacheClaim) || !slices.Contains(o.Holds, portClaim) {
		t.Errorf("it holds %v", o.Holds)
	}
}

func TestDetachOfAPortFromWhatIsOff(t *testing.T) {
	l := holding(t)
	said, gone, came := l.detached(l.yielding(portClaim))
	wantText(t, "how it ended", "done", said)
	if len(gone) != 1 || len(came) != 1 || strings.Replace(gone[0], ",hostfwd=tcp:127.0.0.1:8082-:8081", "", 1) != came[0] {
		t.Errorf("gone is %q, and there is now %q", gone, came)
	}
	if o := l.object(heldWant()); !slices.Contains(o.Holds, cacheClaim) || slices.Contains(o.Holds, portClaim) {
		t.Errorf("it holds %v", o.Holds)
	}
}

// The other steps of the change follow the detachment.
func TestDetachIsFollowedByTheRest(t *testing.T) {
	l := holding(t)
	c := l.yielding(cacheClaim, portClaim)
	wantText(t, "what was done", "detach: done, off\nredefine: done, off\n", l.apply(c))
	wantText(t, "done again", "detach: already, off\n  = its next start has none of them\nredefine: already, off\n  = it is as wanted\n", l.apply(c))
}

func TestDetachRefuses(t *testing.T) {
	for _, tc := range []struct {
		name    string
		prepare func(l *lab)
		want    string
	}{
		{"another's mark", func(l *lab) {
			l.Put(devID, func(d *libvirt.FakeDomain) {
				d.Configured = strings.Replace(d.Configured, `address="vm.dev"`, `address="vm.other"`, 1)
			})
		}, "detach: refused not_ours: detach vm.dev: domain lab.dev (" + devID + ") does not bear the mark of vm.dev"},
		{"a stale plan", func(l *lab) {
			l.Put(devID, func(d *libvirt.FakeDomain) { d.Configured = strings.Replace(d.Configured, ">1</vcpu>", ">3</vcpu>", 1) })
		}, "detach: stale stale_plan"},
		{"saved memory", func(l *lab) { l.Put(devID, func(d *libvirt.FakeDomain) { d.Saved = true }) }, "detach: refused saved_memory: change vm.dev: "},
		{"gone", func(l *lab) { l.Drop(devID) }, "detach: stale stale_plan: detach vm.dev: domain lab.dev (" + devID + ") is gone since the plan was made"},
		{"libvirt refuses", func(l *lab) { l.Refuses["define"] = libvirt.ErrLibvirt("read-only file system") }, "detach: failed libvirt: detach from lab.dev: read-only file system"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := holding(t)
			c := l.yielding(cacheClaim)
			tc.prepare(l)
			before := l.Configured(devID)
			if got := l.apply(c); !strings.Contains(got, tc.want) || strings.Contains(got, "redefine") {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
			if diff := cmp.Diff(before, l.Configured(devID)); diff != "" {
				t.Errorf("it was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestUnmarkOfADomain(t *testing.T) {
	l := holding(t)
	before := l.Configured(devID)
	c := l.change(providers.Forget, cty.NilVal)
	wantText(t, "what was done", "unmark: done, off\n", l.apply(c))
	mark := regexp.MustCompile(`(?s)<vmctl:owner .*</vmctl:owner>`)
	wantText(t, "the domain", mark.ReplaceAllString(before, ""), l.Configured(devID))
	for _, o := range l.observe(cty.NilVal).Objects {
		if o.ID == devID && o.Owner != nil {
			t.Errorf("it bears the mark %+v", o.Owner)
		}
	}
	l.Calls = nil
	wantText(t, "done again", "unmark: already, off\n  = it bears no mark\n", l.apply(c))
	if len(l.Calls) > 0 {
		t.Errorf("calls %v", l.Calls)
	}
}

// Unmarking a running domain removes the mark from its live definition too: after
// virsh undefine that is the only one.
func TestUnmarkOfADomainThatRuns(t *testing.T) {
	l := made(t, vm(nil))
	mark := regexp.MustCompile(`(?s)<vmctl:owner .*</vmctl:owner>`)
	running := mark.ReplaceAllString(l.Running(devID), "")
	wantText(t, "what was done", "unmark: done, running\n", l.apply(l.change(providers.Forget, cty.NilVal)))
	wantText(t, "what runs", running, l.Running(devID))
	wantText(t, "calls", "unmark lab.dev\n", l.calls())
}

func TestUnmarkOfAnotherIsRefused(t *testing.T) {
	l := made(t, vm(nil))
	c := l.change(providers.Forget, cty.NilVal)
	l.Put(devID, func(d *libvirt.FakeDomain) {
		d.Configured = strings.Replace(d.Configured, `address="vm.dev"`, `address="vm.other"`, 1)
	})
	if got := l.apply(c); !strings.Contains(got, "unmark: refused not_ours") || len(l.Calls) > 0 {
		t.Errorf("got %s, calls %v", got, l.Calls)
	}
}

func TestUnmarkOfAVolume(t *testing.T) {
	l := withDisk(t)
	l.PutFile(poolName, cacheVol, []byte("work"))
	c := l.changeOfDisk(providers.Forget, cty.NilVal)
	wantText(t, "what was done", "unmark: done\n", l.apply(c))
	wantText(t, "calls", "delete "+cacheVol+".vmctl\n", l.calls())
	wantText(t, "the volume", "work", string(l.Volume(poolName, cacheVol)))
	l.Calls = nil
	if got := l.apply(c); !strings.HasPrefix(got, "unmark: already") || len(l.Calls) > 0 {
		t.Errorf("done again: %s, calls %v", got, l.Calls)
	}
	if l.diskIn(l.see()) != nil {
		t.Error("it is still vmctl's")
	}
}

func TestUnmarkOfAnothersVolumeIsRefused(t *testing.T) {
	l := withDisk(t)
	c := l.changeOfDisk(providers.Forget, cty.NilVal)
	l.PutFile(poolName, cacheVol+".vmctl", []byte(strings.Replace(string(l.Volume(poolName, cacheVol+".vmctl")), "disk.cache", "disk.other", 1)))
	if got := l.apply(c); !strings.Contains(got, "unmark: refused not_ours") || len(l.Calls) > 0 {
		t.Errorf("got %s, calls %v", got, l.Calls)
	}
}

// A domain that was undefined while it ran ends with its stop. The restart defines it
// again.
func TestRestartOfWhatWasUndefined(t *testing.T) {
	l := withDisk(t)
	l.apply(useCache(create(dev2(nil))))
	l.Vanish(devID, true)
	c := l.change(providers.RestartIt, vm(nil), "additional_disk")
	c.Yields = []providers.Claim{cacheClaim}
	got := l.apply(c)
	for _, want := range []string{"detach: already, gone\n  = the domain was transient and ended with its stop: nothing to detach\n", "redefine: done, off\n", "start: done, running\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// A disk is made again in another file: the domain still refers to the old one.
func TestDiskThatIsInAnotherFileNow(t *testing.T) {
	l := withDisk(t)
	l.apply(useCache(create(dev2(off))))
	shown := func() cty.Value { return l.object(dev2(off)).Attrs.GetAttr("additional_disk") }
	l.DropVolume(poolName, cacheVol)
	if got := shown(); !got.RawEquals(additional("cache")) {
		t.Fatalf("a disk that is gone: %#v", got)
	}
	if got := l.apply(l.changeOfDisk(providers.Create, disk(8*mib, "raw"))); !strings.Contains(got, "define: done") {
		t.Fatalf("make it again:\n%s", got)
	}
	if got := shown().AsValueSlice()[0].GetAttr("disk").AsString(); !strings.HasSuffix(got, "/"+cacheVol) {
		t.Errorf("the domain has %s, which is not there", got)
	}
	if got := l.apply(useCache(l.change(providers.Update, dev2(off), "additional_disk"))); !strings.Contains(got, "redefine: done") {
		t.Errorf("redefine it:\n%s", got)
	}
	if got := shown(); !got.RawEquals(additional("cache")) {
		t.Errorf("it was redefined, and has %#v", got)
	}
}

// Nothing is known of a disk in a pool that is not listed: its copy in another pool is not
// the disk of the spec.
func TestDiskInAPoolThatIsNotListed(t *testing.T) {
	l := withDisk(t)
	l.apply(useCache(create(dev2(off))))
	copied := map[string][]byte{cacheVol: l.Volume(poolName, cacheVol), cacheVol + ".vmctl": l.Volume(poolName, cacheVol+".vmctl")}
	l.DropPool(poolName)
	l.PutPool("ssd", libvirt.FakePool{Type: "dir", Path: "/ssd", Active: true, Volumes: copied})
	if got := l.object(dev2(off)).Attrs.GetAttr("additional_disk"); !got.RawEquals(additional("cache")) {
		t.Errorf("the domain has %#v", got)
	}
}

// A domain that was undefined while it runs has no configuration that a disk could be
// added to: it gets one first.
func TestAttachmentToWhatWasUndefined(t *testing.T) {
	l := withDisk(t)
	l.apply(create(vm(nil)))
	l.Vanish(devID, true)
	l.Calls = nil
	c := useCache(l.change(providers.Update, dev2(nil), "additional_disk"))
	if got := l.apply(c); !strings.Contains(got, "redefine: done, running\n  = attached disk.cache") {
		t.Errorf("got\n%s", got)
	}
	wantText(t, "calls", "define lab.dev\nattach lab.cache.qcow2 to lab.dev\ndefine lab.dev\n", l.calls())
}
