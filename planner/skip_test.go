package planner_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/providers/providertest/box"
	"vmctl/spec"
)

// skipping plans a scene in which something could not be read and is to be left out, and demands that nothing is done with an
// address that rests on it, nor with what depends on any address that could not be read. What the user named blocks the plan.
func skipping(t *testing.T, s *scene, address string) {
	t.Helper()
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	if steps := stepsOf(p, address); steps != "" {
		t.Errorf("steps without that fact, which is left out: %s\n%s", steps, text(p))
	}
	unread := map[spec.Address]bool{}
	for _, c := range p.Changes {
		if c.Blocked != nil && c.Blocked.Cause == planner.CauseUnknown {
			unread[c.Address] = true
		}
	}
	for _, step := range p.Steps {
		c := p.Changes[step.Change]
		for _, a := range append(slices.Concat(c.Needs, c.Around), c.Address) {
			if unread[a] {
				t.Errorf("%s of %s, which rests on %s, and that could not be read:\n%s", step.Op, step.Address, a, text(p))
			}
		}
	}
	named := len(s.options.Running)+len(s.options.Restart)+len(s.options.Unlock)+len(s.options.Imports) > 0
	if p.Forbidden() != named || !named && p.Summary.Skipped == 0 {
		t.Errorf("named %t, forbidden %t, %d skipped:\n%s", named, p.Forbidden(), p.Summary.Skipped, text(p))
	}
}

// kinds describes the changes of a plan that are blocked, and those with steps.
func kinds(p *planner.Plan) string {
	var b strings.Builder
	for _, c := range p.Changes {
		if c.Blocked != nil {
			fmt.Fprintf(&b, "%s %s: %s\n", c.Blocked.Kind(), c.Address, c.Blocked.Cause)
		}
	}
	for _, c := range p.Changes {
		if stepsOf(p, c.Address.String()) != "" {
			fmt.Fprintf(&b, "%s %s\n", c.Action, c.Address)
		}
	}
	return b.String()
}

// Where the spec says so, what cannot be read is left out with what depends on it, and the rest is carried out. With refuse, the plan
// stays forbidden.
func TestSkip(t *testing.T) {
	const two = "vm \"a\" {\n  memory = \"%[1]s\"\n}\nvm \"b\" {\n  memory = \"%[1]s\"\n}\n"
	unreadable := func(address string) func(*scene) {
		return garbled(address, "").hide
	}
	tests := []struct {
		name          string
		applied, spec string
		change        func(*scene)
		want, refused string // the second one with refuse
	}{
		{
			name: "the rest is carried out", applied: fmt.Sprintf(two, "256MiB"), spec: fmt.Sprintf(two, "512MiB"), change: unreadable("vm.a"),
			want: "skipped vm.a: unknown\nrestart vm.b\n", refused: "unknown vm.a: unknown\nrestart vm.b\n",
		},
		{
			name: "a dependent is left out", applied: cache + with("a", "disk.cache") + with("b"),
			spec:   cache + strings.Replace(with("a", "disk.cache"), "{\n", "{\n  memory = \"512MiB\"\n", 1) + "vm \"b\" {\n  memory = \"512MiB\"\n}\n",
			change: unreadable("disk.cache"),
			want:   "skipped disk.cache: unknown\nskipped vm.a: blocked_dependency\nrestart vm.b\n", refused: "unknown disk.cache: unknown\nblocked vm.a: blocked_dependency\nrestart vm.b\n",
		},
		{
			name: "one that is named is refused", applied: fmt.Sprintf(two, "256MiB"), spec: fmt.Sprintf(two, "512MiB"),
			change: func(s *scene) {
				unreadable("vm.a")(s)
				s.options.Scope.Targets = []spec.Address{addr(s.t, "vm.a"), addr(s.t, "vm.b")}
			},
			want: "unknown vm.a: unknown\nrestart vm.b\n", refused: "unknown vm.a: unknown\nrestart vm.b\n",
		},
		{
			name: "another block stays", applied: "vm \"a\" {}\nvm \"b\" {}\n", spec: "vm \"b\" {\n  memory = \"512MiB\"\n  lifecycle {\n    on_change = { memory = \"live\" }\n  }\n}\n",
			change: unreadable("vm.a"),
			want:   "skipped vm.a: unknown\nblocked vm.b: ceiling\n", refused: "unknown vm.a: unknown\nblocked vm.b: ceiling\n",
		},
		{
			name: "what is around it is not taken down", applied: one + note + "vm \"b\" {}\n", spec: "vm \"a\" {\n  memory = \"512MiB\"\n}\n" + note + "vm \"b\" {\n  memory = \"512MiB\"\n}\n",
			change: func(s *scene) {
				s.inside("vm.a").inventory = providers.Inventory{Partial: map[spec.Kind]*providers.Problem{box.Kind: providers.Refuse(noAnswer, nil)}}
			},
			want: "skipped box.note: unknown\nskipped vm.a: kept_inside\nrestart vm.b\n", refused: "unknown box.note: unknown\nrestart vm.a\nrestart vm.b\n",
		},
		{
			name: "what it uses by its record alone is not removed", applied: lan("") + in("a", "auto") + with("b"), spec: with("a") + with("b"),
			change: unreadable("vm.a"),
			want:   "skipped network.lan: unknown\nskipped vm.a: unknown\n", refused: "unknown network.lan: unknown\nunknown vm.a: unknown\n",
		},
	}
	for _, test := range tests {
		for _, skips := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%t", test.name, skips), func(t *testing.T) {
				s := after(t, test.applied)
				s.config = load(t, test.spec)
				test.change(s)
				s.config.Settings.SkipsUnread = skips
				p, err := s.plan()
				if err != nil {
					t.Fatal(err)
				}
				want := test.want
				if !skips {
					want = test.refused
				}
				if diff := cmp.Diff(want, kinds(p)); diff != "" {
					t.Errorf("plan (-want +got):\n%s\n%s", diff, text(p))
				}
				if wrong := strings.Contains("\n"+want, "\nunknown ") || strings.Contains(want, "blocked vm"); p.Forbidden() != wrong {
					t.Errorf("forbidden %t, want %t:\n%s", p.Forbidden(), wrong, text(p))
				}
			})
		}
	}
}

// A system that gives no answer in time is unknown, whatever its provider says when its time is over; others are read.
func TestRefreshTimeout(t *testing.T) {
	for name, silent := range map[string]func(*scene) providers.Provider{
		"it ends with its context":   func(s *scene) providers.Provider { return hanging{s.system(here)} },
		"it ends with another error": func(s *scene) providers.Provider { return killed{s.system(here)} },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := after(t, "vm \"a\" {}\n")
			s.config.Settings.ReadTimeout = 7 * time.Second
			s.inhabited = func(o planner.Opening) providers.Provider {
				if o.Via == nil {
					return silent(s)
				}
				return nil
			}
			began := time.Now()
			p, err := s.plan()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if took := time.Since(began); took != 7*time.Second || p.Summary.Unknown != 1 || !strings.Contains(text(p), "it gave no answer within 7s") {
				t.Errorf("%s: after %s:\n%s", name, took, text(p))
			}
		})
	}
}

// killed is a system whose program is killed when its time is over.
type killed struct{ *system }

func (killed) Observe(ctx context.Context, _ providers.Query) (providers.Inventory, error) {
	<-ctx.Done()
	return providers.Inventory{}, fmt.Errorf("signal: killed")
}
