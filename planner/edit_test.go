package planner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// Edits of which the block writes neither side.
func TestEdits(t *testing.T) {
	const keeping = "disk \"d\" {\n  size = \"1GiB\"\n}\n"
	const raw = "disk \"d\" {\n  size = \"1GiB\"\n  format = \"raw\"\n  lifecycle {\n    on_change = { format = \"replace\" }\n  }\n}\n"
	const provided = "provider \"libvirt\" \"default\" {\n  uri = \"qemu:///session\"\n}\n"
	for _, test := range []struct {
		name, applied, spec string
		change              func(*scene)
		want                string
	}{
		{
			name: "a mark that somebody took off is put back", applied: one,
			change: func(s *scene) { s.object().Owner = nil },
			want: `update vm.a: mark: somebody took its owner mark off: it is marked again
  mark none -> vm.a, live
0 redefine vm.a
`,
		},
		{
			name: "a disk that a running VM has is replaced", applied: keeping + with("a", "disk.d"), spec: raw + with("a", "disk.d"),
			want: `replace disk.d: format: cannot change after it was made
  format qcow2 -> raw, replace
restart vm.a: additional_disk: disk.d is replaced
  additional_disk [{disk disk.d}] -> [{disk disk.d}], restart
0 stop vm.a
1 detach vm.a after 0
2 delete disk.d after 0,1
3 define disk.d after 2
4 redefine vm.a after 1,3
5 start vm.a after 3,4
6 wait_ssh vm.a after 3,5
`,
		},
		{
			name: "a disk that a VM has is made again", applied: keeping + with("a", "disk.d"),
			change: func(s *scene) { s.lose("disk.d") },
			want: `create disk.d: it is gone: made again
restart vm.a: additional_disk: disk.d is made again
  additional_disk [{disk disk.d}] -> [{disk disk.d}], restart
found missing disk.d: the state records ID, and provider.libvirt.default does not list it
0 stop vm.a
1 define disk.d
2 redefine vm.a after 0,1
3 start vm.a after 1,2
4 wait_ssh vm.a after 1,3
disk.d is called demo.d
`,
		},
		{
			name: "a disk is replaced, and its VM gets one more", applied: keeping + with("a", "disk.d"),
			spec: raw + "disk \"e\" {\n  size = \"1GiB\"\n}\n" + with("a", "disk.d", "disk.e"),
			want: `replace disk.d: format: cannot change after it was made
  format qcow2 -> raw, replace
create disk.e: it does not exist
restart vm.a: additional_disk: disk.d is replaced
  additional_disk [{disk disk.d}] -> [{disk disk.d}, {disk disk.e}], restart
0 stop vm.a
1 detach vm.a after 0
2 delete disk.d after 0,1
3 define disk.d after 2
4 define disk.e
5 redefine vm.a after 1,3,4
6 start vm.a after 3,4,5
7 wait_ssh vm.a after 3,4,6
disk.e is called demo.e
`,
		},
		{
			name: "a digest that nobody wrote, and the object has", applied: imageOf(""), change: shownImage,
		},
		{
			name: "a digest that is written, and the object has it", applied: imageOf(""), spec: imageOf("a"), change: shownImage,
			want: "update vm.a: the recorded state is updated\n0 record vm.a\n",
		},
		{
			name: "a digest that is not written any more", applied: imageOf("a"), spec: imageOf(""), change: shownImage,
			want: "update vm.a: the recorded state is updated\n0 record vm.a\n",
		},
		{
			name: "a digest that is not written, below a block that may be left out", applied: imageOf(""), change: func(s *scene) {
				shownImage(s)
				kinds := s.options.Types.Systems["libvirt"].Kinds[spec.VM]
				delete(kinds, "image.sha256")
				kinds["image"] = providers.Attribute{Optional: true}
			},
			want: `replace vm.a: image.sha256: cannot change after it was made
  image.sha256 aaaaaaaaaaaa... -> none, replace
  blocked: image.sha256 needs a replace (cannot change after it was made), and on_change allows at most restart
  > add to the block of vm.a: lifecycle { on_change = { image = "replace" } }
  > or allow it once: --allow-replace=vm.a
found drift vm.a: image.sha256 is aaaaaaaaaaaa..., and vmctl applied none
`,
		},
		{
			name: "a digest that is written, and the object has another", applied: imageOf(""), spec: imageOf("b"), change: shownImage,
			want: `replace vm.a: image.sha256: cannot change after it was made
  image.sha256 aaaaaaaaaaaa... -> bbbbbbbbbbbb..., replace
  blocked: image.sha256 needs a replace (cannot change after it was made), and on_change allows at most restart
  > add to the block of vm.a: lifecycle { on_change = { image = "replace" } }
  > or allow it once: --allow-replace=vm.a
`,
		},
		{
			name: "a provider that leads elsewhere by now", applied: one,
			spec: "provider \"libvirt\" \"default\" {\n  uri = \"qemu:///system\"\n}\n" + one,
			want: `update vm.a: provider: an object does not move to another system: destroy it first, then apply
  provider "provider.libvirt.default (uri qemu:///session)" -> "provider.libvirt.default (uri qemu:///system)", refused
  refused: provider: an object does not move to another system: destroy it first, then apply
  > vmctl destroy --target=vm.a
  > then: vmctl apply
`,
		},
		{
			name: "another provider", applied: one,
			spec: "provider \"libvirt\" \"far\" {\n  uri = \"qemu:///system\"\n}\nvm \"a\" {\n  provider = provider.libvirt.far\n  memory = \"256MiB\"\n}\n",
			want: `update vm.a: provider: an object does not move to another system: destroy it first, then apply
  provider provider.libvirt.default -> provider.libvirt.far, refused
  refused: provider: an object does not move to another system: destroy it first, then apply
  > vmctl destroy --target=vm.a
  > then: vmctl apply
`,
		},
		{
			name: "a block that was renamed", applied: one, spec: strings.Replace(one, `"a"`, `"b"`, 1),
			want: `destroy vm.a: it is not in the spec
create vm.b: it does not exist
0 stop vm.a
1 delete vm.a after 0
2 define vm.b
3 start vm.b after 2
4 wait_ssh vm.b after 3
vm.b is called demo.b
warning, vm.b: vm.a, which this plan destroys, has the same attributes. If its block was renamed, write: moved { from = vm.a, to = vm.b }
`,
		},
		{
			name: "one of two blocks alike was renamed", applied: one + strings.Replace(one, `"a"`, `"b"`, 1),
			spec: strings.Replace(one, `"a"`, `"c"`, 1),
			want: `destroy vm.a: it is not in the spec
destroy vm.b: it is not in the spec
create vm.c: it does not exist
0 stop vm.a
1 stop vm.b
2 delete vm.a after 0
3 delete vm.b after 1
4 define vm.c
5 start vm.c after 4
6 wait_ssh vm.c after 5
vm.c is called demo.c
warning, vm.c: vm.a, which this plan destroys, has the same attributes. If its block was renamed, write: moved { from = vm.a, to = vm.c }
`,
		},
		{
			name: "a block that was renamed and changed", applied: one, spec: "vm \"b\" {\n  memory = \"512MiB\"\n}\n",
			want: `destroy vm.a: it is not in the spec
create vm.b: it does not exist
0 stop vm.a
1 delete vm.a after 0
2 define vm.b
3 start vm.b after 2
4 wait_ssh vm.b after 3
vm.b is called demo.b
`,
		},
		{
			name: "the name is the one of what goes", applied: one, spec: one,
			change: func(s *scene) { s.move("vm.b") },
			want: `create vm.a: it does not exist
destroy vm.b: it is not in the spec
0 stop vm.b
1 delete vm.b after 0
2 define vm.a after 1
3 start vm.a after 2
4 wait_ssh vm.a after 3
vm.a is called demo.a
warning, vm.a: vm.b, which this plan destroys, has the same attributes. If its block was renamed, write: moved { from = vm.b, to = vm.a }
`,
		},
		{
			name: "the name is the one of an orphan that stays", applied: one,
			change: func(s *scene) {
				s.object().Owner.Address = addr(s.t, "vm.b")
				s.forget("vm.a")
			},
			want: `create vm.a: it does not exist
found orphan vm.b: libvirt vm "demo.a" (ID) bears our mark; it is in neither the spec nor the state; another data directory made it: it may be in use from there
0 define vm.a
1 start vm.a after 0
2 wait_ssh vm.a after 1
vm.a is called demo.a~f8ea70e2
`,
		},
		{
			name: "the name is somebody else's", applied: one,
			change: func(s *scene) {
				s.object().Owner = nil
				s.forget("vm.a")
			},
			want: `create vm.a: it does not exist
  blocked: libvirt vm "demo.a" (ID) exists, and vmctl did not make it: import or rename
  > rename: set another name in the block of vm.a, or rename the other object with its own tool
  > import: vmctl import vm.a ID
`,
		},
		{
			name: "the name is somebody else's, and the record's object is gone", applied: one,
			change: func(s *scene) {
				o := s.object()
				o.Owner, o.ID = nil, "ANOTHER"
			},
			want: `create vm.a: it does not exist
  blocked: libvirt vm "demo.a" (ANOTHER) exists, and vmctl did not make it: import or rename
  > rename: set another name in the block of vm.a, or rename the other object with its own tool
  > import: first let go of what had the name before: vmctl state rm --force vm.a
  > import: vmctl import vm.a ANOTHER
`,
		},
		{
			name: "its record was lost, and a removed block lets go of it", applied: one,
			spec:   provided + "removed {\n  from    = vm.a\n  destroy = false\n}\n",
			change: func(s *scene) { s.forget("vm.a") },
			want: `forget vm.a: its removed block lets go of it: the object stays as it is, without vmctl's mark
0 unmark vm.a
1 forget vm.a after 0
`,
		},
		{
			name: "its record was lost, and a removed block ends it", applied: one,
			spec:   provided + "removed {\n  from    = vm.a\n  destroy = true\n}\n",
			change: func(s *scene) { s.forget("vm.a") },
			want: `destroy vm.a: its removed block says so
0 stop vm.a
1 delete vm.a after 0
warning, vm.a: its record was lost: attributes that the system does not report are assumed to match the spec
`,
		},
		{
			name: "its record was lost, and no block speaks of it", applied: one, spec: provided,
			change: func(s *scene) { s.forget("vm.a") },
			want: `found orphan vm.a: libvirt vm "demo.a" (ID) bears our mark; it is in neither the spec nor the state
`,
		},
		{
			name: "imported by command to what has an object", applied: one,
			change: func(s *scene) { s.options.Imports = map[spec.Address]providers.ID{addr(s.t, "vm.a"): "nope"} },
			want: `import vm.a: "nope" is to be imported
  blocked: vm.a has an object already, libvirt vm "demo.a" (ID), and "nope" does not exist
  > leave the import out: the object of vm.a is managed
`,
		},
		{
			name: "imported by command to what has an object, and nothing can be listed", applied: one,
			change: func(s *scene) {
				s.options.Imports = map[spec.Address]providers.ID{addr(s.t, "vm.a"): "nope"}
				s.system("qemu:///session").inventory.Partial = map[spec.Kind]*providers.Problem{spec.VM: providers.Refuse("the socket is closed", nil)}
			},
			want: `import vm.a: "nope" is to be imported
  unknown: "nope" could not be read: the socket is closed
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
			s.checkAll(test.want)
		})
	}
}

// checkAll is check with the warnings, and with the names of the objects that are made.
func (s *scene) checkAll(want string) {
	s.t.Helper()
	p, err := s.plan()
	if err != nil {
		s.t.Fatal(err)
	}
	if d := cmp.Diff(want, uuid.ReplaceAllString(text(p)+asides(p), "ID")); d != "" {
		s.t.Errorf("plan (-want +got):\n%s", d)
	}
}

// asides returns the warnings of a plan, and the names of the objects that it makes.
func asides(p *planner.Plan) string {
	var b strings.Builder
	for _, c := range p.Changes {
		if c.Action == providers.Create && c.Blocked == nil {
			b.WriteString(c.Address.String() + " is called " + c.Name + "\n")
		}
		for _, w := range c.Warnings {
			b.WriteString("warning, " + c.Address.String() + ": " + w + "\n")
		}
	}
	return b.String()
}

// imageOf returns a spec of a VM of an image whose SHA-256 consists of one digit; "": no digest
// is written.
func imageOf(digit string) string {
	if digit == "" {
		return "vm \"a\" {\n  image = \"https://example.org/x\"\n}\n"
	}
	return fmt.Sprintf("vm \"a\" {\n  image {\n    source = \"https://example.org/x\"\n    sha256 = %q\n  }\n}\n", strings.Repeat(digit, 64))
}

// shownImage makes the system show the digest of the image.
func shownImage(s *scene) {
	s.options.Types.Systems["libvirt"].Kinds[spec.VM]["image.sha256"] = providers.Attribute{Optional: true}
	all := s.object().Attrs.AsValueMap()
	all["image"] = cty.ObjectVal(map[string]cty.Value{
		"source": cty.StringVal("https://example.org/x"), "sha256": cty.StringVal(strings.Repeat("a", 64)),
	})
	s.object().Attrs = cty.ObjectVal(all)
}
