package planner_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/providers"
	"vmctl/spec"
)

const cache = "disk \"cache\" {\n  size = \"1GiB\"\n}\n"

// with returns the block of a VM that has disks.
func with(vm string, disks ...string) string {
	var b strings.Builder
	b.WriteString("vm \"" + vm + "\" {\n")
	for _, d := range disks {
		b.WriteString("  additional_disk {\n    disk = " + d + "\n  }\n")
	}
	b.WriteString("}\n")
	return b.String()
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// check plans and compares; IDs are written as ID.
func (s *scene) check(want string) {
	s.t.Helper()
	got := ""
	if p, err := s.plan(); err != nil {
		got = "error: " + err.Error() + "\n"
	} else {
		got = text(p)
	}
	if d := cmp.Diff(want, uuid.ReplaceAllString(got, "ID")); d != "" {
		s.t.Errorf("plan (-want +got):\n%s", d)
	}
}

func TestDisks(t *testing.T) {
	raw := strings.Replace(cache, "size", "format = \"raw\"\n  size", 1)
	for _, test := range []struct {
		name, applied, spec string
		change              func(*scene)
		want                string
	}{
		{
			name: "a disk is made before who uses it",
			spec: cache + with("a", "disk.cache"),
			want: `create disk.cache: it does not exist
create vm.a: it does not exist
0 define disk.cache
1 define vm.a after 0
2 start vm.a after 0,1
3 wait_ssh vm.a after 0,2
`,
		},
		{name: "nothing to do", applied: cache + with("a", "disk.cache")},
		{
			name: "a disk that is made for a VM that is there", applied: with("a"), spec: cache + with("a", "disk.cache"),
			want: `create disk.cache: it does not exist
update vm.a: additional_disk: plugged in
  additional_disk [] -> [{disk disk.cache}], live
0 define disk.cache
1 redefine vm.a after 0
`,
		},
		{
			name: "a disk that grows does not concern who uses it", applied: cache + with("a", "disk.cache"),
			spec: strings.Replace(cache, "1GiB", "2GiB", 1) + with("a", "disk.cache"),
			want: `update disk.cache: size: vmctl alone uses it
  size 1GiB -> 2GiB, live
0 redefine disk.cache
`,
		},
		{
			name: "a disk is not replaced unless that is said", applied: cache + with("a", "disk.cache"),
			spec: raw + with("a", "disk.cache"),
			want: `replace disk.cache: format: cannot change after it was made
  format qcow2 -> raw, replace
  blocked: format needs a replace (cannot change after it was made), and on_change allows at most live
  > add to the block of disk.cache: lifecycle { on_change = { format = "replace" } }
  > or allow it once: --allow-replace=disk.cache
`,
		},
		{
			name: "a disk that is replaced: its VM goes down, and comes up with the new one", applied: cache + with("a", "disk.cache"),
			spec: raw + with("a", "disk.cache"),
			change: func(s *scene) {
				s.options.Allow.Replace = map[spec.Address]bool{addr(s.t, "disk.cache"): true}
			},
			want: `replace disk.cache: format: cannot change after it was made
  format qcow2 -> raw, replace
restart vm.a: additional_disk: disk.cache is replaced
  additional_disk [{disk disk.cache}] -> [{disk disk.cache}], restart
0 stop vm.a
1 detach vm.a after 0
2 delete disk.cache after 0,1
3 define disk.cache after 2
4 redefine vm.a after 1,3
5 start vm.a after 3,4
6 wait_ssh vm.a after 3,5
`,
		},
		{
			name:    "what only has its address for a text is no reference to it",
			applied: cache + strings.Replace(with("a", "disk.cache"), "{\n", "{\n  restart_triggers = { a = disk.cache.resource_address }\n", 1),
			spec:    raw + strings.Replace(with("a", "disk.cache"), "{\n", "{\n  restart_triggers = { a = disk.cache.resource_address }\n", 1),
			change: func(s *scene) {
				s.options.Allow.Replace = map[spec.Address]bool{addr(s.t, "disk.cache"): true}
			},
			want: `replace disk.cache: format: cannot change after it was made
  format qcow2 -> raw, replace
restart vm.a: additional_disk: disk.cache is replaced
  additional_disk [{disk disk.cache}] -> [{disk disk.cache}], restart
0 stop vm.a
1 detach vm.a after 0
2 delete disk.cache after 0,1
3 define disk.cache after 2
4 redefine vm.a after 1,3
5 start vm.a after 3,4
6 wait_ssh vm.a after 3,5
`,
		},
		{
			name:    "and one that is off changes in place",
			applied: cache + strings.Replace(with("a", "disk.cache"), "{\n", "{\n  running = false\n", 1),
			spec:    raw + strings.Replace(with("a", "disk.cache"), "{\n", "{\n  running = false\n", 1),
			change: func(s *scene) {
				s.options.Allow.Replace = map[spec.Address]bool{addr(s.t, "disk.cache"): true}
			},
			want: `replace disk.cache: format: cannot change after it was made
  format qcow2 -> raw, replace
update vm.a: additional_disk: disk.cache is replaced
  additional_disk [{disk disk.cache}] -> [{disk disk.cache}], live
0 detach vm.a
1 delete disk.cache after 0
2 define disk.cache after 1
3 redefine vm.a after 0,2
`,
		},
		{
			name: "who uses a disk that goes is taken off it first", applied: cache + with("a", "disk.cache"),
			spec: with("a"),
			want: `destroy disk.cache: it is not in the spec
restart vm.a: additional_disk: the guest sees it at its next start
  additional_disk [{disk disk.cache}] -> [], restart
0 stop vm.a
1 detach vm.a after 0
2 delete disk.cache after 0,1
3 redefine vm.a after 1
4 start vm.a after 3
5 wait_ssh vm.a after 4
`,
		},
		{
			name: "a VM is destroyed before its disk", applied: cache + with("a", "disk.cache"), spec: "# empty\n",
			want: `destroy disk.cache: it is not in the spec
destroy vm.a: it is not in the spec
0 stop vm.a
1 delete vm.a after 0
2 delete disk.cache after 0,1
`,
		},
		// row A38: what two use stays when one of them goes.
		{
			name: "of two who use one disk, one goes", applied: cache + with("a", "disk.cache") + "vm \"b\" {\n  depends_on = [disk.cache]\n}\n",
			spec: cache + "vm \"b\" {\n  depends_on = [disk.cache]\n}\n",
			want: "destroy vm.a: it is not in the spec\n0 stop vm.a\n1 delete vm.a after 0\n",
		},
		{
			// row E11
			name: "a disk that a VM out of scope uses is not destroyed", applied: cache + with("a", "disk.cache"), spec: "# empty\n",
			change: func(s *scene) { s.options.Scope.Targets = []spec.Address{addr(s.t, "disk.cache")} },
			want: `destroy disk.cache: it is not in the spec
  blocked: vm.a uses it, and this plan does not change that
  > take vm.a in: leave out --target and --exclude, or name it, too: --target=vm.a
`,
		},
		{
			// row E11
			name: "nor one of a VM that is let go of", applied: cache + with("a", "disk.cache"),
			spec: "removed {\n  from    = vm.a\n  destroy = false\n}\n",
			want: `destroy disk.cache: it is not in the spec
  blocked: vm.a uses it, and this plan does not change that
  > choose another in the block of disk.cache, or free it first
forget vm.a: its removed block lets go of it: the object stays as it is, without vmctl's mark
0 unmark vm.a
1 forget vm.a after 0
`,
		},
		{
			name: "nor one that somebody else's VM uses", applied: cache, spec: "# empty\n",
			change: func(s *scene) {
				disk := s.objectOf("disk.cache")
				sys := s.system("qemu:///session")
				sys.inventory.Objects = append(sys.inventory.Objects, providers.Object{
					Kind: spec.VM, ID: "1234", Name: "theirs", Holds: []providers.Claim{{Kind: providers.ClaimDisk, Key: string(disk.ID)}},
				})
			},
			want: `destroy disk.cache: it is not in the spec
  blocked: libvirt vm "theirs" (1234) uses it
  > take it off that one first, with vmctl or with the system's own tool
`,
		},
		{
			name: "and a VM does not get it", applied: cache + with("a"), spec: cache + with("a", "disk.cache"),
			change: func(s *scene) {
				disk := s.objectOf("disk.cache")
				sys := s.system("qemu:///session")
				sys.inventory.Objects = append(sys.inventory.Objects, providers.Object{
					Kind: spec.VM, ID: "1234", Name: "theirs", Holds: []providers.Claim{{Kind: providers.ClaimDisk, Key: string(disk.ID)}},
				})
			},
			want: `update vm.a: additional_disk: plugged in
  additional_disk [] -> [{disk disk.cache}], live
  blocked: disk.cache is held by libvirt vm "theirs" (1234)
  > choose another in the block of vm.a, or free it first
`,
		},
		{
			name: "a VM whose disk is gone gets the one that is made again", applied: cache + with("a", "disk.cache"),
			change: func(s *scene) { s.lose("disk.cache") },
			want: `create disk.cache: it is gone: made again
restart vm.a: additional_disk: disk.cache is made again
  additional_disk [{disk disk.cache}] -> [{disk disk.cache}], restart
found missing disk.cache: the state records ID, and provider.libvirt.default does not list it
0 stop vm.a
1 define disk.cache
2 redefine vm.a after 0,1
3 start vm.a after 1,2
4 wait_ssh vm.a after 1,3
`,
		},
		{
			name: "a disk goes from one VM to another, in order", applied: cache + with("a", "disk.cache") + with("b"),
			spec: cache + with("a") + with("b", "disk.cache"),
			want: `restart vm.a: additional_disk: the guest sees it at its next start
  additional_disk [{disk disk.cache}] -> [], restart
update vm.b: additional_disk: plugged in
  additional_disk [] -> [{disk disk.cache}], live
0 stop vm.a
1 detach vm.a after 0
2 redefine vm.a after 1
3 redefine vm.b after 1
4 start vm.a after 2
5 wait_ssh vm.a after 4
`,
		},
		{
			name: "5: a change that is blocked frees nothing", applied: cache + with("a", "disk.cache") + with("b"),
			spec: cache + strings.Replace(with("a"), "{\n", "{\n  lifecycle {\n    on_change = { additional_disk = \"live\" }\n  }\n", 1) + with("b", "disk.cache"),
			want: `restart vm.a: additional_disk: the guest sees it at its next start
  additional_disk [{disk disk.cache}] -> [], restart
  blocked: additional_disk needs a restart (the guest sees it at its next start), and on_change allows at most live
  > add to the block of vm.a: lifecycle { on_change = { additional_disk = "restart" } }
update vm.b: additional_disk: plugged in
  additional_disk [] -> [{disk disk.cache}], live
  blocked: disk.cache is held by vm.a, and this plan does not change that
  > see what the plan says of vm.a
`,
		},
		{
			name: "two VMs that exchange their disks", applied: cache + strings.ReplaceAll(cache, "cache", "logs") + with("a", "disk.cache") + with("b", "disk.logs"),
			spec: cache + strings.ReplaceAll(cache, "cache", "logs") + with("a", "disk.logs") + with("b", "disk.cache"),
			want: `restart vm.a: additional_disk: the guest sees it at its next start
  additional_disk [{disk disk.cache}] -> [{disk disk.logs}], restart
restart vm.b: additional_disk: the guest sees it at its next start
  additional_disk [{disk disk.logs}] -> [{disk disk.cache}], restart
0 stop vm.a
1 stop vm.b
2 detach vm.a after 0
3 detach vm.b after 1
4 redefine vm.a after 2,3
5 redefine vm.b after 2,3
6 start vm.a after 4
7 start vm.b after 5
8 wait_ssh vm.a after 6
9 wait_ssh vm.b after 7
`,
		},
		{
			// row L56
			name:    "a disk whose destruction is prevented has two ways out",
			applied: strings.Replace(cache, "size", "lifecycle {\n    prevent_destroy = true\n  }\n  size", 1), spec: "# empty\n",
			want: `destroy disk.cache: it is not in the spec
  blocked: lifecycle.prevent_destroy is set, and this is a destroy
  > if it really should go: --allow-destroy=disk.cache
  > or write it down: removed { from = disk.cache, destroy = true }
`,
		},
		{
			name:    "one of them is a removed block",
			applied: strings.Replace(cache, "size", "lifecycle {\n    prevent_destroy = true\n  }\n  size", 1),
			spec:    "removed {\n  from    = disk.cache\n  destroy = true\n}\n",
			want:    "destroy disk.cache: its removed block says so\n0 delete disk.cache\n",
		},
		{
			name:    "the other one is a flag",
			applied: strings.Replace(cache, "size", "lifecycle {\n    prevent_destroy = true\n  }\n  size", 1), spec: "# empty\n",
			change: func(s *scene) {
				s.options.Allow.Destroy = map[spec.Address]bool{addr(s.t, "disk.cache"): true}
			},
			want: "destroy disk.cache: it is not in the spec\n0 delete disk.cache\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, test.applied)
			if test.spec != "" {
				s.config = load(t, test.spec)
			}
			if test.change != nil {
				test.change(s)
			}
			s.check(test.want)
		})
	}
}

// A disk that a VM uses has an ID, even before it is made. If the disk is replaced, the VM finds
// the new one, unless the disk is out of scope.
func TestUses(t *testing.T) {
	s := after(t, cache+with("a", "disk.cache"))
	old := s.objectOf("disk.cache").ID
	uses := func() providers.Used {
		t.Helper()
		p, err := s.plan()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Changes {
			if c.Kind == spec.VM {
				return c.Uses[addr(t, "disk.cache")]
			}
		}
		t.Fatal("no VM")
		return providers.Used{}
	}
	if got, want := uses(), (providers.Used{Kind: spec.Disk, ID: old, Name: "demo.cache"}); got != want {
		t.Errorf("of what is there: %+v, want %+v", got, want)
	}
	s.options.Allow.Replace = map[spec.Address]bool{addr(t, "disk.cache"): true}
	s.config = load(t, strings.Replace(cache, "size", "format = \"raw\"\n  size", 1)+with("a", "disk.cache"))
	if got := uses(); got.ID == old || got.ID == "" || got.Name != "demo.cache" {
		t.Errorf("of what is replaced, from %s: %+v", old, got)
	}
	s.options.Scope.Targets, s.options.Scope.Alone = []spec.Address{addr(t, "vm.a")}, true
	if got := uses(); got.ID != old {
		t.Errorf("of what stays out of scope: %+v, want %s", got, old)
	}
	s = after(t, "")
	s.config = load(t, cache+with("a", "disk.cache"))
	if got := uses(); got.ID == "" || got.Name != "demo.cache" || got.Kind != spec.Disk {
		t.Errorf("of what is not made yet: %+v", got)
	}
}
