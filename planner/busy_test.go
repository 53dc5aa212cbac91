package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// enter lets processes work in vm.a.
func (s *scene) enter(pids ...int) { s.occupy("vm.a", pids...) }

// occupy lets processes work in the object of an address.
func (s *scene) occupy(address string, pids ...int) {
	a := addr(s.t, address)
	if s.options.Busy == nil {
		s.options.Busy = map[spec.Address][]state.Holder{}
	}
	for _, pid := range pids {
		s.options.Busy[a] = append(s.options.Busy[a], state.Holder{
			PID: pid, Host: "ada", Command: "vmctl vm exec " + address, Since: time.Date(2026, 5, 1, 12, 0, pid, 0, time.UTC),
		})
	}
}

// A VM that somebody works in is taken down only where that was allowed, or after
// they have left.
func TestBusy(t *testing.T) {
	const inside = "vmctl vm exec vm.a (pid 1 on ada) since 2026-05-01 12:00:01 UTC"
	const blocked = `  blocked: it is busy: ` + inside + `
  > let them end, or end them where they run; then repeat the command
  > or interrupt them: --allow-interrupt=vm.a
`
	const byBlock = `  > or have them waited for: when_busy = "wait 30m" in the block of vm.a
`
	const found = "found busy vm.a: " + inside + "\n"
	tests := []struct {
		name    string
		applied string
		spec    string
		change  func(*scene)
		want    string
		action  string // of the finding
	}{
		{
			name: "nothing takes it down", applied: one, change: func(s *scene) { s.enter(1) },
			want: "",
		},
		{
			name: "a live edit leaves those inside alone", applied: one, change: func(s *scene) { s.enter(1) },
			spec: "vm \"a\" {\n  memory = \"256MiB\"\n  ssh { user = \"me\" }\n}\n",
			want: `update vm.a: ssh.user: vmctl alone uses it
  ssh.user root -> me, live
0 record vm.a
`,
		},
		{
			name: "stop", applied: one, change: func(s *scene) { s.enter(1) },
			spec:   "vm \"a\" {\n  memory = \"256MiB\"\n  running = false\n}\n",
			want:   "stop vm.a: it runs, and running = false\n" + blocked + byBlock + found,
			action: "not interrupted: it stays as it is",
		},
		{
			name: "restart", applied: one, change: func(s *scene) { s.enter(1) },
			spec:   "vm \"a\" {\n  memory = \"512MiB\"\n}\n",
			want:   "restart vm.a: memory: the guest sees it at its next start\n  memory 256MiB -> 512MiB, restart\n" + blocked + byBlock + found,
			action: "not interrupted: it stays as it is",
		},
		{
			name: "replace, though that is allowed", applied: one,
			change: func(s *scene) {
				s.enter(1)
				s.options.Allow.Replace = map[spec.Address]bool{addr(s.t, "vm.a"): true}
			},
			spec:   "vm \"a\" {\n  memory = \"256MiB\"\n  accel = \"tcg\"\n}\n",
			want:   "replace vm.a: accel: cannot change after it was made\n  accel auto -> tcg, replace\n" + blocked + byBlock + found,
			action: "not interrupted: it stays as it is",
		},
		{
			name: "destroy: no block is there to write into", applied: one, change: func(s *scene) { s.enter(1) },
			spec:   "# empty\n",
			want:   "destroy vm.a: it is not in the spec\n" + blocked + found,
			action: "not interrupted: it stays as it is",
		},
		{
			name: "whoever is inside of one holds up no other", applied: "vm \"a\" {}\nvm \"b\" {}\n", change: func(s *scene) { s.enter(1) },
			spec: "# empty\n",
			want: "destroy vm.a: it is not in the spec\n" + blocked + "destroy vm.b: it is not in the spec\n" + found +
				"0 stop vm.b\n1 delete vm.b after 0\n",
			action: "not interrupted: it stays as it is",
		},
		{
			name: "allowed by flag", applied: one,
			change: func(s *scene) {
				s.enter(1)
				s.options.Allow.Interrupt = map[spec.Address]bool{addr(s.t, "vm.a"): true}
			},
			spec:   "# empty\n",
			want:   "destroy vm.a: it is not in the spec\n" + found + "0 stop vm.a\n1 delete vm.a after 0\n",
			action: "interrupted, as --allow-interrupt says",
		},
		{
			name: "waited for, as the block says", applied: one, change: func(s *scene) { s.enter(1) },
			spec:   "vm \"a\" {\n  memory = \"256MiB\"\n  running = false\n  when_busy = \"wait 90s\"\n}\n",
			want:   "stop vm.a: it runs, and running = false\n" + found + "0 stop vm.a\n1 record vm.a after 0\n",
			action: "waited for, at most 1m30s, before it is taken down",
		},
		{
			name: "waited for, as the record says", applied: "vm \"a\" {\n  when_busy = \"wait 1h\"\n}\n", change: func(s *scene) { s.enter(1) },
			spec:   "# empty\n",
			want:   "destroy vm.a: it is not in the spec\n" + found + "0 stop vm.a\n1 delete vm.a after 0\n",
			action: "waited for, at most 1h, before it is taken down",
		},
		{
			name: "a VM that is off has nobody inside who could lose anything", applied: "vm \"a\" {\n  running = false\n}\n",
			change: func(s *scene) { s.enter(1) }, spec: "# empty\n",
			want: "destroy vm.a: it is not in the spec\n0 delete vm.a\n",
		},
		{
			name: "many are counted", applied: one, change: func(s *scene) { s.enter(1, 2, 3, 4, 5) },
			spec: "vm \"a\" {\n  memory = \"256MiB\"\n  running = false\n}\n",
			want: "stop vm.a: it runs, and running = false\n" +
				strings.Replace(blocked, inside, inside+"; "+strings.ReplaceAll(inside, "1 on ada) since 2026-05-01 12:00:01 UTC", "2 on ada) since 2026-05-01 12:00:02 UTC")+
					"; "+strings.ReplaceAll(inside, "1 on ada) since 2026-05-01 12:00:01 UTC", "3 on ada) since 2026-05-01 12:00:03 UTC")+"; 2 more", 1) + byBlock +
				"found busy vm.a: " + strings.Join(fiveOf(inside), "; ") + "\n",
			action: "not interrupted: it stays as it is",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, test.applied)
			if test.spec != "" {
				s.config = load(t, test.spec)
			}
			test.change(s)
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, text(p)); d != "" {
				t.Errorf("plan (-want +got):\n%s", d)
			}
			action := ""
			for _, f := range p.Findings {
				if f.Kind == providers.FindBusy {
					action = f.Action
				}
			}
			if action != test.action {
				t.Errorf("what becomes of them: %q, want %q", action, test.action)
			}
			if got, want := p.Forbidden(), strings.Contains(test.want, "blocked"); got != want {
				t.Errorf("forbidden %t, want %t", got, want)
			}
		})
	}
}

func fiveOf(first string) []string {
	var all []string
	for pid := 1; pid <= 5; pid++ {
		all = append(all, strings.NewReplacer("pid 1", fmt.Sprintf("pid %d", pid), ":01 UTC", fmt.Sprintf(":0%d UTC", pid)).Replace(first))
	}
	return all
}

// A record of a build that knew no when_busy counts as one with its default.
func TestPolicyThatLacksADefaultIsTheSame(t *testing.T) {
	tests := []struct {
		name, spec string
		changed    bool
	}{
		{"the default", one, false},
		{"something else", "vm \"a\" {\n  memory = \"256MiB\"\n  when_busy = \"wait 5m\"\n}\n", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, one)
			s.config = load(t, test.spec)
			r := s.state.Records[addr(t, "vm.a")]
			old := r.Policy.AsValueMap()
			delete(old, "when_busy")
			stop := old["stop"].AsValueMap()
			delete(stop, "force_wait")
			old["stop"] = cty.ObjectVal(stop)
			r.Policy = cty.ObjectVal(old)
			s.state.Records[addr(t, "vm.a")] = r
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Pending(); got != test.changed {
				t.Errorf("pending %t, want %t:\n%s", got, test.changed, text(p))
			}
		})
	}
}

func TestOnlyStepsThatEndAVMTakeItDown(t *testing.T) {
	for _, phase := range providers.Phases() {
		got := planner.TakesDown(providers.Step{Phase: phase, Address: addr(t, "vm.a")})
		if want := phase == providers.PhaseDown || phase == providers.PhaseRecover; got != want {
			t.Errorf("%s takes it down: %t, want %t", phase, got, want)
		}
	}
	if planner.TakesDown(providers.Step{Phase: providers.PhaseDown, Address: addr(t, "container.a")}) {
		t.Error("a container is no VM")
	}
}

// Jobs run in the folder of a workspace: it is taken away from them when it is removed, and at no other step. Those in it
// are ended as jobs, not by a flag.
func TestOnlyItsRemovalTakesAWorkspaceFromItsJobs(t *testing.T) {
	at := addr(t, "workspace.a")
	for _, phase := range providers.Phases() {
		got := planner.TakesDown(providers.Step{Phase: phase, Address: at})
		if want := phase == providers.PhaseRemove; got != want {
			t.Errorf("%s takes it away: %t, want %t", phase, got, want)
		}
	}
	c := &planner.Change{Change: providers.Change{Address: at, Kind: at.Kind}}
	want := []providers.Advice{
		{Text: "see which jobs run: ", Args: []string{"job", "list"}},
		{Text: "let them end, or end them: ", Args: []string{"job", "cancel", "ID"}},
	}
	if d := cmp.Diff(want, planner.BusyNext(c)); d != "" {
		t.Errorf("what to do (-want +got):\n%s", d)
	}
}
