package libvirt_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/spec"
)

// Observing a domain that is off takes two calls, whoever made it, and none of them lists a pool.
func TestObserveTakesFewCalls(t *testing.T) {
	l := made(t, vm(off))
	asked := func() (map[string]int, int) {
		clear(l.Asked)
		l.observe(vm(off))
		return l.Asked, l.Asked["xml"] + l.Asked["power"] + l.Asked["job"]
	}
	_, one := asked()
	pools, listings := l.Asked["pools"], l.Asked["refresh"]
	const more = 50
	for i := range more {
		id := fmt.Sprintf("99999999-2222-8333-8444-%012d", i)
		l.Copy(devID, id, fmt.Sprintf("copy-%d", i))
	}
	all, many := asked()
	if one != 2 || many != 2*(more+1) || all["domains"] != 1 || all["pools"] != pools || all["refresh"] != listings {
		t.Errorf("%d calls for one domain, %d for %d: %v", one, many, more+1, all)
	}
}

// Observing a disk takes one call beside those that read its mark.
func TestObserveOfDisksTakesFewCalls(t *testing.T) {
	l := made(t, vm(off))
	disks := func(n int) {
		for i := range n {
			name := fmt.Sprintf("lab.d%d.qcow2", i)
			l.PutVolume(poolName, libvirt.FakeVolume{Name: name, Format: "qcow2", Capacity: 1 << 20})
			l.PutFile(poolName, name+".vmctl", fmt.Appendf(nil, `{"id":%q,"project":"lab","address":"disk.d%d","of":"%08d-2222-8333-8444-555555555555","volume":%q,"generation":1}`, lineage, i, i, name))
		}
	}
	asked := func() map[string]int {
		clear(l.Asked)
		l.observe(vm(off))
		return map[string]int{"volume": l.Asked["volume"], "head": l.Asked["head"], "refresh": l.Asked["refresh"]}
	}
	before := asked()
	const n = 20
	disks(n)
	after := asked()
	if after["volume"]-before["volume"] != n || after["head"]-before["head"] != n || after["refresh"] != before["refresh"] {
		t.Errorf("before: %v; with %d disks: %v", before, n, after)
	}
}

// A new file lists its pool once.
func TestUploadListsItsPoolOnce(t *testing.T) {
	listings := map[string]int{}
	l := newLab(t)
	last := 0
	l.BeforeStore = func(name string) {
		listings[name] = l.Asked["refresh"] - last
		last = l.Asked["refresh"]
	}
	if got := l.apply(create(vm(off))); strings.Contains(got, "failed") {
		t.Fatal(got)
	}
	for name, n := range listings {
		if strings.Contains(name, ".initrd-") && n != 1 {
			t.Errorf("%s: its pool was listed %d times", name, n)
		}
	}
	if len(listings) != 2 {
		t.Errorf("listings: %v", listings)
	}
}

// A step that waits until others have changed their files ends with its context.
func TestWaitForOthersEnds(t *testing.T) {
	l := newLab(t)
	blocked, release := make(chan struct{}), make(chan struct{})
	l.BeforeStore = func(string) {
		l.BeforeStore = nil
		close(blocked)
		<-release
	}
	done := make(chan string)
	go func() { done <- l.apply(create(vm(off))) }()
	<-blocked
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("told to stop"))
	work := providers.Work{Step: providers.Step{Op: "define", Address: spec.Address{Kind: spec.VM, Name: "ops"}, Object: otherID, Name: "lab.ops"}, Want: vm(off), Policy: policy(nil)}
	_, err := l.provider.Do(ctx, work, func(providers.Progress) {})
	close(release)
	if got := <-done; strings.Contains(got, "failed") {
		t.Error(got)
	}
	if err == nil || err.Error() != "define vm.ops: wait for the other steps that change files: told to stop" {
		t.Errorf("it ended with %v", err)
	}
}

// manyDisks makes some disks one after the other, and then grows each of them. It returns the
// number of calls of each run by operation.
func manyDisks(t *testing.T, n int) (making, growing map[string]int) {
	t.Helper()
	l := newLab(t)
	counted := func(each func(i int) providers.Change) map[string]int {
		t.Helper()
		clear(l.Asked)
		l.Calls = nil
		for i := range n {
			if got := l.apply(each(i)); !strings.Contains(got, ": done") || strings.Contains(got, "next:") {
				t.Fatalf("disk %d:\n%s", i, got)
			}
		}
		all := maps.Clone(l.Asked)
		for _, call := range l.Calls {
			op, _, _ := strings.Cut(call, " ")
			all[op]++
		}
		return all
	}
	change := func(i int, action providers.Action) providers.Change {
		return providers.Change{
			Address: spec.Address{Kind: spec.Disk, Name: fmt.Sprintf("d%d", i)}, Kind: spec.Disk, Action: action,
			Name: fmt.Sprintf("lab.d%d", i), ID: providers.ID(fmt.Sprintf("%08d-2222-8333-8444-555555555555", i)),
			Want: disk(8*mib, "qcow2"), Policy: policy(nil), Generation: 2,
		}
	}
	making = counted(func(i int) providers.Change { return change(i, providers.Create) })
	inv := l.see()
	objects := map[providers.ID]providers.Object{}
	for _, o := range inv.Objects {
		objects[o.ID] = o
	}
	l.open() // another run
	growing = counted(func(i int) providers.Change {
		c := change(i, providers.Update)
		o := objects[c.ID]
		c.Object, c.Want, c.Edits = &o, disk(16*mib, "qcow2"), []providers.Edit{{Path: "size"}}
		return c
	})
	return making, growing
}

// The calls for one more disk are the same however many disks there are: none of them lists a
// pool, or reads the mark of another disk.
func TestDisksTakeTheSameCallsEach(t *testing.T) {
	const n = 20
	few, fewGrown := manyDisks(t, n)
	many, manyGrown := manyDisks(t, 2*n)
	for _, tc := range []struct {
		what      string
		few, many map[string]int
		want      map[string]int // for each disk
	}{
		{"making", few, many, map[string]int{"head": 1, "volume": 1, "has": 2, "pool": 2, "upload": 1, "make-volume": 1}},
		// The first listing of a run reads the marks: one call for each.
		{"growing", fewGrown, manyGrown, map[string]int{"domains": 1, "head": 3, "volume": 3, "resize-volume": 1}},
	} {
		more := map[string]int{}
		for op, calls := range tc.many {
			if calls != tc.few[op] {
				more[op] = calls - tc.few[op]
			}
		}
		for op := range tc.want {
			tc.want[op] *= n
		}
		if diff := cmp.Diff(tc.want, more); diff != "" {
			t.Errorf("%s: calls for %d more disks (-want +got):\n%s\n%d disks: %v", tc.what, n, diff, n, tc.few)
		}
	}
}
