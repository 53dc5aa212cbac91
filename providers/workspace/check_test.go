package workspace_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
)

// What goes with its VM is looked at once more before that goes, or saved as its block says: somebody may have gone on since the plan was
// made.
func TestWorkBeforeTheVMGoes(t *testing.T) {
	policy := func(onDestroy string) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"sync": cty.ObjectVal(map[string]cty.Value{"on_destroy": cty.StringVal(onDestroy)})})
	}
	w := newBench(t, inVM).workspace()
	w.create(t)
	clean := w.see(t)[w.id]
	for _, test := range []struct {
		name   string
		change providers.Change
		want   string
	}{
		{"its VM is replaced", providers.Change{Action: providers.Destroy, Ends: true}, "free check, checks\n"},
		{"its VM is replaced, and its block saves", providers.Change{Action: providers.Destroy, Ends: true, Succeeds: true, Policy: policy("save")}, "free keep, saves\nremove remove_kept\n"},
		{"its VM is replaced, and its block fetches", providers.Change{Action: providers.Destroy, Ends: true, Policy: policy("fetch")}, "free check, checks\n"},
		{"its work may be lost", providers.Change{Action: providers.Destroy, Ends: true, Discards: true}, ""},
		{"the root of its VM is in memory", providers.Change{Action: providers.Release, Ends: true}, "release check, checks\n"},
		{"its VM goes down", providers.Change{Action: providers.Release}, ""},
		{"it is removed", providers.Change{Action: providers.Destroy}, "remove remove\n"},
	} {
		test.change.Object, test.change.ID, test.change.Kind = &clean, w.id, clean.Kind
		steps, err := w.provider.Steps(test.change)
		must(t, err)
		got := ""
		for _, s := range steps {
			got += fmt.Sprintf("%s %s", s.Phase, s.Op)
			if s.Checks {
				got += ", checks"
			}
			if s.Saves {
				got += ", saves"
			}
			got += "\n"
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: steps (-want +got):\n%s", test.name, diff)
		}
	}
	must(t, w.do("check", providers.PhaseFree))
	must(t, os.WriteFile(filepath.Join(w.path, "new"), []byte("new\n"), 0o600))
	err := w.do("check", providers.PhaseFree)
	var f *providers.Problem
	if !errors.As(err, &f) || f.Code != "dirty" || f.Outcome != providers.Stale {
		t.Errorf("with a new file: %v", err)
	}
}
