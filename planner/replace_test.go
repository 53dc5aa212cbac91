package planner_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/spec"
)

// An object is replaced because the user says so, without an edit that needs it. prevent_destroy holds
// all the same.
func TestReplaceWithoutAnEdit(t *testing.T) {
	const kept = "vm \"a\" {\n  lifecycle {\n    prevent_destroy = true\n  }\n}\n"
	for _, test := range []struct{ name, applied, want string }{
		{
			name: "a VM", applied: one,
			want: `replace vm.a: a replacement was asked for
0 stop vm.a
1 delete vm.a after 0
2 define vm.a after 1
3 start vm.a after 2
4 wait_ssh vm.a after 3
`,
		},
		{
			name:    "a VM with several of one block inside",
			applied: one + "box \"n\" {\n  for_each = toset([\"x\", \"y\"])\n  in = vm.a\n  label = each.key\n  content = \"x\"\n}\n",
			want: `replace box.n["x"]: vm.a is replaced: made again in the new one
replace box.n["y"]: vm.a is replaced: made again in the new one
replace vm.a: a replacement was asked for
0 close box.n["x"]
1 close box.n["y"]
2 stop vm.a after 0,1
3 delete vm.a after 0,1,2
4 define vm.a after 3
5 start vm.a after 4
6 wait_ssh vm.a after 5
7 make box.n["x"] after 0,4,5,6
8 make box.n["y"] after 1,4,5,6
9 open box.n["x"] after 4,5,6,7
10 open box.n["y"] after 4,5,6,8
`,
		},
		{
			name: "prevented", applied: kept,
			want: `replace vm.a: a replacement was asked for
  blocked: lifecycle.prevent_destroy is set, and this is a replace
  > if it really should go: --allow-destroy=vm.a
`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, test.applied)
			s.options.Replace = map[spec.Address]bool{addr(t, "vm.a"): true}
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, text(p)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// A revert makes an object again what was applied, and applies no edit that waits.
func TestRevertTakesBackAndAppliesNoEdit(t *testing.T) {
	s := after(t, one)
	s.config = load(t, "vm \"a\" {\n  memory = \"1GiB\"\n  cpus = 4\n  stop {\n    grace = \"1m\"\n  }\n}\n")
	o := s.object()
	attrs := o.Attrs.AsValueMap()
	attrs["memory"] = cty.NumberIntVal(512 << 20)
	o.Attrs = cty.ObjectVal(attrs)
	s.options.Revert = map[spec.Address]bool{addr(t, "vm.a"): true}
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	got := text(p)
	if !strings.Contains(got, "  memory 512MiB -> 256MiB, restart\n") || strings.Contains(got, "cpus") || len(p.Changes[0].Policies) > 0 {
		t.Errorf("the plan is\n%s\nwith the policies %v", got, p.Changes[0].Policies)
	}
}

// A policy that changes alone is in the plan with both values, and alters nothing of the object.
func TestPoliciesAreInThePlan(t *testing.T) {
	s := after(t, "vm \"a\" {\n  lifecycle {\n    prevent_destroy = true\n  }\n}\n")
	s.config = load(t, "vm \"a\" {\n  stop {\n    grace = \"1m\"\n  }\n}\n")
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	c := p.Changes[0]
	var got []string
	for _, e := range c.Policies {
		got = append(got, e.Path+" "+spec.FormatValue(c.Kind, e.Path, e.Before)+" -> "+spec.FormatValue(c.Kind, e.Path, e.After))
	}
	want := []string{"lifecycle.prevent_destroy true -> false", "stop.grace 30s -> 1m"}
	if diff := cmp.Diff(want, got); diff != "" || len(c.Edits) > 0 {
		t.Errorf("policies (-want +got):\n%s\nedits: %v", diff, c.Edits)
	}
}

// Before and After hold every attribute of the object of a change.
func TestValuesOfAChange(t *testing.T) {
	s := after(t, one)
	s.config = load(t, "vm \"a\" {\n  memory = \"1GiB\"\n}\n")
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	c := &p.Changes[0]
	before, now := c.Before(), c.After()
	if !planner.SameAt(before, "memory", cty.NumberIntVal(256<<20)) || !planner.SameAt(now, "memory", cty.NumberIntVal(1<<30)) {
		t.Errorf("before %#v\nafter %#v", before, now)
	}
	if port := now.GetAttr("ssh_port"); port.IsKnown() { // a restart may alter it
		t.Errorf("the port after a restart is %#v", port)
	}
	s.options.Destroy = true
	if p, err = s.plan(); err != nil {
		t.Fatal(err)
	}
	if c := &p.Changes[0]; c.After() != cty.NilVal || c.Before() == cty.NilVal {
		t.Errorf("before a destruction %#v, after it %#v", c.Before(), c.After())
	}
}
