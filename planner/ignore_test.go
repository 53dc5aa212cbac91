package planner_test

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
)

func TestIgnoreChanges(t *testing.T) {
	ignoring := func(spec, what string) string {
		return strings.Replace(spec, "{\n", "{\n  lifecycle {\n    ignore_changes = "+what+"\n  }\n", 1)
	}
	more := strings.Replace(one, "256MiB", "512MiB", 1)
	boots := "vm \"a\" {\n  boot {\n    kernel  = \"kernel\"\n    cmdline = \"a\"\n  }\n}\n"
	for _, test := range []struct {
		name, applied, spec string
		change              func(*scene)
		want                string
	}{
		{name: "an edit", applied: ignoring(one, "[memory]"), spec: ignoring(more, "[memory]")},
		{name: "a part of a block", applied: ignoring(boots, "[boot.cmdline]"), spec: strings.Replace(ignoring(boots, "[boot.cmdline]"), `cmdline = "a"`, `cmdline = "b"`, 1)},
		{name: "everything", applied: ignoring(one, "all"), spec: ignoring(strings.Replace(more, "memory", "cpus   = 1\n  name   = \"b\"\n  memory", 1), "all")},
		{
			name: "but no other edit", applied: ignoring(one, "[cpus]"), spec: ignoring(strings.Replace(more, "memory", "cpus   = 1\n  memory", 1), "[cpus]"),
			want: `restart vm.a: memory: the guest sees it at its next start
  memory 256MiB -> 512MiB, restart
0 stop vm.a
1 redefine vm.a after 0
2 start vm.a after 1
3 wait_ssh vm.a after 2
`,
		},
		{
			name: "drift", applied: ignoring(one, "[memory]"), spec: ignoring(one, "[memory]"),
			change: func(s *scene) {
				m := s.object().Attrs.AsValueMap()
				m["memory"] = cty.NumberIntVal(128 << 20)
				s.object().Attrs = cty.ObjectVal(m)
			},
		},
		{name: "its run state is none of its attributes", applied: ignoring(one, "all"), spec: ignoring(strings.Replace(one, "memory", "running = false\n  memory", 1), "all"), want: "stop vm.a: it runs, and running = false\n0 stop vm.a\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, test.applied)
			s.config = load(t, test.spec)
			if test.change != nil {
				test.change(s)
			}
			s.check(test.want)
		})
	}
}

// An ignored attribute keeps its value, even if something else is edited.
func TestIgnoredStaysWhatItIs(t *testing.T) {
	const ignoring = "vm \"a\" {\n  cpus   = 1\n  memory = \"512MiB\"\n  lifecycle {\n    ignore_changes = [cpus]\n  }\n}\n"
	s := after(t, "vm \"a\" {\n  cpus   = 2\n  memory = \"256MiB\"\n  lifecycle {\n    ignore_changes = [cpus]\n  }\n}\n")
	s.config = load(t, ignoring)
	m := s.object().Attrs.AsValueMap()
	m["cpus"] = cty.NumberIntVal(7) // somebody changed it, and may
	s.object().Attrs = cty.ObjectVal(m)
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	if v := p.Changes[0].Change.Want.GetAttr("cpus"); !v.RawEquals(cty.NumberIntVal(7)) {
		t.Errorf("redefined with %#v cpus, want the 7 that it has", v)
	}
}

// The run state is never ignored.
func TestIgnoredAllStops(t *testing.T) {
	const all = "vm \"a\" {\n  lifecycle {\n    ignore_changes = all\n  }\n}\n"
	s := after(t, all)
	s.config = load(t, strings.Replace(all, "{\n", "{\n  running = false\n", 1))
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	if c := p.Changes[0]; c.Action != providers.Stop || c.Change.Want.GetAttr("running").True() {
		t.Errorf("%s, with running = %#v", c.Action, c.Change.Want.GetAttr("running"))
	}
}
