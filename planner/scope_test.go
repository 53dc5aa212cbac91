package planner_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

const chain = `
vm "web" {
  depends_on = [vm.db]
}
vm "db" {
  depends_on = [vm.dns]
}
vm "dns" {}
vm "alone" {}
`

// row E12: a target brings what it uses, and contradicts an exclusion of it.
func TestScope(t *testing.T) {
	tests := []struct {
		name              string
		targets, excludes string
		destroy           bool
		want              string
	}{
		{name: "everything", want: "vm.alone vm.db vm.dns vm.web"},
		{name: "a target brings what it uses", targets: "vm.db", want: "vm.db vm.dns"},
		{name: "two targets", targets: "vm.alone vm.dns", want: "vm.alone vm.dns"},
		{name: "an exclusion takes what depends on it along", excludes: "vm.db", want: "vm.alone vm.dns"},
		{name: "target and exclusion contradict", targets: "vm.web", excludes: "vm.dns", want: "error: target vm.web needs vm.dns, which is excluded: drop --exclude=vm.dns, or drop the target"},
		{name: "destruction brings what depends on the target", destroy: true, targets: "vm.db", want: "vm.db vm.web"},
		{name: "what an excluded one uses outlives a destruction", destroy: true, excludes: "vm.db", want: "vm.alone vm.web"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, chain)
			s.options.Destroy = test.destroy
			for _, a := range strings.Fields(test.targets) {
				s.options.Scope.Targets = append(s.options.Scope.Targets, addr(t, a))
			}
			for _, a := range strings.Fields(test.excludes) {
				s.options.Scope.Excludes = append(s.options.Scope.Excludes, addr(t, a))
			}
			got := ""
			if p, err := s.plan(); err != nil {
				got = "error: " + err.Error()
			} else {
				var all []string
				for _, c := range p.Changes {
					all = append(all, c.Address.String())
				}
				got = strings.Join(all, " ")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("in scope (-want +got):\n%s", diff)
			}
		})
	}
}

// An object that cannot be read authorises no change at all.
func TestUnknownNeverMutates(t *testing.T) {
	changes := map[string]struct {
		applied, spec string
		destroy       bool
	}{
		"create":  {spec: one},
		"update":  {applied: one, spec: "vm \"a\" {\n  memory = \"256MiB\"\n  ssh {\n    user = \"x\"\n  }\n}\n"},
		"restart": {applied: one, spec: "vm \"a\" {\n  memory = \"512MiB\"\n}\n"},
		"replace": {applied: one, spec: "vm \"a\" {\n  memory = \"256MiB\"\n  accel = \"tcg\"\n  lifecycle {\n    on_change = { accel = \"replace\" }\n  }\n}\n"},
		"stop":    {applied: one, spec: "vm \"a\" {\n  memory = \"256MiB\"\n  running = false\n}\n"},
		"destroy": {applied: one, spec: one, destroy: true},
		"forget":  {applied: one, spec: "# empty\n"},
		"noop":    {applied: one, spec: one},
	}
	unknowns := map[string]func(*scene){
		"the connection fails": func(s *scene) {
			sys := s.system("qemu:///session")
			sys.inventory = providers.Inventory{Partial: map[spec.Kind]*providers.Problem{spec.VM: providers.Refuse("no answer", nil)}}
		},
		"the object cannot be read": func(s *scene) {
			sys := s.system("qemu:///session")
			sys.inventory = providers.Inventory{Unknown: []providers.Unknown{{Kind: spec.VM, Name: "demo.a", Reason: "garbage"}}}
		},
		"the run state cannot be read": func(s *scene) {
			sys := s.system("qemu:///session")
			if len(sys.inventory.Objects) == 0 {
				sys.inventory.Partial = map[spec.Kind]*providers.Problem{spec.VM: providers.Refuse("no answer", nil)}
				return
			}
			o := &sys.inventory.Objects[0]
			o.Running, o.State, o.Unreadable = nil, "", map[string]string{"running": "no answer"}
		},
	}
	for what, change := range changes {
		for why, unknown := range unknowns {
			t.Run(what+" while "+why, func(t *testing.T) {
				s := after(t, change.applied)
				s.config = load(t, change.spec)
				s.options.Destroy = change.destroy
				unknown(s)
				p, err := s.plan()
				if err != nil {
					t.Fatal(err)
				}
				if len(p.Steps) > 0 {
					t.Errorf("steps on what could not be read:\n%s", text(p))
				}
				if p.Summary.Unknown != 1 || !p.Forbidden() {
					t.Errorf("%d unknown, forbidden %t; want 1, true:\n%s", p.Summary.Unknown, p.Forbidden(), text(p))
				}
			})
		}
	}
}

func TestOwnershipTable(t *testing.T) {
	markings := []planner.Marking{planner.Absent, planner.Unmarked, planner.Foreign, planner.Copied, planner.Moved, planner.Ours}
	for _, m := range markings {
		for _, recorded := range []bool{false, true} {
			for _, inSpec := range []bool{false, true} {
				got := planner.Stand(m, recorded, inSpec)
				mayTouch := got == planner.Managed || got == planner.Unwanted || got == planner.Adoptee
				owned := m == planner.Ours || (m == planner.Unmarked || m == planner.Moved) && recorded
				if mayTouch && !owned {
					t.Errorf("%s, recorded %t, in the spec %t: %s; an object without our mark or record is never touched", m, recorded, inSpec, got)
				}
				if mayTouch && m == planner.Ours && !recorded && !inSpec {
					t.Errorf("an orphan is %s; it is only reported", got)
				}
			}
		}
	}
}
