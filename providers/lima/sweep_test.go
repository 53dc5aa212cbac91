package lima

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"vmctl/providers"
	"vmctl/spec"
)

// Of steps side by side, the last one that ends removes the empty home, whatever kinds of step they are: the others
// still write in it, and make its names durable.
func TestTheLastStepSweepsTheHome(t *testing.T) {
	for _, op := range []string{"define", "delete", "clear", "stop"} {
		for _, kind := range []spec.Kind{spec.VM, spec.Disk} {
			t.Run(op+" "+string(kind), func(t *testing.T) {
				home := filepath.Join(t.TempDir(), "h")
				p := &Provider{home: home, locks: new(homeLocks)}
				p.settings.Dir = home
				begin := func(op string, kind spec.Kind) func() error {
					var w providers.Work
					w.Op, w.Address = op, spec.Address{Kind: kind, Name: "dev"}
					_, end, err := p.Begin(context.Background(), w, nil)
					if err != nil {
						t.Fatal(err)
					}
					return end
				}
				if err := os.MkdirAll(filepath.Join(home, configDir), 0o700); err != nil {
					t.Fatal(err)
				}
				first, last := begin("delete", spec.VM), begin(op, kind)
				if err := first(); err != nil || !exists(home) {
					t.Fatalf("after the first of two steps: %v, and the home exists: %t", err, exists(home))
				}
				if err := last(); err != nil || exists(home) {
					t.Fatalf("after the last of two steps: %v, and the home exists: %t", err, exists(home))
				}
			})
		}
	}
}
