package planner_test

import (
	"fmt"
	"strings"
	"testing"

	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// forwards returns the block of a VM to which a port of the host is forwarded.
func forwards(vm, ip string, more string) string {
	return fmt.Sprintf("vm %q {\n  port_forward {\n    guest   = 80\n    host    = \"8080\"\n    host_ip = %q\n  }\n%s}\n", vm, ip, more)
}

func bare(vm, more string) string { return fmt.Sprintf("vm %q {\n%s}\n", vm, more) }

// One change frees a claim that other changes take.
func TestClaimsChangeHands(t *testing.T) {
	const refused = "  boot {\n    kernel  = \"kernel\"\n    cmdline = \"%s\"\n  }\n"
	for _, test := range []struct {
		name, applied, spec string
		change              func(*scene)
		want                string
	}{
		{
			name:    "a port of all addresses goes to two VMs that take one address each",
			applied: forwards("a", "0.0.0.0", "") + bare("b", "") + bare("c", ""),
			spec:    bare("a", "") + forwards("b", "127.0.0.1", "") + forwards("c", "127.0.0.2", ""),
			want: `restart vm.a: port_forward: the guest sees it at its next start
  port_forward [{guest 80, host 8080, host_ip 0.0.0.0, protocol tcp}] -> [], restart
restart vm.b: port_forward: the guest sees it at its next start
  port_forward [] -> [{guest 80, host 8080, host_ip 127.0.0.1, protocol tcp}], restart
restart vm.c: port_forward: the guest sees it at its next start
  port_forward [] -> [{guest 80, host 8080, host_ip 127.0.0.2, protocol tcp}], restart
0 stop vm.a
1 stop vm.b
2 stop vm.c
3 detach vm.a after 0
4 redefine vm.a after 3
5 redefine vm.b after 1,3
6 redefine vm.c after 2,3
7 start vm.a after 4
8 start vm.b after 5
9 start vm.c after 6
10 wait_ssh vm.a after 7
11 wait_ssh vm.b after 8
12 wait_ssh vm.c after 9
`,
		},
		{
			name:    "nothing is freed for a VM that depends on one whose change is blocked",
			applied: forwards("a", "127.0.0.1", "") + bare("b", "  depends_on = [vm.c]\n") + bare("c", fmt.Sprintf(refused, "x")),
			spec:    bare("a", "") + forwards("b", "127.0.0.1", "  depends_on = [vm.c]\n") + bare("c", fmt.Sprintf(refused, "y")),
			want: `restart vm.a: port_forward: the guest sees it at its next start
  port_forward [{guest 80, host 8080, host_ip 127.0.0.1, protocol tcp}] -> [], restart
restart vm.b: port_forward: the guest sees it at its next start
  port_forward [] -> [{guest 80, host 8080, host_ip 127.0.0.1, protocol tcp}], restart
  blocked: it needs vm.c, whose own change is refused
  > see what the plan says of vm.c
update vm.c: boot.cmdline: cannot be changed at all
  boot.cmdline x -> y, refused
  refused: boot.cmdline: cannot be changed at all
0 stop vm.a
1 redefine vm.a after 0
2 start vm.a after 1
3 wait_ssh vm.a after 2
`,
		},
		{
			name:    "a disk goes with its VM, and another VM that is not ours has it too",
			applied: cache + with("a", "disk.cache"), spec: "# empty\n",
			change: func(s *scene) {
				sys := s.system("qemu:///session")
				off := false
				sys.inventory.Objects = append(sys.inventory.Objects, providers.Object{
					Kind: spec.VM, ID: "theirs", Name: "theirs", Running: &off, State: providers.StateOff,
					Holds: []providers.Claim{{Kind: providers.ClaimDisk, Key: s.state.Records[addr(s.t, "disk.cache")].ID}},
				})
			},
			want: `destroy disk.cache: it is not in the spec
  blocked: libvirt vm "theirs" (theirs) uses it
  > take it off that one first, with vmctl or with the system's own tool
destroy vm.a: it is not in the spec
0 stop vm.a
1 delete vm.a after 0
`,
		},
		{
			name:    "somebody is inside of a VM that is restarted, and a box is in there",
			applied: bare("a", "  memory = \"256MiB\"\n") + note, spec: bare("a", "  memory = \"512MiB\"\n") + note,
			change: func(s *scene) {
				s.options.Busy = map[spec.Address][]state.Holder{addr(s.t, "vm.a"): {{PID: 7, Host: "ada", Command: "vmctl vm shell"}}}
				s.options.Allow.Interrupt = map[spec.Address]bool{addr(s.t, "vm.a"): true}
			},
			want: `release box.note: vm.a goes down
restart vm.a: memory: the guest sees it at its next start
  memory 256MiB -> 512MiB, restart
found busy vm.a: vmctl vm shell (pid 7 on ada) since 0001-01-01 00:00:00 UTC
0 close box.note
1 stop vm.a after 0
2 redefine vm.a after 1
3 start vm.a after 2
4 wait_ssh vm.a after 3
5 open box.note after 0,2,3,4
`,
		},
		{
			name:    "a VM that is to come up needs the port of one that waits for what is inside of it",
			applied: bare("a", "  running = false\n") + note + forwards("w", "127.0.0.1", ""),
			spec:    forwards("a", "127.0.0.1", "") + note + bare("w", "  depends_on = [box.note]\n"),
			change:  func(s *scene) { s.off() },
			want: `start vm.a: it is off
  port_forward [] -> [{guest 80, host 8080, host_ip 127.0.0.1, protocol tcp}], live
  blocked: vm.w holds what it needs to come up, and changes only once what is inside of vm.a was read
  > apply in two steps: first vm.w without its references to what is inside of vm.a
restart vm.w: port_forward: the guest sees it at its next start
  port_forward [{guest 80, host 8080, host_ip 127.0.0.1, protocol tcp}] -> [], restart
  blocked: it needs vm.a, whose own change is blocked
  > see what the plan says of vm.a
`,
		},
		{
			name: "a VM without its mark is not destroyed", applied: one, spec: "# empty\n",
			change: func(s *scene) { s.object().Owner = nil },
			want: `destroy vm.a: it is not in the spec
  blocked: somebody took its owner mark off, and this is a destroy: nothing is deleted on the record's word
  > to have it marked again: put the block of vm.a back and apply, then repeat this
  > to let go of it: vmctl state rm --force vm.a
`,
		},
		{
			name: "nor is it replaced", applied: one, spec: strings.Replace(one, "{\n", "{\n  accel = \"tcg\"\n  lifecycle {\n    on_change = { accel = \"replace\" }\n  }\n", 1),
			change: func(s *scene) { s.object().Owner = nil },
			want: `replace vm.a: accel: cannot change after it was made
  mark none -> vm.a, live
  accel auto -> tcg, replace
  blocked: somebody took its owner mark off, and this is a replace: nothing is deleted on the record's word
  > to have it marked again: apply the block of vm.a as it was, then repeat this
  > to let go of it: vmctl state rm --force vm.a
`,
		},
		{
			name: "a run was cut short that let go of it", applied: one, spec: "# empty\n",
			change: func(s *scene) {
				s.object().Owner = nil
				s.interrupt("vm.a", "unmark")
				s.state.Interrupted[0].How = state.LettingGo
			},
			want: `forget vm.a: an earlier run let go of it: its mark is off
found interrupted vm.a: an earlier run began to unmark it at 2026-05-01 12:00:00 UTC and did not end; it may have left: half of it
0 forget vm.a
1 settle vm.a after 0
`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, test.applied)
			s.config = load(t, test.spec)
			if test.change != nil {
				test.change(s)
			}
			s.checkAll(test.want)
		})
	}
}
