package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/spec"
)

var cache = spec.Address{Kind: spec.Disk, Name: "cache"}

const cacheID = providers.ID("22222222-2222-8333-8444-555555555555")

// diskLab is a lab with a disk.
type diskLab struct {
	*lab
	onStaleLock string
	size        int64
}

func newDiskLab(t *testing.T) *diskLab {
	s := &diskLab{lab: newLab(t), onStaleLock: "unlock", size: 4 << 20}
	if err := os.MkdirAll(s.dir+"/run", 0o700); err != nil { // for the sockets of others
		t.Fatal(err)
	}
	return s
}

// cacheIs observes the disk. It returns nil if there is none, and the inventory's other facts
// about disks as text.
func (s *diskLab) cacheIs() (*providers.Object, string) {
	s.t.Helper()
	inv, err := s.open().Observe(s.t.Context(), providers.Query{Known: []providers.Known{
		{Address: cache, Kind: spec.Disk, ID: cacheID, Name: "lab.cache"}, {Address: dev, Kind: spec.VM, ID: devID, Name: "lab.dev"},
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	var all []string
	var cache *providers.Object
	for i, o := range inv.Objects {
		if o.Kind == spec.Disk && o.ID == cacheID {
			cache = &inv.Objects[i]
		}
		for _, f := range o.Findings {
			if o.Kind == spec.Disk {
				all = append(all, fmt.Sprintf("%s %s: %s", o.Name, f.Kind, strings.Join(f.Evidence, "; ")))
			}
		}
	}
	for _, u := range inv.Unknown {
		all = append(all, fmt.Sprintf("%s unknown: %s", u.Name, u.Reason))
	}
	return cache, s.plain(strings.Join(all, "\n"))
}

// disk carries out an action on the disk, and returns the steps that were done.
func (s *diskLab) disk(action providers.Action, paths ...string) string {
	s.t.Helper()
	return s.carryOut(s.change(action, paths...))
}

// change plans a change of the disk as it is now.
func (s *diskLab) change(action providers.Action, paths ...string) providers.Change {
	s.t.Helper()
	o, _ := s.cacheIs()
	c := providers.Change{
		Address: cache, Kind: spec.Disk, Action: action, Name: "lab.cache", ID: cacheID, Object: o,
		Want: diskWant(s.size), Policy: diskPolicy(s.onStaleLock), Generation: s.generation,
	}
	for _, path := range paths {
		c.Edits = append(c.Edits, providers.Edit{Path: path})
	}
	return c
}

// attach gives the VM the disk, running or not.
func (s *diskLab) attach() string {
	s.t.Helper()
	return s.carryOut(s.attachment())
}

// attachment plans to give the VM the disk.
func (s *diskLab) attachment() providers.Change {
	s.t.Helper()
	m := s.want.AsValueMap()
	m["additional_disk"] = cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{
		"disk": cty.StringVal("disk.cache"), "mount_point": cty.NullVal(cty.String),
	})})
	s.want = cty.ObjectVal(m)
	s.generation++
	return providers.Change{
		Address: dev, Kind: spec.VM, Action: providers.Update, Name: "lab.dev", ID: devID, Object: s.vm(), Want: s.want, Policy: s.policy,
		Generation: s.generation, Uses: uses(), Edits: []providers.Edit{{Path: "additional_disk"}},
	}
}

func uses() map[spec.Address]providers.Used {
	return map[spec.Address]providers.Used{cache: {Kind: spec.Disk, ID: cacheID, Name: "lab.cache"}}
}

// carryOut carries a change out as an executor would.
func (l *lab) carryOut(c providers.Change) string {
	l.t.Helper()
	p := l.open()
	steps, err := p.Steps(c)
	if err != nil {
		var refusal *providers.Problem
		if !errors.As(err, &refusal) {
			l.t.Fatal(err)
		}
		return "refused: " + l.plain(refusal.Error())
	}
	expect := ""
	if c.Object != nil {
		expect = c.Object.Fingerprint
	}
	var said []string
	for _, s := range steps {
		ctx, cancel := context.WithTimeout(l.t.Context(), s.Timeout)
		r, err := p.Do(ctx, providers.Work{
			Step: s, Expect: expect, Want: c.Want, Policy: c.Policy, Generation: c.Generation, Uses: c.Uses,
		}, func(providers.Progress) {})
		cancel()
		if err != nil {
			var f *providers.Problem
			if !errors.As(err, &f) {
				l.t.Fatalf("not a failure: %v", err)
			}
			return strings.Join(append(said, fmt.Sprintf("%s %s (%s): %s", s.Op, f.Outcome, f.Code, l.plain(f.Error()))), ", ")
		}
		expect = r.Fingerprint
		said = append(said, fmt.Sprintf("%s %s", s.Op, r.How))
	}
	return strings.Join(said, ", ")
}

func (l *lab) is(want, got string) {
	l.t.Helper()
	if want != got {
		l.t.Errorf("it came to\n%s\nand was to be\n%s", got, want)
	}
}

// locks makes a process hold the disk.
func (s *diskLab) locks(id process.Identity) {
	s.t.Helper()
	text, err := json.Marshal(map[string]any{"vm": "someone", "process": id})
	if err == nil {
		err = os.Symlink(string(text), s.diskPath("lab.cache")+".lock")
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// A lock of a disk whose holder is gone is removed before any other step on the disk, unless
// the spec says otherwise; a lock with a living holder is left alone.
//
// row X03
func TestDiskLocked(t *testing.T) {
	t.Parallel()
	gone := func(s *diskLab) {
		id := s.start("--file", "elsewhere")
		s.end(s.t.Context(), id)
		s.locks(id)
	}
	held := func(s *diskLab) { s.locks(s.start("--file", "elsewhere")) }
	const refused = `refused: who held disk lab.cache is gone, and on_stale_lock = "refuse"`
	const is = "DIR/disks/lab.cache.disk.lock names a process that runs: pid N is PROGRAM, start time N"
	for _, tc := range []struct {
		name, onStaleLock string
		lock              func(*diskLab)
		action            providers.Action
		edit, comes       string
	}{
		{"released", "unlock", gone, providers.Update, "size", "unlock done, grow done"},
		{"released and removed", "unlock", gone, providers.Destroy, "", "unlock done, delete done"},
		{"refused", "refuse", gone, providers.Update, "", refused},
		{"not removed", "refuse", gone, providers.Destroy, "", refused},
		{"released by command", "refuse", gone, providers.Recover, "", "unlock done"},
		{"held", "unlock", held, providers.Destroy, "", "refused: somebody holds disk lab.cache: " + is},
		{"held, and to grow", "unlock", held, providers.Update, "size", "refused: somebody holds disk lab.cache: " + is},
		{"held, and released by command", "unlock", held, providers.Recover, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newDiskLab(t)
			s.is("define done", s.disk(providers.Create))
			s.onStaleLock = tc.onStaleLock
			tc.lock(s)
			s.size *= 2
			var edits []string
			if tc.edit != "" {
				s.generation++
				edits = []string{tc.edit}
			}
			s.is(strings.ReplaceAll(tc.comes, "PROGRAM", s.program()), s.disk(tc.action, edits...))
			if wants := strings.Contains(tc.comes, "unlock"); wants == s.exists(s.diskPath("lab.cache")+".lock") {
				t.Errorf("the lock is there: %t", !wants)
			}
		})
	}
}

// Every kind of fault strikes the steps on a disk. After it, the same action succeeds.
func TestDiskFaults(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		op, kind     string
		action, then providers.Action
		edit         string
		want, comes  string
	}{
		{"define", "fail", providers.Create, providers.Create, "", "define failed (fault): define disk.cache: injected fault: fail", "define done"},
		{"define", "partial", providers.Create, providers.Create, "", "define failed (fault): define disk.cache: injected fault: partial", "define done"},
		{"define", "partial", providers.Create, providers.Forget, "", "define failed (fault): define disk.cache: injected fault: partial", "clear done"},
		{"grow", "partial", providers.Update, providers.Update, "size", "grow failed (fault): grow disk.cache: injected fault: partial", "grow done"},
		{"delete", "partial", providers.Destroy, providers.Forget, "", "delete failed (fault): delete disk.cache: injected fault: partial", "clear done"},
	} {
		t.Run(tc.op+" "+tc.kind+" "+string(tc.then), func(t *testing.T) {
			t.Parallel()
			s := newDiskLab(t)
			if tc.action != providers.Create {
				s.is("define done", s.disk(providers.Create))
			}
			var edits []string
			if tc.edit != "" {
				s.size *= 2
				s.generation++
				edits = []string{tc.edit}
			}
			s.settings = s.house.settings(false, fault(tc.op, tc.kind, times(1)))
			s.is(tc.want, s.disk(tc.action, edits...))
			s.is(tc.comes, s.disk(tc.then, edits...))
			if o, _ := s.cacheIs(); o != nil {
				s.is("delete done", s.disk(providers.Destroy))
			}
			s.isEmpty()
		})
	}
}

// A disk that somebody locks after the plan is not grown.
func TestDiskLockedAfterThePlan(t *testing.T) {
	t.Parallel()
	s := newDiskLab(t)
	s.is("define done", s.disk(providers.Create))
	s.size *= 2
	s.generation++
	c := s.change(providers.Update, "size")
	s.locks(s.start("--file", "elsewhere"))
	s.is("grow refused (disk_locked): grow disk.cache: somebody holds the disk lab.cache", s.carryOut(c))
}

// A VM that cannot be read may use the disk: that is not deleted.
func TestDiskBesideAnUnreadableVM(t *testing.T) {
	t.Parallel()
	s := newDiskLab(t)
	s.is("define done", s.disk(providers.Create))
	s.write(s.vmPath("other"), "{")
	s.is("delete failed (host): delete lab.cache: see who uses it: VM other may use any disk: read DIR/vms/other.json: unexpected EOF", s.disk(providers.Destroy))
	s.remove(s.vmPath("other"))
	s.is("delete done", s.disk(providers.Destroy))
}

// A disk that cannot be read is unknown. A mark that was copied along with a disk does not
// count for the copy.
func TestDiskMarks(t *testing.T) {
	t.Parallel()
	s := newDiskLab(t)
	s.is("define done", s.disk(providers.Create))
	mark := strings.TrimSuffix(s.diskPath("lab.cache"), ".disk") + ".mark"
	s.write(s.diskPath("copy"), "")
	s.write(strings.Replace(mark, "lab.cache", "copy", 1), s.read(mark))
	_, said := s.cacheIs()
	s.is("copy copy: its mark was written for the disk lab.cache (N-N-N-N-N)", said)
	s.remove(s.diskPath("copy"))
	s.remove(strings.Replace(mark, "lab.cache", "copy", 1))
	kept := s.read(mark)
	for content, why := range map[string]string{
		"{":                            "lab.cache unknown: read DIR/disks/lab.cache.mark: unexpected EOF",
		`{"format":1}`:                 "lab.cache unknown: read DIR/disks/lab.cache.mark: it says nothing of the disk's ID",
		`{"format":2,"id":"somebody"}`: "lab.cache unknown: read DIR/disks/lab.cache.mark: it has format 2, and this vmctl knows format 1",
	} {
		s.write(mark, content)
		_, said := s.cacheIs()
		s.is(why, said)
		s.is("define failed (host): read the disk lab.cache: "+strings.TrimPrefix(why, "lab.cache unknown: "), s.disk(providers.Create))
	}
	s.write(mark, kept)
	s.remove(s.diskPath("lab.cache"))
	if err := os.Mkdir(s.diskPath("lab.cache"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, said = s.cacheIs()
	s.is("lab.cache unknown: DIR/disks/lab.cache.disk is no plain file", said)
}

// The locks of a VM's process show the disks that the VM really uses: an interrupted
// attachment is finished, or undone.
func TestAttachmentCutShort(t *testing.T) {
	t.Parallel()
	s := newDiskLab(t)
	s.is("define done", s.disk(providers.Create))
	s.does(providers.Create, created)
	file := s.read(s.vmPath("lab.dev"))
	s.is("redefine done", s.attach())
	s.write(s.vmPath("lab.dev"), file) // as if it had not come to that
	o := s.vm()
	if !slices.Contains(o.Holds, providers.Claim{Kind: providers.ClaimDisk, Key: string(cacheID)}) {
		t.Errorf("it holds %v", o.Holds)
	}
	s.is("delete refused (disk_locked): delete disk.cache: somebody holds the disk lab.cache", s.disk(providers.Destroy))
	s.is("redefine done", s.attach())
	s.does(providers.Stop, "stop graceful")
	if s.exists(s.diskPath("lab.cache") + ".lock") {
		t.Error("the disk of a VM that has ended is locked")
	}
}

// A disk that somebody holds is attached to no VM, and the VM runs on as it was.
func TestAttachmentRefused(t *testing.T) {
	t.Parallel()
	s := newDiskLab(t)
	s.is("define done", s.disk(providers.Create))
	s.does(providers.Create, created)
	s.locks(s.start("--file", "elsewhere"))
	before := s.read(s.vmPath("lab.dev"))
	s.is("redefine failed (host): attach lab.cache to lab.dev: the disk is locked: DIR/disks/lab.cache.disk.lock", s.attach())
	s.is(before, s.read(s.vmPath("lab.dev")))
	s.sees("lab.cache \nrunning: \nheld_lock: DIR/disks/lab.cache.disk.lock names a process that runs: pid N is " +
		s.program() + ", start time N\nsim.test \nrunning: \nlab.dev running")
}

// A VM whose disk is gone is not started, and nothing of it is changed.
func TestDiskGone(t *testing.T) {
	t.Parallel()
	s := newDiskLab(t)
	s.is("define done", s.disk(providers.Create))
	s.does(providers.Create, created)
	s.is("redefine done", s.attach())
	s.does(providers.Stop, "stop graceful")
	s.remove(s.diskPath("lab.cache"))
	c := providers.Change{
		Address: dev, Kind: spec.VM, Action: providers.Start, Name: "lab.dev", ID: devID, Object: s.vm(), Want: s.want, Policy: s.policy,
		Generation: s.generation, Uses: uses(),
	}
	s.is("start failed (no_disk): start vm.dev: its disk lab.cache is gone", s.carryOut(c))
	if shown := c.Object.Attrs.GetAttr("additional_disk").AsValueSlice()[0].GetAttr("disk").AsString(); shown != "lab.cache (gone)" {
		t.Errorf("its disk is shown as %q", shown)
	}
}

// A VM that vmctl forced to end leaves none of its disks locked. A VM that somebody else
// ended leaves its locks, for which the disk's policy decides.
func TestLocksOfForced(t *testing.T) {
	t.Parallel()
	s := newDiskLab(t)
	s.is("define done", s.disk(providers.Create))
	s.does(providers.Create, created)
	s.is("redefine done", s.attach())
	s.policy = policy(0.05)
	s.settings = s.house.settings(false, fault("stop", "ignore_request"))
	s.does(providers.Stop, "stop forced")
	if s.exists(s.diskPath("lab.cache") + ".lock") {
		t.Error("the disk of a VM that was forced is locked")
	}
	s.does(providers.Start, "start done, wait_ready done")
	s.end(t.Context(), s.processOf())
	s.does(providers.Stop, "stop already_gone")
	if !s.exists(s.diskPath("lab.cache") + ".lock") {
		t.Error("the disk of a VM that somebody ended is free, whatever the spec says of it")
	}
}

// A disk whose owner somebody took out of its mark keeps its ID when it is marked again: the
// VMs that have it go by that.
func TestDiskIsMarkedAgain(t *testing.T) {
	t.Parallel()
	s := newDiskLab(t)
	s.is("define done", s.disk(providers.Create))
	mark := strings.TrimSuffix(s.diskPath("lab.cache"), ".disk") + ".mark"
	var content map[string]any
	if err := json.Unmarshal([]byte(s.read(mark)), &content); err != nil {
		t.Fatal(err)
	}
	delete(content, "owner")
	bare, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	s.write(mark, string(bare))
	s.generation++
	c := s.change(providers.Update)
	c.Prior, c.Mark = c.Want, &providers.MarkEdit{}
	s.settings = s.house.settings(false, fault("redefine", "partial", times(1)))
	s.is("redefine failed (fault): redefine disk.cache: injected fault: partial", s.carryOut(c))
	s.is("redefine done", s.carryOut(c))
	if o, _ := s.cacheIs(); o == nil || o.ID != cacheID || o.Owner == nil {
		t.Errorf("it is %+v", o)
	}
}

// A disk that is attached to a running VM takes its lock, so that the plan knows who holds it.
func TestAnAttachmentTakesTheLock(t *testing.T) {
	t.Parallel()
	s := newDiskLab(t)
	s.is("define done", s.disk(providers.Create))
	s.does(providers.Create, created)
	lock := providers.Claim{Kind: "the lock of disk", Key: "lab.cache"}
	for _, takes := range []bool{true, false} { // the second time the VM has it
		steps, err := s.open().Steps(s.attachment())
		if err != nil || len(steps) != 1 || slices.Contains(steps[0].Takes, lock) != takes {
			t.Errorf("steps %+v, %v; one takes the lock: want %t", steps, err, takes)
		}
		s.attach()
	}
}
