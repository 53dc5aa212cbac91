package planner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/providers/guest"
	"vmctl/providers/providertest/box"
)

// counted is a system whose VMs have a guest each: a folder.
type counted struct {
	*system
	dir            string
	entered, calls *atomic.Int64
	open           *atomic.Int64 // guests that nobody has closed
}

// Enter implements providers.Host.
func (s counted) Enter(_ context.Context, o providers.Object, values cty.Value) (providers.Guest, error) {
	if values.GetAttr("ssh").GetAttr("user").AsString() != "root" {
		return nil, fmt.Errorf("no login to %s is known", o.Name)
	}
	s.entered.Add(1)
	s.open.Add(1)
	return countedGuest{guest.InFolder(filepath.Join(s.dir, o.Name), []string{"PATH=" + os.Getenv("PATH")}), s}, nil
}

type countedGuest struct {
	providers.Guest
	of counted
}

func (g countedGuest) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	g.of.calls.Add(1)
	return g.Guest.Run(ctx, c)
}

func (g countedGuest) Close() error {
	g.of.open.Add(-1)
	return g.Guest.Close()
}

// A plan over many objects inside of some VMs enters each VM once, asks each place once, and leaves no
// guest open.
func TestOneConnectionForEachVM(t *testing.T) {
	const vms, boxes = 5, 10
	var spec strings.Builder
	for i := range vms {
		fmt.Fprintf(&spec, "vm \"v%d\" {}\n", i)
		for j := range boxes {
			fmt.Fprintf(&spec, "box \"v%d_%d\" {\n  in    = vm.v%d\n  label = \"l%d\"\n}\n", i, j, i, j)
		}
	}
	s := after(t, spec.String())
	on := counted{dir: t.TempDir(), entered: &atomic.Int64{}, calls: &atomic.Int64{}, open: &atomic.Int64{}}
	for _, a := range slices.Sorted(maps.Keys(s.insides)) { // what the scene shows there is in the guests
		for _, o := range s.insides[a].inventory.Objects {
			folder := filepath.Join(on.dir, "demo."+strings.TrimPrefix(a, "vm."), "boxes", o.Attrs.GetAttr("label").AsString())
			line, err := json.Marshal(map[string]any{
				"ID": o.ID, "Name": o.Name, "Label": o.Attrs.GetAttr("label").AsString(), "Open": true,
				"Owner": map[string]any{"ID": project.ID, "Project": project.Name, "Address": o.Owner.Address, "Of": o.ID, "Generation": 1},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "box"), append(line, '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	open := func(ctx context.Context, o planner.Opening) (providers.Provider, error) {
		if o.Via != nil {
			if g, err := o.Via.Enter(ctx); err != nil || g.Close() != nil { // one user of the guest leaves it to the others
				t.Errorf("enter %s: %v", o.Via.Address, err)
			}
			return box.Type(nil).Open(ctx, providers.Settings{Project: project, Via: o.Via})
		}
		system := on
		system.system = s.system(o.Attrs.GetAttr("uri").AsString())
		return system, nil
	}
	p, w, err := planner.Make(t.Context(), open, s.config, s.state, s.options)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("", text(p)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if n, calls := on.entered.Load(), on.calls.Load(); n != vms || calls != vms {
		t.Errorf("%d objects in %d VMs: entered %d times, and asked %d times", vms*boxes, vms, n, calls)
	}
	if n := on.open.Load(); n != 0 {
		t.Errorf("%d guests are still open", n)
	}
}
