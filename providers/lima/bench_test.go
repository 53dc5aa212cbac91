//go:build unix

package lima_test

import (
	"fmt"
	"testing"

	"vmctl/providers"
)

// BenchmarkObserve observes a home of 100 instances that are off, with a disk each: files are read,
// and the process table once. The goal is 150 ms on two processors.
func BenchmarkObserve(b *testing.B) {
	h := &house{t: nil, data: b.TempDir()}
	h.home = h.data + "/h"
	h.fill(b, 100)
	p, err := h.typeFor(b).Open(b.Context(), h.settings())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		inv, err := p.Observe(b.Context(), providers.Query{})
		if err != nil || len(inv.Objects) != 200 || len(inv.Unknown) > 0 {
			b.Fatalf("%d objects, %v, %v", len(inv.Objects), inv.Unknown, err)
		}
	}
}

// fill writes n instances and as many disks, as vmctl writes them.
func (h *house) fill(tb testing.TB, n int) {
	tb.Helper()
	for i := range n {
		name := fmt.Sprintf("lab.n%d", i)
		h.put(tb, definition, name, "lima.yaml")
		h.put(tb, fmt.Sprintf(`{"format":1,"id":"id-%d","name":%q,"owner":{"id":"k7m2qd9x4r","project":"lab","address":"vm.n%d","of":"id-%d","generation":1}}`, i, name, i, i), name, "vmctl.json")
		h.put(tb, "disk", name, "disk")
		h.put(tb, "disk", "_disks", name, "datadisk")
	}
}

const definition = `additionalDisks: []
containerd: {system: false, user: false}
cpus: 2
disk: 20GiB
firmware: {legacyBIOS: true}
images: [{arch: x86_64, location: /images/debian.qcow2}]
memory: 2GiB
mounts: []
plain: true
portForwards: [{guestPort: 8080, hostIP: 127.0.0.1, hostPort: 8080, proto: tcp, static: true}, {guestPort: 5353, ignore: true, proto: any}]
provision: [{mode: system, script: "#!/bin/sh\ntrue\n"}]
ssh: {loadDotSSHPubKeys: false}
user: {name: lima, uid: 1000}
vmType: qemu
`
