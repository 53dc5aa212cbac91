package planner_test

import (
	"fmt"
	"strings"
	"testing"

	"vmctl/planner"
)

// Ten thousand VMs: in one run each of them changes, in another run none does. Work that grows
// with the square of their number shows here.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		const web = "vm \"w\" {\n  for_each = toset(flatten([for i in range(100) : [for j in range(%d) : \"n${i}-${j}\"]]))\n  cpus     = %d\n}\n"
		s := after(b, fmt.Sprintf(web, n/100, 2))
		for what, cpus := range map[string]int{"nothing to do": 2, "all restart": 1} {
			s.config = load(b, fmt.Sprintf(web, n/100, cpus))
			b.Run(fmt.Sprintf("%d %s", n, strings.ReplaceAll(what, " ", "_")), func(b *testing.B) {
				for b.Loop() {
					p, w, err := planner.Make(b.Context(), s.open, s.config, s.state, s.options)
					if err != nil {
						b.Fatal(err)
					}
					if len(p.Changes) != n {
						b.Fatalf("%d changes", len(p.Changes))
					}
					if err := w.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
