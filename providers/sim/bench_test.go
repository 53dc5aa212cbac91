package sim_test

import (
	"fmt"
	"testing"

	"vmctl/providers"
	"vmctl/spec"
)

// BenchmarkObserve looks at ten thousand weightless VMs.
func BenchmarkObserve(b *testing.B) {
	const count = 10_000
	h := &house{dir: b.TempDir() + "/sim-here"}
	p, err := simType(b).Open(b.Context(), h.settings(true))
	if err != nil {
		b.Fatal(err)
	}
	var q providers.Query
	for i := range count {
		k := providers.Known{
			Address: spec.Address{Kind: spec.VM, Name: "web", Key: fmt.Sprint(i)}, Kind: spec.VM, ID: providers.ID(fmt.Sprint("id", i)),
			Name: fmt.Sprint("lab.web.", i), Want: want(),
		}
		steps, err := p.Steps(providers.Change{Address: k.Address, Action: providers.Create, ID: k.ID, Name: k.Name, Want: k.Want, Generation: 1})
		if err != nil {
			b.Fatal(err)
		}
		expect := ""
		for _, s := range steps {
			r, err := p.Do(b.Context(), providers.Work{Step: s, Want: k.Want, Expect: expect, Generation: 1}, func(providers.Progress) {})
			if err != nil {
				b.Fatal(err)
			}
			expect = r.Fingerprint
		}
		q.Known = append(q.Known, k)
	}
	for b.Loop() {
		inv, err := p.Observe(b.Context(), q)
		if err != nil || len(inv.Objects) != count {
			b.Fatalf("%d objects: %v", len(inv.Objects), err)
		}
	}
}
