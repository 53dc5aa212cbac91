package libvirt_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

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
