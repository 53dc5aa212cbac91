package executor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/condition"
	"vmctl/planner"
	"vmctl/spec"
	"vmctl/state"
)

// dying is a store whose journal takes so many entries and no more, as if the
// process had been killed before the next one, perhaps in the midst of a write.
type dying struct {
	state.Store
	entries int
}

func (d *dying) Open(ctx context.Context, o state.Owner) (state.Journal, error) {
	j, err := d.Store.Open(ctx, o)
	return &dyingJournal{Journal: j, store: d}, err
}

type dyingJournal struct {
	state.Journal
	store *dying
}

var errKilled = errors.New("killed")

func (j *dyingJournal) Append(ctx context.Context, e ...state.Entry) error {
	kept := e[:min(j.store.entries, len(e))]
	j.store.entries -= len(kept)
	err := j.Journal.Append(ctx, kept...)
	if len(kept) < len(e) {
		err = errors.Join(err, errKilled)
	}
	return err
}

// After a kill before any entry of the journal, the next applies lead to the same world and the
// same records as an apply that was not killed, and leave no findings.
func TestKilledBeforeAnyEntry(t *testing.T) {
	const edited = "vm \"a\" {\n  cpus = 1\n}\n"
	allow := planner.Allow{Replace: map[spec.Address]bool{{Kind: spec.VM, Name: "a"}: true}}
	tests := []struct{ name, before, spec, later string }{
		{name: "create", spec: "vm \"a\" {}\n"},
		{name: "create off", spec: "vm \"a\" {\n  running = false\n}\n"},
		{name: "create two", spec: two},
		{name: "restart", before: "vm \"a\" {}\n", spec: edited},
		{name: "stop with an edit", before: "vm \"a\" {}\n", spec: "vm \"a\" {\n  cpus = 1\n  running = false\n}\n"},
		{name: "start", before: "vm \"a\" {\n  running = false\n}\n", spec: "vm \"a\" {}\n"},
		{name: "start with another policy", before: "vm \"a\" {\n  running = false\n}\n", spec: "vm \"a\" {\n  stop {\n    grace = \"1m\"\n  }\n}\n"},
		{name: "replace", before: "vm \"a\" {}\n", spec: "vm \"a\" {\n  name = \"other\"\n}\n"},
		{name: "replace, to be off", before: "vm \"a\" {}\n", spec: "vm \"a\" {\n  name = \"other\"\n  running = false\n}\n"},
		{name: "destroy", before: two, spec: "# empty\n"},
		{name: "create, then not wanted any more", spec: "vm \"a\" {}\n", later: "# empty\n"},
		{name: "restart, then not wanted any more", before: "vm \"a\" {}\n", spec: edited, later: "# empty\n"},
		{name: "replace, then not wanted any more", before: "vm \"a\" {}\n", spec: "vm \"a\" {\n  name = \"other\"\n  running = false\n}\n", later: "# empty\n"},
	}
	for _, test := range tests {
		for entries := 0; ; entries++ {
			killed := false
			t.Run(fmt.Sprintf("%s after %d entries", test.name, entries), func(t *testing.T) {
				whole, cut := newBench(t, test.before), newBench(t, test.before)
				for _, b := range []*bench{whole, cut} {
					b.options.Allow = allow
					b.finish()
					b.spec(test.spec)
				}
				store := &dying{Store: cut.folder, entries: entries}
				cut.folder = store
				_, err := cut.apply(t.Context())
				if killed = errors.Is(err, errKilled); err != nil && !killed {
					t.Fatal(err)
				}
				cut.folder = store.Store
				if test.later != "" {
					whole.spec(test.later)
					cut.spec(test.later)
				}
				whole.finish()
				cut.finish()
				if diff := cmp.Diff(whole.world(), cut.world()); diff != "" {
					t.Errorf("world and records (-not killed +killed):\n%s", diff)
				}
			})
			if !killed {
				break
			}
		}
	}
}

// finish applies until nothing is left to do, which is at most twice.
func (b *bench) finish() {
	b.t.Helper()
	for range 2 {
		if summary, err := b.apply(b.t.Context()); err != nil || !summary.OK() {
			b.t.Fatalf("apply: %+v, %v", summary, err)
		}
	}
	if got := b.pending(); len(got) > 0 {
		b.t.Errorf("after two applies still pending: %v", got)
	}
	s, err := b.folder.Read(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	p, w := b.plan(s)
	if err := w.Close(); err != nil {
		b.t.Fatal(err)
	}
	if len(p.Findings) > 0 {
		b.t.Errorf("after two applies still found: %+v", p.Findings)
	}
}

// world returns the objects and the records, without counters, ports and IDs, since an ID counts
// replacements.
func (b *bench) world() map[string]string {
	all := map[string]string{}
	for _, o := range b.memory.objects {
		all["object "+o.name] = fmt.Sprint(o.running, " ", o.attrs.GetAttr("cpus").AsBigFloat())
	}
	for a, r := range b.records() {
		all["record "+a] = fmt.Sprint(r.Name, " ", r.Conditions.Satisfied(condition.SSHReady, r.Generation), " ", r.Reserved, " ",
			r.Values.GetAttr("running").True(), " ", r.Values.GetAttr("cpus").AsBigFloat(), " ", r.Uses)
	}
	return all
}
