package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// row E51, of what a host has
func TestAHostHasEnoughForItsVMs(t *testing.T) {
	vms := func(all ...string) string {
		var b strings.Builder
		for _, one := range all {
			name, attrs, _ := strings.Cut(one, " ")
			fmt.Fprintf(&b, "vm %q {\n  provider = provider.libvirt.host\n  %s\n}\n", name, strings.ReplaceAll(attrs, "; ", "\n  "))
		}
		return b.String()
	}
	const host, over = "provider \"libvirt\" \"host\" {\n}\n", "provider \"libvirt\" \"host\" {\n  overcommit = true\n}\n"
	applied := vms(`a memory = "2GiB"`, `b memory = "1GiB"; running = false`)
	for _, test := range []struct {
		name, spec string
		change     func(*scene)
		want       string
	}{
		{name: "as much as it has", spec: host + vms(`a memory = "2GiB"`, `b memory = "1GiB"`, `c memory = "1GiB"; cpus = 4`)},
		{
			name: "more processors", spec: host + vms(`a memory = "2GiB"`, `c cpus = 5; memory = "1GiB"`),
			want: "vm.c capacity: it wants 5 CPUs, and its host has 4",
		},
		{name: "processors of all VMs are shared", spec: host + vms(`a memory = "2GiB"; cpus = 4`, `c cpus = 4; memory = "1GiB"`)},
		{
			name: "more memory", spec: host + vms(`a memory = "2GiB"`, `c memory = "5GiB"`),
			want: "vm.c capacity: it wants 5GiB of memory, and its host has 4GiB",
		},
		{
			name: "more memory with those that run", spec: host + vms(`a memory = "2GiB"`, `c memory = "3GiB"`, `d memory = "2GiB"`),
			want: "vm.c capacity: with it, the VMs that should run on its host want 5GiB of memory, and the host has 4GiB",
		},
		{
			name: "more memory with one that cannot be read", spec: host + vms(`a memory = "2GiB"`, `c memory = "3GiB"`),
			change: func(s *scene) {
				inv := &s.systems[s.uri()].inventory
				inv.Objects = slices.DeleteFunc(inv.Objects, func(o providers.Object) bool {
					if o.Name == "demo.a" {
						inv.Unknown = append(inv.Unknown, providers.Unknown{Kind: o.Kind, ID: o.ID, Name: o.Name, Reason: noAnswer})
					}
					return o.Name == "demo.a"
				})
				s.config.Settings.SkipsUnread = true
			},
			want: "vm.a unknown: provider.libvirt.host could not be read: no answer\n" +
				"vm.c capacity: with it, the VMs that should run on its host want 5GiB of memory, and the host has 4GiB",
		},
		{
			name: "a VM that grows", spec: host + vms(`a memory = "4GiB"`, `b memory = "1GiB"`),
			want: "vm.a capacity: with it, the VMs that should run on its host want 5GiB of memory, and the host has 4GiB",
		},
		{
			name: "a VM that runs already is not blocked", spec: host + vms(`a memory = "2GiB"; cpus = 2`),
			change: func(s *scene) { s.systems[s.uri()].inventory.Capacity = providers.Capacity{CPUs: 1, Memory: 1 << 30} },
		},
		{
			name: "an odd amount of memory", spec: host + vms(`a memory = "2GiB"`, `c memory = "5GiB"`),
			change: func(s *scene) { s.systems[s.uri()].inventory.Capacity.Memory = 4<<30 + 300<<20 + 4096 },
			want:   "vm.c capacity: it wants 5GiB of memory, and its host has 4.3GiB",
		},
		{name: "a VM that is off", spec: host + vms(`a memory = "2GiB"`, `c memory = "5GiB"; running = false`)},
		{name: "another host makes room", spec: host + vms(`b memory = "1GiB"; running = false`, `c memory = "4GiB"`)},
		{name: "it may be overcommitted", spec: over + vms(`a memory = "2GiB"`, `c memory = "5GiB"; cpus = 9`)},
		{
			name: "a host that tells nothing", spec: host + vms(`a memory = "2GiB"`, `c memory = "5GiB"; cpus = 9`),
			change: func(s *scene) { s.systems[s.uri()].inventory.Capacity = providers.Capacity{} },
		},
		{name: "a destruction", spec: host + vms(`c memory = "5GiB"`), change: func(s *scene) { s.options.Destroy = true }},
		{
			name: "a start", spec: host + applied,
			change: func(s *scene) {
				s.options.Running = map[spec.Address]bool{{Kind: spec.VM, Name: "b"}: true}
				s.systems[s.uri()].inventory.Capacity.Memory = 2 << 30
			},
		},
		{
			name: "a first start", spec: host + applied,
			change: func(s *scene) {
				s.options.Running = map[spec.Address]bool{{Kind: spec.VM, Name: "b"}: true}
				s.systems[s.uri()].inventory.Capacity.Memory = 2 << 30
				r := s.state.Records[addr(s.t, "vm.b")]
				r.Starts = 0
				s.state.Records[addr(s.t, "vm.b")] = r
			},
			want: "vm.b capacity: with it, the VMs that should run on its host want 3GiB of memory, and the host has 2GiB",
		},
		{
			name: "a VM that is off and is to run as it is", spec: host + vms(`a memory = "2GiB"`, `b memory = "1GiB"`),
			change: func(s *scene) {
				s.systems[s.uri()].inventory.Capacity = providers.Capacity{CPUs: 1, Memory: 1 << 30}
			},
		},
		{
			name: "more processors where memory is overcommitted", spec: host + vms(`a memory = "2GiB"; cpus = 3`),
			change: func(s *scene) { s.systems[s.uri()].inventory.Capacity.Memory = 1 << 30 },
		},
		{
			name: "more processors, and less memory", spec: host + vms(`a memory = "1536MiB"; cpus = 3`),
			change: func(s *scene) { s.systems[s.uri()].inventory.Capacity.Memory = 1 << 30 },
		},
		{
			name: "two processors on any host", spec: host + vms(`a memory = "2GiB"`, `c memory = "1GiB"; cpus = 2`),
			change: func(s *scene) { s.systems[s.uri()].inventory.Capacity.CPUs = 1 },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, host+applied)
			s.systems[s.uri()].inventory.Capacity = providers.Capacity{CPUs: 4, Memory: 4 << 30}
			s.config = load(t, test.spec)
			if test.change != nil {
				test.change(s)
			}
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, judged(p)); d != "" {
				t.Errorf("plan (-want +got):\n%s", d)
			}
			if i := slices.IndexFunc(p.Changes, func(c planner.Change) bool { return c.Blocked != nil }); i >= 0 && p.Changes[i].Change.Want == cty.NilVal {
				t.Errorf("%s is blocked and not wanted", p.Changes[i].Address)
			}
		})
	}
}

// uri returns the only system of a scene.
func (s *scene) uri() string {
	for uri := range s.systems {
		return uri
	}
	s.t.Fatal("there is no system")
	return ""
}
