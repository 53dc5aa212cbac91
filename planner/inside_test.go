package planner_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

const note = "box \"note\" {\n  in      = vm.a\n  label   = \"note\"\n  content = \"x\"\n}\n"

// off turns vm.a off in the world.
func (s *scene) off() {
	off := false
	s.object().Running, s.object().State = &off, providers.StateOff
}

// stays asks for vm.a to be off, by command.
func (s *scene) stays() {
	s.options.Running = map[spec.Address]bool{addr(s.t, "vm.a"): false}
}

// offAtFirst is one, whose VM is off.
var offAtFirst = strings.Replace(one, "{", "{\n  running = false", 1)

func TestInside(t *testing.T) {
	changed := strings.Replace(note, `"x"`, `"y"`, 1)
	for _, test := range []struct {
		name, applied, spec string
		change              func(*scene)
		want                string
		unread              bool // nothing inside of vm.a may be read
	}{
		{
			name: "inside of a VM that is made, it is made with the VM", spec: one + note, unread: true,
			want: `create box.note: it does not exist
create vm.a: it does not exist
0 define vm.a
1 start vm.a after 0
2 wait_ssh vm.a after 1
3 make box.note after 0,1,2
4 open box.note after 0,1,2,3
`,
		},
		{name: "nothing to do", applied: one + note},
		{
			name: "inside of a VM that runs, it is changed", applied: one + note, spec: one + changed,
			want: `update box.note: content: written at any time
  content x -> y, live
0 write box.note
`,
		},
		{
			name: "4: of a VM without block and record whose object is there, nothing is known", applied: one + note, spec: "# empty\n", unread: true,
			change: func(s *scene) { s.forget("vm.a"); s.elsewhere() },
			want: `noop box.note
  unknown: what is inside of vm.a could not be read: vm.a has no block and no record, and libvirt vm "demo.a" (ID) is there
found orphan vm.a: libvirt vm "demo.a" (ID) bears our mark; it is in neither the spec nor the state
found unknown box.note: vm.a has no block and no record, and libvirt vm "demo.a" (ID) is there
`,
		},
		{
			name: "of one that could not be read, nothing is known either", applied: one + note, spec: "# empty\n", unread: true,
			change: func(s *scene) {
				s.forget("vm.a")
				s.lose("vm.a")
				s.system("qemu:///session").inventory.Partial = map[spec.Kind]*providers.Problem{spec.VM: providers.Refuse("the daemon hung up", nil)}
			},
			want: `noop box.note
  unknown: what is inside of vm.a could not be read: vm.a has no block and no record, and provider.libvirt.default could not be read: the daemon hung up
found unknown box.note: vm.a has no block and no record, and provider.libvirt.default could not be read: the daemon hung up
`,
		},
		{
			name: "where the records were lost, what is inside is found, wherever it is wanted", applied: one + note, unread: true, // nobody asks about it
			spec:   one + "vm \"b\" {}\n" + strings.Replace(note, "vm.a", "vm.b", 1),
			change: func(s *scene) { s.forget("vm.a"); s.forget("box.note") },
			want: `replace box.note: in: cannot change after it was made
  in vm.a -> vm.b, replace
adopt vm.a: it is ours, and its record was lost
create vm.b: it does not exist
0 close box.note
1 remove box.note after 0
2 define vm.b
3 start vm.b after 2
4 wait_ssh vm.b after 3
5 make box.note after 1,2,3,4
6 open box.note after 2,3,4,5
7 record vm.a
`,
		},
		{
			name: "or made", applied: one, spec: one + note,
			want: "create box.note: it does not exist\n0 make box.note\n1 open box.note after 0\n",
		},
		{
			name: "of a VM whose block names another provider, it is read where that is", applied: one,
			spec: "provider \"libvirt\" \"far\" {\n  uri = \"qemu:///system\"\n}\n" + strings.Replace(one, "{", "{\n  provider = provider.libvirt.far", 1) + note,
			want: `create box.note: it does not exist
  blocked: it needs vm.a, whose own change is refused
  > see what the plan says of vm.a
update vm.a: provider: an object does not move to another system: destroy it first, then apply
  provider provider.libvirt.default -> provider.libvirt.far, refused
  refused: provider: an object does not move to another system: destroy it first, then apply
  > vmctl destroy --target=vm.a
  > then: vmctl apply
`,
		},
		{
			name: "what takes a value of something in a VM that is made off has to wait", unread: true,
			spec: "vm \"a\" {\n  running = false\n}\n" + note + "vm \"b\" {\n  restart_triggers = { n = box.note.id }\n}\n",
			want: `create vm.a: it does not exist
create vm.b: it does not exist
  blocked: it refers to box.note, which is made once vm.a runs
  > write running = true into vm.a, or leave out the reference
0 define vm.a
`,
		},
		{
			name: "what depends on it alone does not", unread: true,
			spec: "vm \"a\" {\n  running = false\n}\n" + note + "vm \"b\" {\n  running = false\n  restart_triggers = { n = vm.a.address }\n  depends_on = [box.note]\n}\n",
			want: `create vm.a: it does not exist
create vm.b: it does not exist
0 define vm.a
1 define vm.b after 0
`,
		},
		{
			name: "what is made with the VM and needs what is blocked is blocked", unread: true,
			spec: one + note + "box \"more\" {\n  in = vm.a\n  label = \"m\"\n  content = \"x\"\n  depends_on = [vm.c]\n}\n" +
				"vm \"c\" {\n  name = \"theirs\"\n}\n",
			change: func(s *scene) {
				sys := s.system("qemu:///session")
				sys.inventory.Objects = append(sys.inventory.Objects, providers.Object{Kind: spec.VM, ID: "1234", Name: "theirs"})
			},
			want: `create box.more: it does not exist
  blocked: it needs vm.c, whose own change is blocked
  > see what the plan says of vm.c
create box.note: it does not exist
create vm.a: it does not exist
create vm.c: it does not exist
  blocked: libvirt vm "theirs" (1234) exists, and vmctl did not make it: import or rename
  > rename: set another name in the block of vm.c, or rename the other object with its own tool
  > import: vmctl import vm.c 1234
0 define vm.a
1 start vm.a after 0
2 wait_ssh vm.a after 1
3 make box.note after 0,1,2
4 open box.note after 0,1,2,3
`,
		},
		{
			name: "of a VM that is off nothing can be let go of", applied: strings.Replace(one, "{", "{\n  running = false", 1) + note, unread: true,
			spec: strings.Replace(one, "{", "{\n  running = false", 1) + "removed {\n  from    = box.note\n  destroy = false\n}\n",
			want: `forget box.note: its removed block lets go of it
  blocked: vm.a is off: vmctl's mark cannot be taken off what is inside of it
  > start the VM first: vmctl vm start vm.a
`,
		},
		{
			name: "or removed", applied: one + note, spec: one,
			want: "destroy box.note: it is not in the spec\n0 close box.note\n1 remove box.note after 0\n",
		},
		{
			name: "of a VM that goes down it is let go of first, and changed once that is back", applied: one + note,
			spec: strings.Replace(one, "256MiB", "512MiB", 1) + changed,
			want: `update box.note: content: written at any time
  content x -> y, live
restart vm.a: memory: the guest sees it at its next start
  memory 256MiB -> 512MiB, restart
0 close box.note
1 stop vm.a after 0
2 redefine vm.a after 1
3 start vm.a after 2
4 wait_ssh vm.a after 3
5 write box.note after 0,2,3,4
6 open box.note after 2,3,4,5
`,
		},
		{
			name: "also of one that is stopped; then it is not read", applied: one + note, spec: one + changed,
			change: func(s *scene) { s.stays() },
			want: `release box.note: vm.a goes down
stop vm.a: it runs, and a stop was asked for
0 close box.note
1 stop vm.a after 0
`,
		},
		{
			name: "also where the VM alone is stopped", applied: one + note, spec: one + changed,
			change: func(s *scene) {
				s.stays()
				s.options.Scope = planner.Scope{Targets: []spec.Address{addr(s.t, "vm.a")}, Alone: true}
			},
			want: `release box.note: vm.a goes down
stop vm.a: it runs, and a stop was asked for
0 close box.note
1 stop vm.a after 0
`,
		},
		{
			name: "inside of a VM that is off and stays so, nothing is read or changed", applied: one + note, spec: one + changed, unread: true,
			change: func(s *scene) { s.off(); s.stays() },
			want: `update vm.a: the recorded state is updated
found drift vm.a: it is off, and vmctl left it running
0 record vm.a
`,
		},
		{
			name: "inside of a VM that is started, it is read later", applied: one + note, spec: one + changed, unread: true,
			change: func(s *scene) { s.off() },
			want: `start vm.a: it is off
found drift vm.a: it is off, and vmctl left it running
deferred box.note until vm.a is ready
0 start vm.a
1 wait_ssh vm.a after 0
`,
		},
		{
			name: "inside of a VM that cannot be read, nothing can", applied: one + note, spec: one + changed, unread: true,
			change: func(s *scene) {
				s.system("qemu:///session").inventory = providers.Inventory{Partial: map[spec.Kind]*providers.Problem{spec.VM: providers.Refuse("no answer", nil)}}
			},
			want: `noop box.note
  unknown: what is inside of vm.a could not be read: vm.a could not be read: no answer
noop vm.a
  unknown: provider.libvirt.default could not be read: no answer
found unknown box.note: vm.a could not be read: no answer
found unknown vm.a: no answer
`,
		},
		{
			name: "what is removed goes before its VM does", applied: one + note, spec: "# empty\n",
			want: `destroy box.note: it is not in the spec
destroy vm.a: it is not in the spec
0 close box.note
1 remove box.note after 0
2 stop vm.a after 0,1
3 delete vm.a after 0,1,2
`,
		},
		{
			name: "with a VM that is off it goes too", applied: one + note, spec: "# empty\n", unread: true,
			change: func(s *scene) { s.off() },
			want: `forget box.note: it goes with vm.a
destroy vm.a: it is not in the spec
0 delete vm.a
1 forget box.note after 0
`,
		},
		{
			name: "inside of a VM that is gone, everything is", applied: one + note, spec: "# empty\n", unread: true,
			change: func(s *scene) { s.lose("vm.a") },
			want: `forget box.note: vm.a does not exist, and nothing is inside of it
forget vm.a: it no longer exists
0 forget box.note
1 forget vm.a after 0
`,
		},
		{
			name: "a VM is not let go of with something inside that is wanted elsewhere", applied: one + note,
			spec: "vm \"b\" {\n  running = false\n}\n" + strings.Replace(note, "vm.a", "vm.b", 1) + "removed {\n  from    = vm.a\n  destroy = false\n}\n",
			want: `forget vm.a: its removed block lets go of it: the object stays as it is, without vmctl's mark
  blocked: box.note is inside of it, and is to be kept
  > see what the plan says of box.note
create vm.b: it does not exist
0 define vm.b
`,
		},
		{
			// row E11
			name: "a VM is not destroyed with something inside that is to be kept", applied: one + note, spec: "# empty\n",
			change: func(s *scene) { s.options.Scope.Excludes = []spec.Address{addr(s.t, "box.note")} },
			want: `destroy vm.a: it is not in the spec
  blocked: box.note is inside of it, and is to be kept
  > take box.note in: leave out --target and --exclude, or name it, too: --target=box.note
`,
		},
		{
			name: "inside of one that is off nothing is destroyed", applied: one + note, unread: true,
			change: func(s *scene) {
				s.off()
				s.options.Destroy = true
				s.options.Scope.Targets = []spec.Address{addr(s.t, "box.note")}
			},
			want: `noop box.note
  blocked: vm.a is off: what is inside of it cannot be removed
  > start the VM first: vmctl vm start vm.a
  > or destroy it with all that is inside of it
`,
		},
		{
			name: "of a VM that was never ready it is read once that is", applied: one + note, spec: one + changed,
			change: func(s *scene) {
				r := s.state.Records[addr(s.t, "vm.a")]
				r.Conditions = nil
				s.state.Records[addr(s.t, "vm.a")] = r
			},
			want: `start vm.a: it runs, and was never ready since it started
deferred box.note until vm.a is ready
0 start vm.a
1 wait_ssh vm.a after 0
`,
		},
		{
			name: "of one that was never ready nothing is blocked for what is not read yet", applied: one + treeBox + treeInner, spec: one + strings.Replace(treeInner, "box.b", "vm.a", 1),
			change: func(s *scene) {
				r := s.state.Records[addr(s.t, "vm.a")]
				r.Conditions = nil
				s.state.Records[addr(s.t, "vm.a")] = r
			},
			want: `start vm.a: it runs, and was never ready since it started
deferred box.b until vm.a is ready
deferred box.c until vm.a is ready
0 start vm.a
1 wait_ssh vm.a after 0
`,
		},
		{
			name: "of a VM that may not go down nothing is done, and it is not let go of", applied: one + note,
			spec: strings.Replace(one, "memory = \"256MiB\"", "memory = \"512MiB\"\n  lifecycle {\n    on_change = { memory = \"live\" }\n  }", 1) + changed,
			want: `update box.note: content: written at any time
  content x -> y, live
  blocked: it needs vm.a, whose own change is blocked
  > see what the plan says of vm.a
restart vm.a: memory: the guest sees it at its next start
  memory 256MiB -> 512MiB, restart
  blocked: memory needs a restart (the guest sees it at its next start), and on_change allows at most live
  > add to the block of vm.a: lifecycle { on_change = { memory = "restart" } }
`,
		},
		{
			name:    "a VM is not replaced with something inside whose destruction is prevented",
			applied: one + strings.Replace(note, "{\n", "{\n  lifecycle {\n    prevent_destroy = true\n  }\n", 1),
			spec:    strings.Replace(one, "memory", "accel  = \"tcg\"\n  memory", 1) + strings.Replace(note, "{\n", "{\n  lifecycle {\n    prevent_destroy = true\n  }\n", 1),
			change: func(s *scene) {
				s.options.Allow.Replace = map[spec.Address]bool{addr(s.t, "vm.a"): true}
			},
			want: `replace box.note: vm.a is replaced: made again in the new one
  blocked: lifecycle.prevent_destroy is set, and this is a replace
  > if it really should go: --allow-destroy=box.note
replace vm.a: accel: cannot change after it was made
  accel auto -> tcg, replace
  blocked: box.note is inside of it, and is to be kept
  > see what the plan says of box.note
`,
		},
		{
			name: "its provider refuses to let go of it, and says what to do", applied: one + note, spec: strings.Replace(one, "256MiB", "512MiB", 1) + note,
			change: func(s *scene) {
				s.inside("vm.a").refusal = providers.Refuse("its disk is full", providers.Say("make room"))
			},
			want: `noop box.note
  blocked: it cannot be released: its disk is full
  > make room
restart vm.a: memory: the guest sees it at its next start
  memory 256MiB -> 512MiB, restart
  blocked: box.note, which is inside of it, cannot be released: its disk is full
  > make room
`,
		},
		{
			name: "what needs something that is read later is read later, too", unread: true,
			applied: offAtFirst, spec: one + note + "vm \"b\" {\n  depends_on = [box.note]\n}\n",
			want: `start vm.a: it is off
deferred box.note until vm.a is ready
deferred vm.b until vm.a is ready
0 start vm.a
1 wait_ssh vm.a after 0
`,
		},
		{
			name: "what waits for the VM and needs what is blocked is blocked now", unread: true,
			applied: offAtFirst, spec: one + note + "box \"more\" {\n  in = vm.a\n  label = \"m\"\n  content = \"x\"\n  depends_on = [vm.c]\n}\n" +
				"vm \"c\" {\n  name = \"theirs\"\n}\n",
			change: func(s *scene) {
				sys := s.system("qemu:///session")
				sys.inventory.Objects = append(sys.inventory.Objects, providers.Object{Kind: spec.VM, ID: "1234", Name: "theirs"})
			},
			want: `noop box.more
  blocked: it needs vm.c, whose own change is blocked
  > see what the plan says of vm.c
start vm.a: it is off
create vm.c: it does not exist
  blocked: libvirt vm "theirs" (1234) exists, and vmctl did not make it: import or rename
  > rename: set another name in the block of vm.c, or rename the other object with its own tool
  > import: vmctl import vm.c 1234
deferred box.note until vm.a is ready
0 start vm.a
1 wait_ssh vm.a after 0
`,
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
			s.inside("vm.a").known = nil
			s.check(test.want)
			if read := s.inside("vm.a").known != nil; read == test.unread {
				t.Errorf("inside of vm.a it was read: %t", read)
			}
		})
	}
}

// The next round decides about the deferred addresses, and about nothing else.
func TestRest(t *testing.T) {
	s := after(t, one)
	s.config = load(t, strings.Replace(one, "256MiB", "512MiB", 1)+note)
	s.options.Rest = []planner.Deferred{{Address: addr(t, "box.note"), Until: addr(t, "vm.a")}}
	sys := s.system("qemu:///session")
	sys.inventory.Objects = append(sys.inventory.Objects, providers.Object{
		Kind: spec.VM, ID: "9", Name: "orphan", Owner: &providers.Mark{ID: project.ID, Address: addr(t, "vm.z"), Of: "9"},
	})
	s.object().Findings = []providers.Finding{{Kind: providers.FindBroken, Evidence: []string{"said before"}}}
	// The changes of vm.a belong to another plan: this one may not take it down.
	s.check("create box.note: it does not exist\n0 make box.note\n1 open box.note after 0\n")
}

// An object inside of a VM that cannot be let go of keeps that VM up: both changes are blocked,
// and the rest of the plan stands.
func TestAReleaseThatCannotBePlanned(t *testing.T) {
	const applied = "vm \"a\" {\n  cpus = 2\n}\nbox \"note\" {\n  in      = vm.a\n  label   = \"n\"\n  content = \"x\"\n}\n"
	s := after(t, applied)
	s.config = load(t, strings.Replace(applied, "cpus = 2", "cpus = 3", 1)+"vm \"b\" {}\n")
	s.inside("vm.a").panics = string(providers.Release)
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	blocked := map[string]planner.Cause{}
	for _, c := range p.Changes {
		if c.Blocked != nil {
			blocked[c.Address.String()] = c.Blocked.Cause
		}
	}
	want := map[string]planner.Cause{"vm.a": planner.CauseInside, "box.note": planner.CauseProvider}
	if diff := cmp.Diff(want, blocked); diff != "" {
		t.Errorf("blocked (-want +got):\n%s\n%s", diff, text(p))
	}
	if stepsOf(p, "vm.a") != "" || stepsOf(p, "vm.b") == "" {
		t.Errorf("the steps are others:\n%s", text(p))
	}
}

// What is to leave an object that is off, and that was to come up but does not, is told so: it would wait for ever in silence. Where
// nothing could be made in its new place either, it rests.
func TestTakenOutOfWhatDoesNotComeUp(t *testing.T) {
	const (
		asleep = "vm \"z\" {\n  running = false\n}\n"
		other  = "box \"d\" {\n  in    = vm.a\n  label = \"d\"\n}\n"
	)
	blocked := func(first string) string {
		return "update box.c\n  blocked: box.b is off: box.c cannot be taken out of it\n  > " + first + "\n"
	}
	for _, test := range []struct {
		name   string
		outer  string // the block of box.b
		inner  string // where box.c is to be
		change func(*scene)
		want   string
	}{
		{"it moves into a VM that is off", strings.Replace(treeBox, "vm.a", "vm.z", 1), "box.d", nil, blocked("start the VM first: vmctl vm start vm.z")},
		{"so does what is inside of it", strings.Replace(treeBox, "vm.a", "vm.z", 1), "vm.z", nil, ""},
		{"it is out of scope", treeBox, "box.d", func(s *scene) { s.options.Scope.Excludes = []spec.Address{addr(s.t, "box.b")} }, blocked("start box.b first: write running = true into its block, and apply")},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, treeVM+holding(treeBox, "running = false")+treeInner+asleep+other)
			s.config = load(t, treeVM+test.outer+strings.Replace(treeInner, "box.b", test.inner, 1)+asleep+other)
			if test.change != nil {
				test.change(s)
			}
			s.check(test.want)
		})
	}
}

// What was not read because the VM around it is off, and is wanted in another one, keeps that VM: also where nothing can be made in
// the other one yet.
func TestWhatIsShutInKeepsWhatIsAround(t *testing.T) {
	const old, other = "vm \"a\" {\n  running = false\n}\n", "vm \"z\" {\n  running = false\n}\n"
	for name, there := range map[string]string{"the other one is off": old + other, "the other one is to be made": old} {
		t.Run(name, func(t *testing.T) {
			s := after(t, there+treeBox)
			s.config = load(t, other+strings.Replace(treeBox, "vm.a", "vm.z", 1))
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			if stepsOf(p, "vm.a") != "" || !strings.Contains(text(p), "blocked: box.b is inside of it, and is to be kept") {
				t.Errorf("the plan is\n%s", text(p))
			}
			s.options.Destroy = true
			if p, err = s.plan(); err != nil || stepsOf(p, "vm.a") == "" {
				t.Errorf("%v: the plan to destroy is\n%s", err, text(p))
			}
		})
	}
}

// What an object leaves for a place that comes up in the same plan ends once that is read, in the same apply. Where the place stays off,
// the object stays, and what is around it.
func TestEndsOnceWhatIsInsideHasMoved(t *testing.T) {
	const other = "vm \"z\" {\n}\n"
	there := "box \"d\" {\n  in      = vm.z\n  label   = \"d\"\n  running = false\n}\n"
	moved := strings.Replace(treeBox, "vm.a", "box.d", 1)
	s := after(t, treeVM+other+treeBox+there)
	s.config = load(t, other+moved+strings.Replace(there, "running = false", "running = true", 1))
	s.check("start box.d: it is off\ndeferred box.b until box.d is ready\ndeferred vm.a until box.d is ready\n0 open box.d\n")

	s.config = load(t, other+moved+there)
	s.check("destroy vm.a: it is not in the spec\n  blocked: box.b is inside of it, and is to be kept\n  > see what the plan says of box.b\n")
}

// A workspace goes from this host into a VM, and out of it again, as one that is replaced: it is removed where it is first.
func TestMovesBetweenThisHostAndAVM(t *testing.T) {
	const vm = "vm \"a\" {\n}\n"
	work := func(in string) string {
		return vm + "workspace \"w\" {\n" + in + "  branch = \"w\"\n  path = \"/w\"\n}\n"
	}
	const here, inVM = "", "  vm = vm.a\n"
	for _, test := range []struct{ name, applied, spec, edit string }{
		{name: "into the VM", applied: here, spec: inVM, edit: "none -> vm.a"},
		{name: "out of the VM", applied: inVM, spec: here, edit: "vm.a -> none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, vm)
			s.inhabit(load(t, work(test.applied)))
			s.config = load(t, work(test.spec))
			s.checkAll("replace workspace.w: vm: cannot change after it was made\n  vm " + test.edit + ", replace\n" +
				"0 delete workspace.w\n1 define workspace.w after 0\n")
		})
	}
}
