package planner_test

import (
	"strings"
	"testing"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// A disk is unlocked by command where its holder is gone, and nothing else is done:
// what the block says by now can wait.
func TestUnlock(t *testing.T) {
	found := func(kind providers.FindingKind) func(*scene) {
		return func(s *scene) {
			o := s.objectOf("disk.cache")
			o.Findings = append(o.Findings, providers.Finding{Kind: kind, Evidence: []string{"pid 7 has it"}})
		}
	}
	const refuse = "disk \"cache\" {\n  size          = \"2GiB\"\n  on_stale_lock = \"refuse\"\n}\n"
	for _, test := range []struct {
		name, applied, spec string
		change              func(*scene)
		want                string
	}{
		{name: "nobody holds it", applied: cache, want: ""},
		{name: "it does not exist", spec: cache, want: ""},
		{
			name: "its holder is gone", applied: cache, spec: refuse, change: found(providers.FindStaleLock),
			want: `recover disk.cache: who held it is gone
found stale_lock disk.cache: pid 7 has it
0 unlock disk.cache
`,
		},
		{
			name: "its record is lost", applied: cache, change: func(s *scene) {
				s.forget("disk.cache")
				found(providers.FindStaleLock)(s)
			},
			want: `recover disk.cache: who held it is gone
found stale_lock disk.cache: pid 7 has it
0 unlock disk.cache
1 record disk.cache after 0
`,
		},
		{
			name: "somebody holds it", applied: cache, change: found(providers.FindHeldLock),
			want: `noop disk.cache
  blocked: it is not unlocked: pid 7 has it
  > let its holder end first, then: vmctl disk unlock disk.cache
found held_lock disk.cache: pid 7 has it
`,
		},
		{
			name: "a VM runs with it", applied: cache + with("a", "disk.cache"), change: found(providers.FindStaleLock),
			want: `noop disk.cache
  blocked: it is not unlocked: libvirt vm "demo.a" (ID) runs with it
  > let its holder end first, then: vmctl disk unlock disk.cache
found stale_lock disk.cache: pid 7 has it
`,
		},
		{
			name: "a VM that is broken has it", applied: cache + with("a", "disk.cache"), change: func(s *scene) {
				o := s.objectOf("vm.a")
				o.Running, o.State = new(bool), providers.StateBroken
			},
			want: `noop disk.cache
  blocked: it is not unlocked: libvirt vm "demo.a" (ID) runs with it
  > let its holder end first, then: vmctl disk unlock disk.cache
found drift vm.a: it is broken, and vmctl left it running
`,
		},
		{
			name: "a VM that is off has it", applied: cache + with("a", "disk.cache"), change: func(s *scene) {
				o := s.objectOf("vm.a")
				o.Running, o.State = new(bool), providers.StateOff
			},
			want: "found drift vm.a: it is off, and vmctl left it running\n",
		},
		{
			name: "what has its name is another's", spec: cache, change: func(s *scene) {
				sys := s.system("qemu:///session")
				sys.inventory.Objects = append(sys.inventory.Objects, providers.Object{
					Kind: spec.Disk, ID: "1234", Name: "demo.cache", Findings: []providers.Finding{{Kind: providers.FindStaleLock}},
				})
			},
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
			disk := addr(t, "disk.cache")
			s.options.Scope = planner.Scope{Targets: []spec.Address{disk}, Alone: true}
			s.options.Unlock = map[spec.Address]bool{disk: true}
			s.t = t
			s.check(test.want)
		})
	}
}

// A restart of a VM that has ended frees the locks of its disks, which somebody who is gone left
// behind, and brings nothing else.
func TestRestartFreesTheLocksOfItsDisks(t *testing.T) {
	stale := func(s *scene) {
		o := s.objectOf("disk.cache")
		o.Findings = append(o.Findings, providers.Finding{Kind: providers.FindStaleLock, Evidence: []string{"pid 7 has it"}})
	}
	for _, test := range []struct {
		name   string
		change func(*scene)
		frees  bool
	}{
		{"nobody holds its disk", func(*scene) {}, false},
		{"who held its disk is gone", stale, true},
		{"who held its disk is gone, and the disk is excluded", func(s *scene) {
			stale(s)
			s.options.Scope.Excludes = []spec.Address{addr(s.t, "disk.cache")}
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, cache+with("a", "disk.cache")+bare("b", ""))
			vm := addr(t, "vm.a")
			s.options.Scope.Targets, s.options.Scope.Alone = []spec.Address{vm}, true
			s.options.Restart, s.options.Running = map[spec.Address]bool{vm: true}, map[spec.Address]bool{vm: true}
			test.change(s)
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			got := text(p)
			if frees := strings.Contains(got, "update disk.cache: what is left of who used it is removed"); frees != test.frees || strings.Contains(got, "vm.b") {
				t.Errorf("it frees the disk: %t, want %t\n%s", frees, test.frees, got)
			}
		})
	}
}
