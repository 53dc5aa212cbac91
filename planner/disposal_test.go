package planner_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/planner"
	"vmctl/providers"
)

// disposal returns which VMs of a scene go, and which are off and stay, a line for each.
func (s *scene) disposal() string {
	s.t.Helper()
	s.options.Destroy = true
	w, err := planner.Observe(s.t.Context(), s.open, s.config, s.state, s.options)
	if err != nil {
		s.t.Fatal(err)
	}
	d, err := planner.Dispose(s.config, s.state, w, s.options)
	if err != nil {
		s.t.Fatal(err)
	}
	text := ""
	for _, a := range d.Goes {
		text += fmt.Sprintf("%s goes\n", a)
	}
	for _, vm := range d.Stays {
		text += fmt.Sprintf("%s stays: %s\n", vm.Address, vm.Reason)
	}
	return text
}

// The VMs that are off go, and nothing else does: what a resource depends on that stays is spared.
func TestDispose(t *testing.T) {
	off := func(all ...string) func(*scene) {
		return func(s *scene) {
			for _, a := range all {
				down, o := false, s.objectOf(a)
				o.Running, o.State = &down, providers.StateOff
			}
		}
	}
	for _, test := range []struct {
		name, applied, spec string
		change              func(*scene)
		want                string
	}{
		{"none is off", "vm \"a\" {}\n", "", func(*scene) {}, ""},
		{"only those that are off", "vm \"a\" {}\nvm \"b\" {}\n", "", off("vm.b"), "vm.b goes\n"},
		{"a VM that runs depends on it", "vm \"a\" {}\nvm \"b\" {\n  depends_on = [vm.a]\n}\n", "", off("vm.a"), "vm.a stays: vm.b depends on it, and stays\n"},
		{"a VM that is off, too", "vm \"a\" {}\nvm \"b\" {\n  depends_on = [vm.a]\n}\n", "", off("vm.a", "vm.b"), "vm.a goes\nvm.b goes\n"},
		{
			"a VM that is off and is spared", "vm \"a\" {}\nvm \"b\" {\n  depends_on = [vm.a]\n}\nvm \"c\" {\n  depends_on = [vm.b]\n}\n", "",
			off("vm.a", "vm.b"), "vm.a stays: vm.c depends on it, and stays\nvm.b stays: vm.c depends on it, and stays\n",
		},
		{
			"a VM that is off and protected", "vm \"a\" {}\nvm \"b\" {\n  depends_on = [vm.a]\n  lifecycle {\n    prevent_destroy = true\n  }\n}\n", "", off("vm.a", "vm.b"),
			"vm.a stays: it needs vm.b, whose own change is blocked\nvm.b stays: lifecycle.prevent_destroy is set, and this is a destroy\n",
		},
		{"a disk", "vm \"a\" {}\ndisk \"d\" {\n  size = \"1GiB\"\n  depends_on = [vm.a]\n}\n", "", off("vm.a"), "vm.a stays: disk.d depends on it, and stays\n"},
		{"what is to be made and does not exist", "vm \"a\" {}\n", "vm \"a\" {}\nvm \"b\" {\n  depends_on = [vm.a]\n}\n", off("vm.a"), "vm.a goes\n"},
		{"its dependent has no block any more", "vm \"a\" {}\nvm \"b\" {\n  depends_on = [vm.a]\n}\n", "vm \"a\" {}\n", off("vm.a"), "vm.a stays: vm.b depends on it, and stays\n"},
		{"what is inside of it goes with it", one + note, "", (*scene).off, "vm.a goes\n"},
		{
			"what depends on something inside of it does not", one + note + "vm \"b\" {\n  depends_on = [box.note]\n}\n", "", (*scene).off,
			"vm.a stays: vm.b depends on it, and stays\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, test.applied)
			if test.spec != "" {
				s.config = load(t, test.spec)
			}
			test.change(s)
			if d := cmp.Diff(test.want, s.disposal()); d != "" {
				t.Errorf("disposal (-want +got):\n%s", d)
			}
		})
	}
}
