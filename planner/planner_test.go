package planner_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

const one = `
vm "a" {
  memory = "256MiB"
}
`

func TestPlan(t *testing.T) {
	tests := []struct {
		name    string
		applied string // as if this had been applied
		spec    string // and this is the spec now; "": the same
		change  func(*scene)
		want    string
	}{
		{name: "nothing to do", applied: one, want: ""},
		{
			name: "two of one for_each are made side by side",
			spec: "vm \"web\" {\n  for_each = toset([\"a\", \"b\"])\n}\n",
			want: `create vm.web["a"]: it does not exist
create vm.web["b"]: it does not exist
0 define vm.web["a"]
1 define vm.web["b"]
2 start vm.web["a"] after 0
3 start vm.web["b"] after 1
4 wait_ssh vm.web["a"] after 2
5 wait_ssh vm.web["b"] after 3
`,
		},
		{
			name: "what depends on another is made after that one is ready",
			spec: "vm \"a\" {\n  depends_on = [vm.b]\n}\nvm \"b\" {}\n",
			want: `create vm.a: it does not exist
create vm.b: it does not exist
0 define vm.b
1 start vm.b after 0
2 wait_ssh vm.b after 1
3 define vm.a after 0,1,2
4 start vm.a after 0,1,2,3
5 wait_ssh vm.a after 0,1,2,4
`,
		},
		{
			name:    "and is removed before it",
			applied: "vm \"a\" {\n  depends_on = [vm.b]\n}\nvm \"b\" {}\n",
			spec:    "# empty\n",
			want: `destroy vm.a: it is not in the spec
destroy vm.b: it is not in the spec
0 stop vm.a
1 delete vm.a after 0
2 stop vm.b after 0,1
3 delete vm.b after 0,1,2
`,
		},
		{
			name:    "memory of a running VM: down, change, up, ready",
			applied: one,
			spec:    "vm \"a\" {\n  memory = \"512MiB\"\n}\n",
			want: `restart vm.a: memory: the guest sees it at its next start
  memory 256MiB -> 512MiB, restart
0 stop vm.a
1 redefine vm.a after 0
2 start vm.a after 1
3 wait_ssh vm.a after 2
`,
		},
		{
			name:    "memory of a VM that stays off",
			applied: "vm \"a\" {\n  running = false\n}\n",
			spec:    "vm \"a\" {\n  running = false\n  cpus = 3\n}\n",
			want: `update vm.a: cpus: takes effect at the next start
  cpus 2 -> 3, live
0 redefine vm.a
`,
		},
		{
			name:    "an edit of a VM that is wanted off anyway needs no restart",
			applied: one,
			spec:    "vm \"a\" {\n  memory = \"512MiB\"\n  running = false\n}\n",
			want: `stop vm.a: it runs, and running = false
  memory 256MiB -> 512MiB, live
0 stop vm.a
1 redefine vm.a after 0
`,
		},
		{
			name:    "restarts of one for_each go one at a time",
			applied: "vm \"w\" {\n  for_each = toset([\"a\", \"b\"])\n}\n",
			spec:    "vm \"w\" {\n  for_each = toset([\"a\", \"b\"])\n  cpus = 1\n}\n",
			want: `restart vm.w["a"]: cpus: the guest sees it at its next start
  cpus 2 -> 1, restart
restart vm.w["b"]: cpus: the guest sees it at its next start
  cpus 2 -> 1, restart
0 stop vm.w["a"]
1 redefine vm.w["a"] after 0
2 start vm.w["a"] after 1
3 wait_ssh vm.w["a"] after 2
4 stop vm.w["b"] after 0,1,2,3
5 redefine vm.w["b"] after 0,1,2,3,4
6 start vm.w["b"] after 0,1,2,3,5
7 wait_ssh vm.w["b"] after 0,1,2,3,6
`,
		},
		{
			name:    "a replacement is above the default ceiling",
			applied: one,
			spec:    "vm \"a\" {\n  memory = \"256MiB\"\n  accel = \"tcg\"\n}\n",
			want: `replace vm.a: accel: cannot change after it was made
  accel auto -> tcg, replace
  blocked: accel needs a replace (cannot change after it was made), and on_change allows at most restart
  > add to the block of vm.a: lifecycle { on_change = { accel = "replace" } }
  > or allow it once: --allow-replace=vm.a
`,
		},
		{
			name:    "and is made when it is allowed by flag",
			applied: one,
			spec:    "vm \"a\" {\n  memory = \"256MiB\"\n  accel = \"tcg\"\n}\n",
			change: func(s *scene) {
				s.options.Allow.Replace = map[spec.Address]bool{addr(s.t, "vm.a"): true}
			},
			want: `replace vm.a: accel: cannot change after it was made
  accel auto -> tcg, replace
0 stop vm.a
1 delete vm.a after 0
2 define vm.a after 1
3 start vm.a after 2
4 wait_ssh vm.a after 3
`,
		},
		{
			name:    "a ceiling of live blocks a restart",
			applied: one,
			spec:    "vm \"a\" {\n  memory = \"512MiB\"\n  lifecycle {\n    on_change = { memory = \"live\" }\n  }\n}\n",
			want: `restart vm.a: memory: the guest sees it at its next start
  memory 256MiB -> 512MiB, restart
  blocked: memory needs a restart (the guest sees it at its next start), and on_change allows at most live
  > add to the block of vm.a: lifecycle { on_change = { memory = "restart" } }
`,
		},
		{
			name:    "a refused edit cannot be allowed",
			applied: "vm \"a\" {\n  boot {\n    kernel = \"kernel\"\n  }\n}\n",
			spec:    "vm \"a\" {\n  boot {\n    kernel = \"kernel\"\n    cmdline = \"quiet\"\n  }\n}\n",
			want: `update vm.a: boot.cmdline: cannot be changed at all
  boot.cmdline "" -> quiet, refused
  refused: boot.cmdline: cannot be changed at all
`,
		},
		{
			name:    "how vmctl treats a VM is remembered without touching it",
			applied: one,
			spec:    "vm \"a\" {\n  memory = \"256MiB\"\n  stop {\n    grace = \"1m\"\n  }\n}\n",
			want: `update vm.a: how vmctl treats it changed; the object stays as it is
0 record vm.a
`,
		},
		{
			name:    "prevent_destroy counts from the record when the block is gone",
			applied: "vm \"a\" {\n  lifecycle {\n    prevent_destroy = true\n  }\n}\n",
			spec:    "# empty\n",
			want: `destroy vm.a: it is not in the spec
  blocked: lifecycle.prevent_destroy is set, and this is a destroy
  > if it really should go: --allow-destroy=vm.a
  > or write it down: removed { from = vm.a, destroy = true }
`,
		},
		{
			name:    "an object that is gone is made again",
			applied: one,
			change:  func(s *scene) { s.lose("vm.a") },
			want: `create vm.a: it is gone: made again
found missing vm.a: the state records 60af4803-1fa2-8158-9678-00ec5cab9a09, and provider.libvirt.default does not list it
0 define vm.a
1 start vm.a after 0
2 wait_ssh vm.a after 1
`,
		},
		{
			name:    "an object that is gone and not wanted is forgotten",
			applied: one,
			spec:    "# empty\n",
			change:  func(s *scene) { s.lose("vm.a") },
			want:    "forget vm.a: it no longer exists\n0 forget vm.a\n",
		},
		{
			name:    "a VM that was killed is started, with evidence",
			applied: one,
			change: func(s *scene) {
				o := s.object()
				off := false
				o.Running, o.State = &off, providers.StateOff
				o.Findings = []providers.Finding{{Kind: providers.FindCrashed, Evidence: []string{"shut off, reason crashed"}}}
			},
			want: `start vm.a: it is off
found crashed vm.a: shut off, reason crashed
found drift vm.a: it is off, and vmctl left it running
0 start vm.a
1 wait_ssh vm.a after 0
`,
		},
		{
			name:    "a crash is not reported of a VM with running = false",
			applied: "vm \"a\" {\n  running = false\n}\n",
			change: func(s *scene) {
				s.object().Findings = []providers.Finding{{Kind: providers.FindCrashed, Evidence: []string{"shut off, reason crashed"}}}
			},
		},
		{
			name:    "an attribute that was changed behind vmctl's back is put right",
			applied: one,
			change: func(s *scene) {
				o := s.object()
				o.Attrs = overlaid(o.Attrs, "memory", cty.NumberIntVal(128<<20))
			},
			want: `restart vm.a: memory: the guest sees it at its next start
  memory 128MiB -> 256MiB, restart
found drift vm.a: memory is 128MiB, and vmctl applied 256MiB
0 stop vm.a
1 redefine vm.a after 0
2 start vm.a after 1
3 wait_ssh vm.a after 2
`,
		},
		{
			name:    "a lost state adopts and touches no VM",
			applied: one,
			change:  func(s *scene) { s.forget("vm.a") },
			want:    "adopt vm.a: it is ours, and its record was lost\n0 record vm.a\n",
		},
		{
			name:    "and finds by its mark what has another name",
			applied: one,
			change:  func(s *scene) { s.forget("vm.a"); s.object().Name = "renamed" },
			want:    "adopt vm.a: it is ours, and its record was lost\n0 record vm.a\n",
		},
		{
			// row A19
			name:    "an object of ours that nothing knows is reported and left alone",
			applied: one,
			spec:    "# empty\n",
			change:  func(s *scene) { s.forget("vm.a"); s.elsewhere() },
			want:    "found orphan vm.a: libvirt vm \"demo.a\" (60af4803-1fa2-8158-9678-00ec5cab9a09) bears our mark; it is in neither the spec nor the state\n",
		},
		{
			name: "an object with our name that vmctl did not make blocks",
			spec: one,
			change: func(s *scene) {
				s.system("qemu:///session").inventory.Objects = []providers.Object{{Kind: spec.VM, ID: "1234", Name: "demo.a"}}
			},
			want: `create vm.a: it does not exist
  blocked: libvirt vm "demo.a" (1234) exists, and vmctl did not make it: import or rename
  > rename: set another name in the block of vm.a, or rename the other object with its own tool
  > import: vmctl import vm.a 1234
`,
		},
		{
			name:    "a copy of our object is not ours",
			applied: one,
			change: func(s *scene) {
				o := *s.object()
				o.ID, o.Name, o.Owner = "9999", "demo.a-clone", &providers.Mark{ID: project.ID, Address: addr(s.t, "vm.a"), Of: o.ID}
				sys := s.system("qemu:///session")
				sys.inventory.Objects = append(sys.inventory.Objects, o)
			},
			want: "found copy vm.a: libvirt vm \"demo.a-clone\" (9999) bears the mark of 60af4803-1fa2-8158-9678-00ec5cab9a09\n",
		},
		{
			name:    "what another data directory has changed as the files say takes no step",
			applied: one,
			spec:    strings.Replace(one, "256MiB", "512MiB", 1),
			change: func(s *scene) {
				o := s.object()
				o.Attrs = overlaid(o.Attrs, "memory", cty.NumberIntVal(512<<20))
				o.Owner.Generation = 2
			},
			want: "found state_behind vm.a: the record is of generation 1, the object's mark of 2: a state from before was restored, or another data directory is in use\n",
		},
		{
			name:    "what runs as the files say and is defined otherwise is defined again",
			applied: one,
			change: func(s *scene) {
				o := s.object()
				o.Live = cty.ObjectVal(map[string]cty.Value{"memory": o.Attrs.GetAttr("memory")})
				o.Attrs = overlaid(o.Attrs, "memory", cty.NumberIntVal(128<<20))
			},
			want: `update vm.a: memory: it runs with this already: the next start would not
  memory 128MiB -> 256MiB, live
found drift vm.a: memory would be, once it starts again, 128MiB, and vmctl applied 256MiB
0 redefine vm.a
`,
		},
		{
			name:    "what runs otherwise than it is defined is restarted",
			applied: one,
			change: func(s *scene) {
				s.object().Live = cty.ObjectVal(map[string]cty.Value{"memory": cty.NumberIntVal(128 << 20)})
			},
			want: `restart vm.a: memory: the guest sees it at its next start
  memory 128MiB -> 256MiB, restart
found drift vm.a: memory is 128MiB, and vmctl applied 256MiB
0 stop vm.a
1 redefine vm.a after 0
2 start vm.a after 1
3 wait_ssh vm.a after 2
`,
		},
		{
			name:    "a restored state deletes nothing on its word",
			applied: one,
			spec:    "# empty\n",
			change:  func(s *scene) { s.object().Owner.Generation = 3 },
			want: `destroy vm.a: it is not in the spec
  blocked: the state is older (generation 1) than the object's mark (3): nothing is deleted on its word
  > if the object really should go: vmctl destroy --target=vm.a
found state_behind vm.a: the record is of generation 1, the object's mark of 3: a state from before was restored, or another data directory is in use
`,
		},
		{
			name:    "nor does it one that has replaced what the restored state knows",
			applied: one,
			spec:    "# empty\n",
			change: func(s *scene) {
				o := s.object()
				o.ID = planner.ObjectID(project, o.Owner.Address, 1)
				o.Owner.Of, o.Owner.Generation = o.ID, 2
			},
			want: `destroy vm.a: it is not in the spec
  blocked: the state is older (generation 1) than the object's mark (2): nothing is deleted on its word
  > if the object really should go: vmctl destroy --target=vm.a
`,
		},
		{
			name:    "what a removed block lets go of stays, whatever object the record names",
			applied: one,
			spec:    "removed {\n  from    = vm.a\n  destroy = false\n}\n",
			change: func(s *scene) {
				o := s.object()
				o.ID = planner.ObjectID(project, o.Owner.Address, 1)
				o.Owner.Of = o.ID
			},
			want: `forget vm.a: its removed block lets go of it: the object stays as it is, without vmctl's mark
0 unmark vm.a
1 forget vm.a after 0
`,
		},
		{
			name:    "an interrupted step is said and settled",
			applied: one,
			change:  func(s *scene) { s.interrupt("vm.a", "start") },
			want: `found interrupted vm.a: an earlier run began to start it at 2026-05-01 12:00:00 UTC and did not end; it may have left: half of it
0 settle vm.a
`,
		},
		{
			name:    "an interrupted step of an address that nothing knows is settled too",
			applied: one,
			change:  func(s *scene) { s.interrupt("vm.gone", "define") },
			want: `found interrupted vm.gone: an earlier run began to define it at 2026-05-01 12:00:00 UTC and did not end; it may have left: half of it
0 settle vm.gone
`,
		},
		{
			name: "what the host lacks is said before any step",
			spec: one,
			change: func(s *scene) {
				s.system("qemu:///session").inventory.Missing = map[spec.Kind]*providers.Problem{spec.VM: providers.Refuse("no QEMU: install it", nil)}
			},
			want: "create vm.a: it does not exist\n  blocked: no QEMU: install it\n",
		},
		{
			name:    "and is no reason not to destroy",
			applied: one,
			spec:    "# empty\n",
			change: func(s *scene) {
				s.system("qemu:///session").inventory.Missing = map[spec.Kind]*providers.Problem{spec.VM: providers.Refuse("no QEMU: install it", nil)}
			},
			want: "destroy vm.a: it is not in the spec\n0 stop vm.a\n1 delete vm.a after 0\n",
		},
		{
			name:    "a paused VM that needs a restart for an edit says so",
			applied: one,
			spec:    "vm \"a\" {\n  memory = \"512MiB\"\n  lifecycle {\n    on_change = { memory = \"live\" }\n  }\n}\n",
			change: func(s *scene) {
				off := false
				s.object().Running, s.object().State = &off, providers.StatePaused
			},
			want: `start vm.a: it is paused
  memory 256MiB -> 512MiB, restart
  blocked: memory needs a restart (the guest sees it at its next start), and on_change allows at most live
  > add to the block of vm.a: lifecycle { on_change = { memory = "restart" } }
found drift vm.a: it is paused, and vmctl left it running
`,
		},
		{
			name:    "a start that was never seen ready is waited for again",
			applied: one,
			change: func(s *scene) {
				r := s.state.Records[addr(s.t, "vm.a")]
				r.Conditions = nil
				s.state.Records[addr(s.t, "vm.a")] = r
			},
			want: "start vm.a: it runs, and was never ready since it started\n0 start vm.a\n1 wait_ssh vm.a after 0\n",
		},
		{
			name:    "a record that is older than what is there and wanted catches up",
			applied: one,
			change: func(s *scene) {
				s.config = load(s.t, "vm \"a\" {\n  memory = \"512MiB\"\n}\n")
				m := s.object().Attrs.AsValueMap()
				m["memory"] = cty.NumberIntVal(512 << 20)
				s.object().Attrs, s.object().Owner.Generation = cty.ObjectVal(m), 2
				s.interrupt("vm.a", "redefine")
			},
			want: `update vm.a: the recorded state is updated
found drift vm.a: memory is 512MiB, and vmctl applied 256MiB
found interrupted vm.a: an earlier run began to redefine it at 2026-05-01 12:00:00 UTC and did not end; it may have left: half of it
0 record vm.a
1 settle vm.a after 0
`,
		},
		{
			name:    "a record that is older than what is there and wanted catches up with a start",
			applied: one,
			change: func(s *scene) {
				s.config = load(s.t, "vm \"a\" {\n  memory = \"512MiB\"\n}\n")
				m := s.object().Attrs.AsValueMap()
				m["memory"] = cty.NumberIntVal(512 << 20)
				s.object().Attrs = cty.ObjectVal(m)
				s.off()
			},
			want: `start vm.a: it is off
found drift vm.a: memory is 512MiB, and vmctl applied 256MiB; it is off, and vmctl left it running
0 start vm.a
1 wait_ssh vm.a after 0
2 record vm.a after 0,1
`,
		},
		{
			name:    "what a web used is deleted after web stopped using it",
			applied: "vm \"web\" {\n  depends_on = [vm.old]\n}\nvm \"old\" {}\n",
			spec:    "vm \"web\" {\n  cpus = 1\n}\n",
			want: `destroy vm.old: it is not in the spec
restart vm.web: cpus: the guest sees it at its next start
  cpus 2 -> 1, restart
0 stop vm.web
1 stop vm.old after 0
2 delete vm.old after 0,1
3 redefine vm.web after 0
4 start vm.web after 3
5 wait_ssh vm.web after 4
`,
		},
		{
			name:    "ports that move up within one for_each go from the top",
			applied: ports("8080", "8081"),
			spec:    ports("8081", "8082"),
			want: `restart vm.w["a"]: port_forward: the guest sees it at its next start
  port_forward [{guest 80, host 8080, host_ip 127.0.0.1, protocol tcp}] -> [{guest 80, host 8081, host_ip 127.0.0.1, protocol tcp}], restart
restart vm.w["b"]: port_forward: the guest sees it at its next start
  port_forward [{guest 80, host 8081, host_ip 127.0.0.1, protocol tcp}] -> [{guest 80, host 8082, host_ip 127.0.0.1, protocol tcp}], restart
0 stop vm.w["b"]
1 detach vm.w["b"] after 0
2 redefine vm.w["b"] after 1
3 start vm.w["b"] after 2
4 wait_ssh vm.w["b"] after 3
5 stop vm.w["a"] after 0,1,2,3,4
6 redefine vm.w["a"] after 0,1,2,3,4,5
7 start vm.w["a"] after 0,1,2,3,4,6
8 wait_ssh vm.w["a"] after 0,1,2,3,4,7
`,
		},
		{
			name:    "as many at a time as the rollout says",
			applied: rollout("2", "2"),
			spec:    rollout("2", "1"),
			want: `restart vm.w["a"]: cpus: the guest sees it at its next start
  cpus 2 -> 1, restart
restart vm.w["b"]: cpus: the guest sees it at its next start
  cpus 2 -> 1, restart
restart vm.w["c"]: cpus: the guest sees it at its next start
  cpus 2 -> 1, restart
0 stop vm.w["a"]
1 stop vm.w["b"]
2 redefine vm.w["a"] after 0
3 redefine vm.w["b"] after 1
4 start vm.w["a"] after 2
5 start vm.w["b"] after 3
6 wait_ssh vm.w["a"] after 4
7 stop vm.w["c"] after 0,2,4,6
8 redefine vm.w["c"] after 0,2,4,6,7
9 start vm.w["c"] after 0,2,4,6,8
10 wait_ssh vm.w["b"] after 5
11 wait_ssh vm.w["c"] after 0,2,4,6,9
`,
		},
		{
			name:    "two VMs that exchange their ports",
			applied: ports("8080", "8081"),
			spec:    ports("8081", "8080"),
			want: `restart vm.w["a"]: port_forward: the guest sees it at its next start
  port_forward [{guest 80, host 8080, host_ip 127.0.0.1, protocol tcp}] -> [{guest 80, host 8081, host_ip 127.0.0.1, protocol tcp}], restart
restart vm.w["b"]: port_forward: the guest sees it at its next start
  port_forward [{guest 80, host 8081, host_ip 127.0.0.1, protocol tcp}] -> [{guest 80, host 8080, host_ip 127.0.0.1, protocol tcp}], restart
0 stop vm.w["a"]
1 stop vm.w["b"]
2 detach vm.w["a"] after 0
3 detach vm.w["b"] after 1
4 redefine vm.w["a"] after 2,3
5 redefine vm.w["b"] after 2,3
6 start vm.w["a"] after 4
7 start vm.w["b"] after 5
8 wait_ssh vm.w["a"] after 6
9 wait_ssh vm.w["b"] after 7
`,
		},
		{
			name:    "two VMs that exchange their names, and may be replaced",
			applied: "vm \"a\" {\n  name = \"x\"\n}\nvm \"b\" {\n  name = \"y\"\n}\n",
			spec:    "vm \"a\" {\n  name = \"y\"\n}\nvm \"b\" {\n  name = \"x\"\n}\n",
			change: func(s *scene) {
				s.options.Allow.Replace = map[spec.Address]bool{addr(s.t, "vm.a"): true, addr(s.t, "vm.b"): true}
			},
			want: `replace vm.a: name: cannot change after it was made
  name x -> y, replace
replace vm.b: name: cannot change after it was made
  name y -> x, replace
0 stop vm.a
1 stop vm.b
2 delete vm.a after 0
3 delete vm.b after 1
4 define vm.a after 2,3
5 define vm.b after 2,3
6 start vm.a after 4
7 start vm.b after 5
8 wait_ssh vm.a after 6
9 wait_ssh vm.b after 7
`,
		},
		{
			name:    "within one for_each: by default they go down together",
			applied: "vm \"w\" {\n  for_each = { a = \"x\", b = \"y\" }\n  name     = each.value\n}\n",
			spec:    "vm \"w\" {\n  for_each = { a = \"y\", b = \"x\" }\n  name     = each.value\n}\n",
			change: func(s *scene) {
				s.options.Allow.Replace = map[spec.Address]bool{addr(s.t, `vm.w["a"]`): true, addr(s.t, `vm.w["b"]`): true}
			},
			want: `replace vm.w["a"]: name: cannot change after it was made
  name x -> y, replace
replace vm.w["b"]: name: cannot change after it was made
  name y -> x, replace
0 stop vm.w["a"]
1 stop vm.w["b"]
2 delete vm.w["a"] after 0
3 delete vm.w["b"] after 1
4 define vm.w["a"] after 2,3
5 define vm.w["b"] after 2,3
6 start vm.w["a"] after 4
7 start vm.w["b"] after 5
8 wait_ssh vm.w["a"] after 6
9 wait_ssh vm.w["b"] after 7
`,
		},
		{
			name:    "and are blocked where a rollout is written down",
			applied: "vm \"w\" {\n  for_each = { a = \"x\", b = \"y\" }\n  name     = each.value\n  rollout {\n    max_unavailable = 1\n  }\n}\n",
			spec:    "vm \"w\" {\n  for_each = { a = \"y\", b = \"x\" }\n  name     = each.value\n  rollout {\n    max_unavailable = 1\n  }\n}\n",
			change: func(s *scene) {
				s.options.Allow.Replace = map[spec.Address]bool{addr(s.t, `vm.w["a"]`): true, addr(s.t, `vm.w["b"]`): true}
			},
			want: `replace vm.w["a"]: name: cannot change after it was made
  name x -> y, replace
  blocked: vm.w["b"] and vm.w["a"] have to be down at once, since one frees what the other takes: rollout.max_unavailable = 1 forbids that
  > set a larger rollout.max_unavailable in the block of vm.w, or remove the rollout block, for this apply
replace vm.w["b"]: name: cannot change after it was made
  name y -> x, replace
  blocked: name x is held by vm.w["a"], and this plan does not change that
  > see what the plan says of vm.w["a"]
`,
		},
		{
			name:    "a written rollout goes before the removal of what is only referred to",
			applied: rollout("1", "1") + "vm \"d\" {}\n",
			spec:    strings.Replace(rollout("1", "2"), "\n  rollout", "\n  depends_on = [vm.d]\n  rollout", 1) + "vm \"d\" {\n  name = \"x\"\n}\n",
			change: func(s *scene) {
				s.options.Allow.Replace = map[spec.Address]bool{addr(s.t, "vm.d"): true}
				for a, r := range s.state.Records {
					if a.Name == "w" {
						r.Uses = []spec.Address{addr(s.t, "vm.d")}
						s.state.Records[a] = r
					}
				}
			},
			want: `replace vm.d: name: cannot change after it was made
  name demo.d -> x, replace
restart vm.w["a"]: cpus: the guest sees it at its next start
  cpus 1 -> 2, restart
restart vm.w["b"]: cpus: the guest sees it at its next start
  cpus 1 -> 2, restart
restart vm.w["c"]: cpus: the guest sees it at its next start
  cpus 1 -> 2, restart
0 stop vm.w["a"]
1 stop vm.d after 0
2 delete vm.d after 0,1
3 define vm.d after 2
4 start vm.d after 3
5 wait_ssh vm.d after 4
6 redefine vm.w["a"] after 0,3,4,5
7 start vm.w["a"] after 3,4,5,6
8 wait_ssh vm.w["a"] after 3,4,5,7
9 stop vm.w["b"] after 0,6,7,8
10 redefine vm.w["b"] after 0,3,4,5,6,7,8,9
11 start vm.w["b"] after 0,3,4,5,6,7,8,10
12 wait_ssh vm.w["b"] after 0,3,4,5,6,7,8,11
13 stop vm.w["c"] after 9,10,11,12
14 redefine vm.w["c"] after 3,4,5,9,10,11,12,13
15 start vm.w["c"] after 3,4,5,9,10,11,12,14
16 wait_ssh vm.w["c"] after 3,4,5,9,10,11,12,15
`,
		},
		{
			name:    "a name that changes hands",
			applied: "vm \"a\" {\n  name = \"x\"\n}\n",
			spec:    "vm \"b\" {\n  name = \"x\"\n}\n",
			want: `destroy vm.a: it is not in the spec
create vm.b: it does not exist
0 stop vm.a
1 delete vm.a after 0
2 define vm.b after 1
3 start vm.b after 2
4 wait_ssh vm.b after 3
`,
		},
		{
			name:    "also from one that gets another",
			applied: "vm \"z\" {\n  name = \"x\"\n}\n",
			spec:    "vm \"b\" {\n  name = \"x\"\n}\nvm \"z\" {\n  name = \"y\"\n}\n",
			change: func(s *scene) {
				s.options.Allow.Replace = map[spec.Address]bool{addr(s.t, "vm.z"): true}
			},
			want: `create vm.b: it does not exist
replace vm.z: name: cannot change after it was made
  name x -> y, replace
0 stop vm.z
1 delete vm.z after 0
2 define vm.b after 1
3 define vm.z after 1
4 start vm.b after 2
5 start vm.z after 3
6 wait_ssh vm.b after 4
7 wait_ssh vm.z after 5
`,
		},
		{
			name:    "a name that nobody has chosen changes hands, too",
			applied: one,
			spec:    "vm \"b\" {\n  name = \"demo.a\"\n}\n",
			want: `destroy vm.a: it is not in the spec
create vm.b: it does not exist
0 stop vm.a
1 delete vm.a after 0
2 define vm.b after 1
3 start vm.b after 2
4 wait_ssh vm.b after 3
`,
		},
		{
			name:    "but not from one that is replaced and has it again",
			applied: one,
			spec:    strings.Replace(one, "memory", "accel  = \"tcg\"\n  memory", 1) + "vm \"b\" {\n  name = \"demo.a\"\n}\n",
			change: func(s *scene) {
				s.options.Allow.Replace = map[spec.Address]bool{addr(s.t, "vm.a"): true}
			},
			want: `replace vm.a: accel: cannot change after it was made
  accel auto -> tcg, replace
  blocked: vm.a and vm.b both want name demo.a
  > change one of them
create vm.b: it does not exist
  blocked: vm.a and vm.b both want name demo.a
  > change one of them
`,
		},
		{
			name: "what is needed to make it is not there",
			spec: "vm \"a\" {\n  image = \"nothing.qcow2\"\n}\n",
			want: "create vm.a: it does not exist\n  blocked: `image.source` of `vm.a` is \"nothing.qcow2\", which cannot be used: no such file or directory. Relative paths are read from the folder of the spec.\n",
		},
		{
			name:    "and is not needed for what is there",
			applied: "vm \"a\" {\n  image = \"nothing.qcow2\"\n}\n",
		},
		{
			name:    "but not from one that keeps it",
			applied: "vm \"z\" {\n  name = \"x\"\n}\n",
			spec:    "vm \"b\" {\n  name = \"x\"\n}\n",
			change: func(s *scene) {
				s.options.Scope.Targets = []spec.Address{addr(s.t, "vm.b")}
			},
			want: `create vm.b: it does not exist
  blocked: name x is held by vm.z, and this plan does not change that
  > take vm.z in: leave out --target and --exclude, or name it, too: --target=vm.z
`,
		},
		{
			name: "two blocks that say different things about one system",
			spec: "provider \"libvirt\" \"a\" {}\nprovider \"libvirt\" \"b\" {\n  pool = \"images\"\n}\n" +
				"vm \"a\" {\n  provider = provider.libvirt.a\n}\nvm \"b\" {\n  provider = provider.libvirt.b\n}\n",
			want: "error: provider.libvirt.a and provider.libvirt.b lead to the same system and say different things about it: let all resources use one of them\n",
		},
		{
			name:    "a pool for new files is no other system",
			applied: one,
			spec:    "provider \"libvirt\" \"default\" {\n  pool = \"images\"\n}\n" + one,
			want:    "",
		},
		{
			name: "two that want one port",
			spec: "vm \"a\" {\n  port_forward {\n    guest = 80\n    host = 8080\n  }\n}\nvm \"b\" {\n  port_forward {\n    guest = 80\n    host = 8080\n  }\n}\n",
			want: `create vm.a: it does not exist
  blocked: vm.a and vm.b both want host port 127.0.0.1:8080
  > change one of them
create vm.b: it does not exist
  blocked: vm.a and vm.b both want host port 127.0.0.1:8080
  > change one of them
`,
		},
		{
			name: "one that wants a port on every address, and one that wants it on one",
			spec: "vm \"a\" {\n  port_forward {\n    guest = 80\n    host = 8080\n    host_ip = \"0.0.0.0\"\n  }\n}\n" +
				"vm \"b\" {\n  port_forward {\n    guest = 80\n    host = 8080\n  }\n}\n",
			want: `create vm.a: it does not exist
  blocked: vm.a wants host port 0.0.0.0:8080 and vm.b wants host port 127.0.0.1:8080, and only one can have both
  > change one of them
create vm.b: it does not exist
  blocked: vm.a wants host port 0.0.0.0:8080 and vm.b wants host port 127.0.0.1:8080, and only one can have both
  > change one of them
`,
		},
		{
			name:    "a port on one address is freed before it is taken on every one",
			applied: "vm \"b\" {\n  port_forward {\n    guest = 80\n    host = 8080\n  }\n}\n",
			spec:    "vm \"a\" {\n  port_forward {\n    guest = 80\n    host = 8080\n    host_ip = \"0.0.0.0\"\n  }\n}\n",
			want: `create vm.a: it does not exist
destroy vm.b: it is not in the spec
0 stop vm.b
1 delete vm.b after 0
2 define vm.a after 1
3 start vm.a after 2
4 wait_ssh vm.a after 3
`,
		},
		{
			name: "a port that another holds on every address blocks",
			spec: "vm \"b\" {\n  port_forward {\n    guest = 80\n    host = 8080\n  }\n}\n",
			change: func(s *scene) {
				s.system("qemu:///session").inventory.Objects = []providers.Object{{
					Kind: spec.VM, ID: "1234", Name: "other", Holds: []providers.Claim{{Kind: providers.ClaimPort, Key: "0.0.0.0:8080"}},
				}}
			},
			want: `create vm.b: it does not exist
  blocked: host port 127.0.0.1:8080 is held by libvirt vm "other" (1234) as 0.0.0.0:8080
  > choose another in the block of vm.b, or free it first
`,
		},
		{
			name:    "a change that cannot be made now is blocked, and nothing else",
			applied: "vm \"a\" {\n  memory = \"256MiB\"\n}\nvm \"b\" {}\n",
			spec:    "vm \"a\" {\n  memory = \"512MiB\"\n}\nvm \"b\" {}\n",
			change: func(s *scene) {
				s.system("qemu:///session").refusal = providers.Refuse("its memory is saved", providers.Say("start it first"))
			},
			want: `restart vm.a: memory: the guest sees it at its next start
  memory 256MiB -> 512MiB, restart
  blocked: its memory is saved
  > start it first
`,
		},
		{
			name:    "a VM that is on its way down is waited for, and started",
			applied: one,
			change: func(s *scene) {
				o, off := s.object(), false
				o.Running, o.State = &off, providers.StateEnding
			},
			want: `start vm.a: it is ending
found drift vm.a: it is ending, and vmctl left it running
0 stop vm.a
1 start vm.a after 0
2 wait_ssh vm.a after 1
`,
		},
		{
			name:    "and is waited for where it is wanted off",
			applied: one,
			spec:    "vm \"a\" {\n  memory = \"256MiB\"\n  running = false\n}\n",
			change: func(s *scene) {
				o, off := s.object(), false
				o.Running, o.State = &off, providers.StateEnding
			},
			want: `stop vm.a: it is ending, and running = false
found drift vm.a: it is ending, and vmctl left it running
0 stop vm.a
`,
		},
		{
			name:    "new keys by command, and no edit beside",
			applied: one,
			spec:    strings.Replace(one, "256MiB", "512MiB", 1),
			change: func(s *scene) {
				s.options.Rekey = map[spec.Address]bool{addr(s.t, "vm.a"): true}
			},
			want: `restart vm.a: ssh.keys: the guest sees it at its next start
  keys restart
0 stop vm.a
1 redefine vm.a after 0
2 start vm.a after 1
3 wait_ssh vm.a after 2
`,
		},
		{
			name:    "are refused where vmctl makes none",
			applied: one,
			change: func(s *scene) {
				s.options.Rekey = map[spec.Address]bool{addr(s.t, "vm.a"): true}
				keyless := s.options.Types.Systems["libvirt"]
				keyless.Rekey = nil
				s.options.Types.Systems["libvirt"] = keyless
			},
			want: `update vm.a: ssh.keys: vmctl gives it no keys
  keys refused
  refused: ssh.keys: vmctl gives it no keys
`,
		},
		{
			name:    "what is only half there is made whole",
			applied: one,
			change: func(s *scene) {
				s.object().Findings = []providers.Finding{{Kind: providers.FindPartial, Evidence: []string{"it was undefined while it ran"}}}
			},
			want: `update vm.a: it is only half there: made whole again
found partial vm.a: it was undefined while it ran
0 redefine vm.a
`,
		},
		{
			name:    "a port that changes hands is freed first",
			applied: "vm \"a\" {\n  port_forward {\n    guest = 80\n    host = 8080\n  }\n}\n",
			spec:    "vm \"b\" {\n  port_forward {\n    guest = 80\n    host = 8080\n  }\n}\n",
			want: `destroy vm.a: it is not in the spec
create vm.b: it does not exist
0 stop vm.a
1 delete vm.a after 0
2 define vm.b after 1
3 start vm.b after 2
4 wait_ssh vm.b after 3
`,
		},
		{
			name:    "a port that a running VM got by auto blocks",
			applied: oneForward("a", "auto"), spec: oneForward("a", "auto") + oneForward("b", "8080"),
			change: got8080("vm.a"),
			want: `create vm.b: it does not exist
  blocked: host port 127.0.0.1:8080 is held by vm.a, and this plan does not change that
  > choose another in the block of vm.b, or free it first
`,
		},
		{
			name:    "a port that a VM got by auto is free once that one goes down",
			applied: oneForward("a", "auto"), spec: strings.Replace(oneForward("a", "auto"), "{\n", "{\n  memory = \"512MiB\"\n", 1) + oneForward("b", "8080"),
			change: got8080("vm.a"),
			want: `restart vm.a: memory: the guest sees it at its next start
  memory 2GiB -> 512MiB, restart
create vm.b: it does not exist
0 stop vm.a
1 define vm.b after 0
2 redefine vm.a after 0
3 start vm.a after 2
4 start vm.b after 1
5 wait_ssh vm.a after 3
6 wait_ssh vm.b after 4
`,
		},
		{
			name:    "a VM that is off does not start on a port that another got by auto",
			applied: oneForward("a", "auto") + strings.Replace(oneForward("b", "8080"), "{\n", "{\n  running = false\n", 1),
			spec:    oneForward("a", "auto") + oneForward("b", "8080"),
			change:  got8080("vm.a"),
			want: `start vm.b: it is off
  blocked: host port 127.0.0.1:8080 is held by vm.a, and this plan does not change that
  > choose another in the block of vm.b, or free it first
`,
		},
		{
			name: "a port that another holds blocks and names the holder",
			spec: "vm \"b\" {\n  port_forward {\n    guest = 80\n    host = 8080\n  }\n}\n",
			change: func(s *scene) {
				s.system("qemu:///session").inventory.Objects = []providers.Object{{
					Kind: spec.VM, ID: "1234", Name: "other", Holds: []providers.Claim{{Kind: "host port", Key: "127.0.0.1:8080"}},
				}}
			},
			want: `create vm.b: it does not exist
  blocked: host port 127.0.0.1:8080 is held by libvirt vm "other" (1234)
  > choose another in the block of vm.b, or free it first
`,
		},
		{
			name:    "a VM that was stopped by command is off, and that is no drift",
			applied: one,
			change: func(s *scene) {
				s.options.Running = map[spec.Address]bool{addr(s.t, "vm.a"): false}
			},
			want: "stop vm.a: it runs, and a stop was asked for\n0 stop vm.a\n",
		},
		{
			name: "a stop by command makes nothing to stop it",
			spec: one,
			change: func(s *scene) {
				s.options.Running = map[spec.Address]bool{addr(s.t, "vm.a"): false}
			},
			want: "",
		},
		{
			name: "a restart by command makes nothing to restart it",
			spec: one,
			change: func(s *scene) {
				s.options.Restart = map[spec.Address]bool{addr(s.t, "vm.a"): true}
			},
			want: "",
		},
		{
			name:    "a restart by command",
			applied: one,
			change: func(s *scene) {
				s.options.Restart = map[spec.Address]bool{addr(s.t, "vm.a"): true}
			},
			want: `restart vm.a: a restart was asked for
0 stop vm.a
1 start vm.a after 0
2 wait_ssh vm.a after 1
`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, test.applied)
			if test.spec != "" {
				s.config = load(t, test.spec)
			}
			if test.change != nil {
				test.change(s)
			}
			got := ""
			if p, err := s.plan(); err != nil {
				got = "error: " + err.Error() + "\n"
			} else {
				got = text(p)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// A VM that somebody renamed keeps that name, and its record learns of it.
func TestPlanForWhatWasRenamed(t *testing.T) {
	s := after(t, one)
	s.object().Name = "theirs"
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	want := "update vm.a: the recorded state is updated\nfound drift vm.a: its name is \"theirs\", and vmctl applied \"demo.a\"\n0 record vm.a\ntheirs"
	if got := text(p) + p.Changes[0].Name; got != want {
		t.Errorf("plan\n%s", got)
	}
}

// overlaid returns attrs with one attribute replaced.
func overlaid(attrs cty.Value, name string, v cty.Value) cty.Value {
	m := attrs.AsValueMap()
	m[name] = v
	return cty.ObjectVal(m)
}

func rollout(most, cpus string) string {
	return `vm "w" {
  for_each = toset(["a", "b", "c"])
  cpus     = ` + cpus + `
  rollout {
    max_unavailable = ` + most + `
  }
}
`
}

// oneForward returns a VM with one forwarded port.
func oneForward(label, host string) string {
	return "vm \"" + label + "\" {\n  port_forward {\n    guest = 80\n    host  = \"" + host + "\"\n  }\n}\n"
}

// got8080 lets the kernel have chosen the port 8080 for a VM.
func got8080(address string) func(*scene) {
	return func(s *scene) {
		id := providers.ID(s.state.Records[addr(s.t, address)].ID)
		for i, o := range s.system("qemu:///session").inventory.Objects {
			if o.ID == id {
				s.system("qemu:///session").inventory.Objects[i].HoldsUp = []providers.Claim{{Kind: providers.ClaimPort, Key: "127.0.0.1:8080"}}
			}
		}
	}
}

func ports(a, b string) string {
	return `vm "w" {
  for_each = { a = "` + a + `", b = "` + b + `" }
  port_forward {
    guest = 80
    host  = each.value
  }
}
`
}

// elsewhere lets the spec name a second VM in the system, so that it is observed.
func (s *scene) elsewhere() {
	s.config = load(s.t, "vm \"b\" {\n  running = false\n}\n")
	a := addr(s.t, "vm.b")
	r, _ := s.config.Resource(a)
	s.state.Records[a] = state.Record{
		Kind: a.Kind, Provider: r.Provider, Settings: testType().Resolve(s.provider(r.Provider)), ID: "b", Name: "demo.b",
		Generation: 1, Values: r.Want, Policy: r.Policy,
	}
	off := false
	sys := s.system("qemu:///session")
	sys.inventory.Objects = append(sys.inventory.Objects, providers.Object{
		Kind: a.Kind, ID: "b", Name: "demo.b", Running: &off, State: providers.StateOff,
		Owner: &providers.Mark{ID: project.ID, Address: a, Of: "b", Generation: 1},
	})
}

// row A57: a name is looked up exactly, never as a pattern.
func TestNameIsNoPattern(t *testing.T) {
	s := after(t, "")
	s.config = load(t, "vm \"x\" {\n  name = \"a.b\"\n}\n")
	s.system("qemu:///session").inventory.Objects = []providers.Object{{Kind: spec.VM, ID: "1", Name: "axb"}}
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Changes[0]; got.Action != providers.Create || got.Blocked != nil {
		t.Errorf("a.b with axb in the system: %s, blocked %v; want a free create", got.Action, got.Blocked)
	}
}

// row A41: different addresses and projects have different names.
func TestObjectNamesDiffer(t *testing.T) {
	projects := []providers.Project{
		{Name: "a-b", ID: "x"},
		{Name: "a", ID: "x"},
		{Name: "a", ID: "x", Env: "b"},
		{Name: "default", ID: "x"},
	}
	addresses := []spec.Address{
		{Kind: spec.VM, Name: "c"},
		{Kind: spec.VM, Name: "b-c"},
		{Kind: spec.VM, Name: "c", Key: "a"},
		{Kind: spec.VM, Name: "c", Key: "A"},
		{Kind: spec.VM, Name: "c", Key: "feature/auth"},
		{Kind: spec.VM, Name: "c", Key: "feature=2Fauth"},
		{Kind: spec.VM, Name: "c", Key: "feature.auth"},
		{Kind: spec.VM, Name: "c", Key: "repo-default-cfg"},
		{Kind: spec.VM, Name: "c", Key: "é"},
		{Kind: spec.VM, Name: "c_a"},
	}
	names, ids := map[string]string{}, map[providers.ID]string{}
	for _, p := range projects {
		for _, a := range addresses {
			who := p.Name + "+" + p.Env + " " + a.String()
			name := planner.ObjectName(p, a)
			if other, ok := names[name]; ok {
				t.Errorf("%s and %s are both named %q", who, other, name)
			}
			names[name] = who
			if len(name) == 0 || name[0] != p.Name[0] {
				t.Errorf("%s is named %q, which does not begin with the project's name", who, name)
			}
		}
	}
	for _, id := range []string{"", "first", "second"} {
		p := projects[0]
		p.DataDirID = id
		for replaced := range 3 {
			for _, a := range addresses {
				id := planner.ObjectID(p, a, replaced)
				if other, ok := ids[id]; ok {
					t.Errorf("%s and %s both have the ID %s", a, other, id)
				}
				ids[id] = a.String()
			}
		}
	}
}

// row X17, row E22: the same inputs give the same bytes.
func TestPlanIsDeterministic(t *testing.T) {
	applied := "vm \"w\" {\n  for_each = toset([\"a\", \"b\", \"c\", \"d\"])\n}\nvm \"x\" {\n  depends_on = [vm.w]\n}\n"
	changed := "vm \"w\" {\n  for_each = toset([\"b\", \"c\", \"d\", \"e\"])\n  cpus = 1\n}\nvm \"y\" {\n  depends_on = [vm.w]\n}\n"
	first := ""
	for range 50 {
		s := after(t, applied)
		s.config = load(t, changed)
		s.interrupt("vm.x", "start")
		p, err := s.plan()
		if err != nil {
			t.Fatal(err)
		}
		got := text(p)
		if first == "" {
			first = got
		}
		if diff := cmp.Diff(first, got); diff != "" {
			t.Fatalf("another plan of the same inputs (-first +this):\n%s", diff)
		}
	}
}
