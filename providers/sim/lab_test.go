package sim_test

import (
	gocmp "cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// lab is a host with one VM, for tests of changes.
type lab struct {
	*house
	settings providers.Settings
	want     cty.Value
	policy   cty.Value
	// generation of the mark; 1 is that of a first creation.
	generation uint64
	env        string            // of the processes of VMs; "": the default
	said       func(text string) // gets the progress of a step; nil: nobody does
	proof      []string          // of the steps of the last action
}

func newLab(t *testing.T, faults ...cty.Value) *lab {
	h := newHouse(t)
	return &lab{house: h, settings: h.settings(false, faults...), want: want(), policy: policy(60), generation: 1}
}

func (l *lab) open() providers.Provider {
	l.t.Helper()
	p, err := simAs(l.t, gocmp.Or(l.env, isVM+"=1")).Open(l.t.Context(), l.settings)
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

func (l *lab) observe() providers.Inventory {
	l.t.Helper()
	inv, err := l.open().Observe(l.t.Context(), providers.Query{Known: []providers.Known{
		{Address: dev, Kind: spec.VM, ID: devID, Name: "lab.dev", Want: l.want},
	}})
	if err != nil {
		l.t.Fatal(err)
	}
	return inv
}

// vm returns the VM as it is observed, nil if there is none.
func (l *lab) vm() *providers.Object {
	l.t.Helper()
	inv := l.observe()
	for i := range inv.Objects {
		if inv.Objects[i].Kind == spec.VM {
			return &inv.Objects[i]
		}
	}
	return nil
}

// sees checks the observed state of the VM.
func (l *lab) sees(want string) {
	l.t.Helper()
	if diff := cmp.Diff(want, l.plain(l.described())); diff != "" {
		l.t.Errorf("observed (-want +got):\n%s", diff)
	}
}

func (l *lab) described() string {
	inv := l.observe()
	var lines []string
	for _, o := range inv.Objects {
		lines = append(lines, fmt.Sprintf("%s %s", o.Name, o.State))
		if o.Running == nil {
			lines = append(lines, "running: "+o.Unreadable["running"])
		}
		for _, f := range o.Findings {
			lines = append(lines, fmt.Sprintf("%s: %s", f.Kind, strings.Join(f.Evidence, "; ")))
		}
	}
	for _, u := range inv.Unknown {
		lines = append(lines, fmt.Sprintf("%s unknown: %s", u.Name, u.Reason))
	}
	for _, kind := range slices.Sorted(maps.Keys(inv.Partial)) {
		lines = append(lines, fmt.Sprintf("%s partial: %s", kind, inv.Partial[kind]))
	}
	return strings.Join(lines, "\n")
}

// plain replaces the parts of a text that differ from run to run.
func (l *lab) plain(text string) string {
	text = strings.ReplaceAll(text, l.dir, "DIR")
	for _, p := range unsteady {
		text = p.pattern.ReplaceAllString(text, p.with)
	}
	return text
}

var unsteady = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`pid [0-9]+`), "pid N"},
	{regexp.MustCompile(`run/[0-9a-f]{12}`), "run/KEY"},
	{regexp.MustCompile(`after [0-9.]+m?s\b`), "after TIME"},
	// Only its parent knows whether it was collected by now.
	{regexp.MustCompile(`pid N has ended, and its parent has not collected it`), "no process has pid N"},
	{numbers, "N"},
}

// apply carries out an action, and returns the steps that were done: `define done, start
// done`, or the failure.
func (l *lab) apply(action providers.Action) string {
	l.t.Helper()
	return l.applyOn(l.t.Context(), action)
}

func (l *lab) applyOn(ctx context.Context, action providers.Action) string {
	l.t.Helper()
	p := l.open()
	c := providers.Change{
		Address: dev, Kind: spec.VM, Action: action, Name: "lab.dev", ID: devID, Want: l.want, Policy: l.policy, Generation: l.generation,
	}
	expect := ""
	if o := l.vm(); o != nil {
		c.Object = o
		expect = c.Object.Fingerprint
	}
	steps, err := p.Steps(c)
	if err != nil {
		l.t.Fatal(err)
	}
	var said []string
	l.proof = nil
	for _, s := range steps {
		limited, cancel := context.WithTimeout(ctx, s.Timeout)
		r, err := p.Do(limited, providers.Work{
			Step: s, Expect: expect, Want: c.Want, Policy: c.Policy, Generation: c.Generation,
		}, func(p providers.Progress) {
			if l.said != nil {
				l.said(p.Text)
			}
		})
		cancel()
		if err != nil {
			var f *providers.Problem
			if !errors.As(err, &f) {
				l.t.Fatalf("not a failure: %v", err)
			}
			return strings.Join(append(said, fmt.Sprintf("%s %s (%s): %s", s.Op, f.Outcome, f.Code, l.plain(f.Error()))), ", ")
		}
		expect = r.Fingerprint
		l.proof = append(l.proof, r.Evidence...)
		said = append(said, fmt.Sprintf("%s %s", s.Op, r.How))
	}
	return strings.Join(said, ", ")
}

// does checks the outcome of an action.
func (l *lab) does(action providers.Action, want string) {
	l.t.Helper()
	if diff := cmp.Diff(want, l.apply(action)); diff != "" {
		l.t.Errorf("%s (-want +got):\n%s", action, diff)
	}
}

// isEmpty checks that nothing is left.
func (l *lab) isEmpty() {
	l.t.Helper()
	for _, trace := range l.traces() {
		if !strings.Contains(trace, "/faults ") {
			l.t.Errorf("left: %s", trace)
		}
	}
}
