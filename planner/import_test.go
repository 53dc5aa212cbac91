package planner_test

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

const imported = one + "import {\n  to = vm.a\n  id = \"theirs\"\n}\n"

// theirs adds a VM that somebody made by hand, and returns it.
func (s *scene) theirs() *providers.Object {
	on := true
	sys := s.system("qemu:///session")
	sys.inventory.Objects = append(sys.inventory.Objects, providers.Object{
		Kind: spec.VM, ID: "1234", Name: "theirs", Running: &on, State: providers.StateRunning, Fingerprint: "theirs",
		Attrs: cty.ObjectVal(map[string]cty.Value{"cpus": cty.NumberIntVal(2), "memory": cty.NumberIntVal(256 << 20)}),
	})
	sys.inventory.Found = map[spec.Address]providers.ID{addr(s.t, "vm.a"): "1234"}
	return &sys.inventory.Objects[len(sys.inventory.Objects)-1]
}

func TestImport(t *testing.T) {
	const asIs = `import vm.a: it is taken over as it is
  mark none -> vm.a, live
`
	for _, test := range []struct {
		name, applied, spec string
		change              func(*scene)
		want                string
	}{
		{name: "as it is", spec: imported, change: func(s *scene) { s.theirs() }, want: asIs + "0 redefine vm.a\n1 wait_ssh vm.a after 0\n"},
		{
			name: "by command", spec: one,
			change: func(s *scene) {
				s.theirs()
				s.options.Imports = map[spec.Address]providers.ID{addr(s.t, "vm.a"): "theirs"}
			},
			want: asIs + "0 redefine vm.a\n1 wait_ssh vm.a after 0\n",
		},
		{
			name: "with an edit that needs a restart", spec: strings.Replace(imported, "256MiB", "512MiB", 1), change: func(s *scene) { s.theirs() },
			want: `restart vm.a: memory: the guest sees it at its next start
  mark none -> vm.a, live
  memory 256MiB -> 512MiB, restart
0 stop vm.a
1 redefine vm.a after 0
2 start vm.a after 1
3 wait_ssh vm.a after 2
`,
		},
		{
			name: "with an edit that applies at once", spec: strings.Replace(imported, "256MiB\"", "512MiB\"\n  running = false", 1),
			change: func(s *scene) {
				o := s.theirs()
				off := false
				o.Running, o.State = &off, providers.StateOff
			},
			want: `update vm.a: mark, memory changed
  mark none -> vm.a, live
  memory 256MiB -> 512MiB, live
0 redefine vm.a
`,
		},
		{
			name: "of one that is off and wanted running", spec: imported,
			change: func(s *scene) {
				o := s.theirs()
				off := false
				o.Running, o.State = &off, providers.StateOff
			},
			want: `start vm.a: it is off
  mark none -> vm.a, live
0 redefine vm.a
1 start vm.a after 0
2 wait_ssh vm.a after 1
`,
		},
		{
			name: "an import replaces nothing", spec: strings.Replace(imported, "memory", "accel  = \"tcg\"\n  memory", 1),
			change: func(s *scene) {
				o := s.theirs()
				m := o.Attrs.AsValueMap()
				m["accel"] = cty.StringVal("kvm")
				o.Attrs = cty.ObjectVal(m)
				s.options.Allow.Replace = map[spec.Address]bool{addr(s.t, "vm.a"): true}
			},
			want: `import vm.a: "theirs" is to be imported
  mark none -> vm.a, live
  accel kvm -> tcg, replace
  blocked: an import replaces nothing: accel: cannot change after it was made
  > write in the block of vm.a what the object has; change it once it is imported
`,
		},
		{
			name: "nor renames it", spec: strings.Replace(imported, "memory", "name = \"mine\"\n  memory", 1), change: func(s *scene) { s.theirs() },
			want: `import vm.a: "theirs" is to be imported
  mark none -> vm.a, live
  name theirs -> mine, replace
  blocked: an import replaces nothing: name: cannot change after it was made
  > write in the block of vm.a what the object has; change it once it is imported
`,
		},
		{
			name: "what does not exist", spec: imported,
			want: `import vm.a: "theirs" is to be imported
  blocked: there is no vm "theirs" in provider.libvirt.default
  > name it as its system does, or leave the import out to have it made
`,
		},
		{
			name: "what could be several, or could not be read", spec: imported,
			change: func(s *scene) {
				s.system("qemu:///session").inventory.Unknown = []providers.Unknown{{Kind: spec.VM, Name: "theirs", Reason: "two domains have this name: use the UUID"}}
			},
			want: `import vm.a: "theirs" is to be imported
  unknown: "theirs" could not be read: two domains have this name: use the UUID
`,
		},
		{
			name: "what may exist, where not all could be listed", spec: imported,
			change: func(s *scene) {
				s.system("qemu:///session").inventory.Partial = map[spec.Kind]*providers.Problem{spec.VM: providers.Refuse("no answer", nil)}
			},
			want: `noop vm.a
  unknown: provider.libvirt.default could not be read: no answer
found unknown vm.a: no answer
`,
		},
		{
			name: "of a run state that could not be read", spec: imported,
			change: func(s *scene) {
				o := s.theirs()
				o.Running, o.Unreadable = nil, map[string]string{"running": "no answer"}
			},
			want: "import vm.a: \"theirs\" is to be imported\n  unknown: its run state could not be read: no answer\n",
		},
		{
			name: "what another project manages", spec: imported,
			change: func(s *scene) {
				s.theirs().Owner = &providers.Mark{ID: "other", Project: "others", Address: addr(s.t, "vm.z"), Of: "1234"}
			},
			want: `import vm.a: "theirs" is to be imported
  blocked: libvirt vm "theirs" (1234) is managed already: its mark names vm.z of project "others" (other)
  > let that project let go of it first, with removed { from = …, destroy = false }, and take the mark off it with the system's own tool
`,
		},
		{
			name: "a copy", spec: imported,
			change: func(s *scene) {
				s.theirs().Owner = &providers.Mark{ID: project.ID, Project: "demo", Address: addr(s.t, "vm.z"), Of: "99"}
			},
			want: `import vm.a: "theirs" is to be imported
  blocked: libvirt vm "theirs" (1234) is a copy: its mark was written for 99
  > take the mark off it with the system's own tool, then import it
found copy vm.z: libvirt vm "theirs" (1234) bears the mark of 99
`,
		},
		{
			name: "what is ours under another address", applied: "vm \"b\" {}\n", spec: imported + "vm \"b\" {}\n",
			change: func(s *scene) {
				s.system("qemu:///session").inventory.Found = map[spec.Address]providers.ID{addr(s.t, "vm.a"): s.objectOf("vm.b").ID}
			},
			want: `import vm.a: "theirs" is to be imported
  blocked: libvirt vm "demo.b" (ID) is the one of vm.b already
  > to rename that: moved { from = vm.b, to = vm.a }, without the import
`,
		},
		{
			name: "what bears the mark of another address, and has no record", applied: "vm \"b\" {}\n", spec: imported,
			change: func(s *scene) {
				s.system("qemu:///session").inventory.Found = map[spec.Address]providers.ID{addr(s.t, "vm.a"): s.objectOf("vm.b").ID}
				s.forget("vm.b")
			},
			want: `import vm.a: "theirs" is to be imported
  blocked: libvirt vm "demo.b" (ID) bears the mark of vm.b
  > put the block of vm.b back, or rename it: moved { from = vm.b, to = vm.a }
found orphan vm.b: libvirt vm "demo.b" (ID) bears our mark; it is in neither the spec nor the state
`,
		},
		{
			name: "one object to two addresses",
			spec: imported + "vm \"b\" {\n  memory = \"256MiB\"\n}\nimport {\n  to = vm.b\n  id = \"1234\"\n}\n",
			change: func(s *scene) {
				s.theirs()
				s.system("qemu:///session").inventory.Found[addr(s.t, "vm.b")] = "1234"
			},
			want: `import vm.a: "theirs" is to be imported
  blocked: libvirt vm "theirs" (1234) is to be imported to vm.b as well
  > leave out one of the two imports
import vm.b: "1234" is to be imported
  blocked: libvirt vm "theirs" (1234) is to be imported to vm.a as well
  > leave out one of the two imports
`,
		},
		{
			name: "an import that was done is done", applied: one, spec: imported,
			change: func(s *scene) {
				s.system("qemu:///session").inventory.Found = map[spec.Address]providers.ID{addr(s.t, "vm.a"): s.object().ID}
			},
		},
		{name: "also when its name is another by now", applied: one, spec: imported},
		{
			name: "and when the record was lost since", applied: one, spec: imported,
			change: func(s *scene) {
				s.forget("vm.a")
				s.system("qemu:///session").inventory.Found = map[spec.Address]providers.ID{addr(s.t, "vm.a"): s.object().ID}
			},
			want: "adopt vm.a: it is ours, and its record was lost\n0 record vm.a\n",
		},
		{
			name: "an address that has an object gets no second one", applied: one, spec: imported, change: func(s *scene) { s.theirs() },
			want: `import vm.a: "theirs" is to be imported
  blocked: vm.a has an object already, libvirt vm "demo.a" (ID), and "theirs" is another
  > import that one to another address, or let go of this one's first: vmctl state rm --force vm.a
`,
		},
		{
			name: "what only has the name of an object that is gone is another", applied: one, spec: imported,
			change: func(s *scene) {
				s.theirs().Name = s.object().Name
				sys := s.system("qemu:///session")
				sys.inventory.Objects = sys.inventory.Objects[1:]
			},
			want: `import vm.a: "theirs" is to be imported
  blocked: vm.a is ID by its record, which is not there, and "theirs" is another
  > import that one to another address, or let go of this one's first: vmctl state rm --force vm.a
`,
		},
		{
			name: "what the state let go of can be imported", applied: one, spec: imported,
			change: func(s *scene) {
				o := s.object()
				o.Owner = nil
				s.forget("vm.a")
				s.state.Forgotten = map[string]spec.Address{string(o.ID): addr(s.t, "vm.a")}
				s.system("qemu:///session").inventory.Found = map[spec.Address]providers.ID{addr(s.t, "vm.a"): o.ID}
			},
			want: asIs + "0 redefine vm.a\n1 wait_ssh vm.a after 0\n",
		},
		{
			name: "a destruction imports nothing first", spec: imported,
			change: func(s *scene) { s.theirs(); s.options.Destroy = true },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, test.applied)
			s.config = load(t, test.spec)
			if test.change != nil {
				test.change(s)
			}
			s.check(test.want)
			asked := providers.ID("")
			for _, k := range s.system("qemu:///session").known {
				if k.Address.String() == "vm.a" && k.Import != "" {
					asked = k.Import
				}
			}
			if want := (map[bool]providers.ID{false: "theirs"})[s.options.Destroy]; asked != want {
				t.Errorf("the provider was asked for %q, want %q", asked, want)
			}
		})
	}
}

// An imported object has generation 1, its own ID and its own name.
func TestImportedIdentity(t *testing.T) {
	s := after(t, "")
	s.config = load(t, imported)
	s.theirs()
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	if c := p.Changes[0]; c.ID != "1234" || c.Name != "theirs" || c.Generation != 1 || c.Replaced != 0 {
		t.Errorf("ID %s, name %s, generation %d, replaced %d", c.ID, c.Name, c.Generation, c.Replaced)
	}
}
