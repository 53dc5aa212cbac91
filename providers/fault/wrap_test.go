package fault_test

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/fault"
	"vmctl/spec"
)

// plain is a provider whose steps succeed, and which has a console.
type plain struct{ providers.Provider }

func (plain) Do(context.Context, providers.Work, providers.Log) (providers.Result, error) {
	return providers.Result{How: providers.Done}, nil
}

func (plain) Console(context.Context, providers.Object, int64, int) (providers.Console, error) {
	return providers.Console{Text: []byte("booting")}, nil
}

func wrap(t *testing.T, counts string, faults ...map[string]cty.Value) (providers.Provider, error) {
	t.Helper()
	var all []cty.Value
	for _, f := range faults {
		all = append(all, cty.ObjectVal(f))
	}
	s := providers.Settings{Attrs: cty.ObjectVal(map[string]cty.Value{"fault": cty.TupleVal(all)})}
	return fault.Wrap(plain{}, s, nil, counts)
}

func block(op, kind string, times int64) map[string]cty.Value {
	return map[string]cty.Value{"op": cty.StringVal(op), "kind": cty.StringVal(kind), "times": cty.NumberIntVal(times)}
}

// Several vmctl that share a file count as one: a fault strikes as often as it says, and no more.
func TestCountTogether(t *testing.T) {
	counts := filepath.Join(t.TempDir(), "new", "faults")
	var struck atomic.Int64
	var wait sync.WaitGroup
	for range 8 {
		p, err := wrap(t, counts, block("start", fault.Fail, 3), block("start", fault.Fail, 2), block("stop", fault.Fail, 9))
		if err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			for range 5 {
				w := providers.Work{Step: providers.Step{Op: "start", Address: spec.Address{Kind: spec.VM, Name: "dev"}}}
				if _, err := p.Do(t.Context(), w, nil); err != nil {
					struck.Add(1)
				}
			}
		})
	}
	wait.Wait()
	if n := struck.Load(); n != 5 {
		t.Errorf("of 40 steps, faults struck %d, want 5", n)
	}
}

func TestWrapKeepsAbilities(t *testing.T) {
	p, err := wrap(t, filepath.Join(t.TempDir(), "faults"), block("start", fault.Fail, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := providers.Ability[providers.ConsoleReader](p); !ok {
		t.Error("the wrapped provider has no console")
	}
	if _, ok := providers.Ability[providers.Reacher](p); ok {
		t.Error("the wrapped provider can be reached, and the plain one cannot")
	}
}

// A kind that needs the provider's help is refused if the provider is no Helper.
func TestKindWithoutHelp(t *testing.T) {
	_, err := wrap(t, filepath.Join(t.TempDir(), "faults"), block("stop", "unkillable", 1))
	want := `fault[0]: this provider cannot fail by kind "unkillable"`
	if err == nil || err.Error() != want {
		t.Errorf("wrapped: %v, want %s", err, want)
	}
}
