package planner_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// engineSpec returns a spec of a VM with an engine of a type in it, with an image and a container in that.
func engineSpec(typ, rest string) string {
	return "vm \"a\" {\n}\nengine \"e\" {\n  vm   = vm.a\n  type = \"" + typ + "\"\n}\n" + rest
}

const (
	engineImage     = "image \"box\" {\n  engine = engine.e\n  ref    = \"box:1\"\n}\n"
	engineContainer = "container \"web\" {\n  engine = engine.e\n  image  = image.box\n}\n"
	engineRest      = engineImage + engineContainer
)

// What becomes of what is inside of an engine that has, gets or had a type in which nothing is managed.
//
// row E46, of plans
func TestInapplicable(t *testing.T) {
	const keeps = "  lifecycle {\n    prevent_destroy = true\n  }\n"
	web := addr(t, "container.web")
	for _, test := range []struct {
		name          string
		before, after string
		options       planner.Options
		want          string
	}{
		{
			name: "it stays", before: engineSpec("containerd", engineRest), after: engineSpec("containerd", holding(engineImage, `lifecycle {
    prevent_destroy = true
  }`)+holding(engineContainer, `memory = "8MiB"`)),
		},
		{
			name: "it is no longer wanted", before: engineSpec("containerd", engineRest), after: engineSpec("containerd", engineImage),
		},
		{
			name: "the engine gets the type", before: engineSpec("moby", engineRest), after: engineSpec("containerd", engineRest),
			want: "update engine.e: type: what is inside of it stays as it is\n" +
				"  type moby -> containerd, live\n" +
				"0 redefine engine.e\n",
		},
		{
			name: "the engine loses the type", before: engineSpec("containerd", engineRest), after: engineSpec("moby", engineRest),
			want: "update engine.e: type: what is inside of it stays as it is\n" +
				"  type containerd -> moby, live\n" +
				"0 redefine engine.e\n",
		},
		{
			name: "it alone, before the engine loses the type", before: engineSpec("containerd", engineRest), after: engineSpec("moby", engineRest),
			options: planner.Options{Scope: planner.Scope{Targets: []spec.Address{web}, Alone: true}},
		},
		{
			name: "a command is about it, before the engine loses the type", before: engineSpec("containerd", engineRest), after: engineSpec("moby", engineRest),
			options: planner.Options{States: map[spec.Address]string{web: "created"}, Scope: planner.Scope{Targets: []spec.Address{web}, Alone: true}},
			want: "noop container.web\n" +
				"  blocked: engine.e still has type = \"containerd\": what is inside of it is read once that has changed\n" +
				"  > vmctl apply\n",
		},
		{
			name: "something is to be made there", before: engineSpec("containerd", ""), after: engineSpec("containerd", engineRest),
		},
		{
			name: "something refers to what is not made there", before: engineSpec("containerd", ""),
			after: engineSpec("containerd", engineImage+"engine \"o\" {\n  vm   = vm.a\n  host = \"unix:///o\"\n}\ncontainer \"other\" {\n  engine = engine.o\n  image  = image.box\n  env    = { ID = image.box.id }\n}\n"),
			want: "create container.other: it does not exist\n" +
				"  blocked: it refers to image.box, which is not made while engine.e has type = \"containerd\"\n" +
				"  > write another type into engine.e, or leave out the reference\n" +
				"create engine.o: it does not exist\n" +
				"0 define engine.o\n",
		},
		{
			name: "a command is about it", before: engineSpec("containerd", engineRest), after: engineSpec("containerd", engineRest),
			options: planner.Options{States: map[spec.Address]string{web: "created"}},
			want: "noop container.web\n" +
				"  blocked: engine.e has type = \"containerd\", under which nothing inside of it is managed\n" +
				"  > write another type into engine.e, and apply\n",
		},
		{
			name: "all goes", before: engineSpec("containerd", engineRest), after: "",
			want: "forget container.web: it goes with vm.a\n" +
				"destroy engine.e: it is not in the spec\n" +
				"forget image.box: it goes with vm.a\n" +
				"destroy vm.a: it is not in the spec\n" +
				"0 delete engine.e\n" +
				"1 stop vm.a after 0\n" +
				"2 delete vm.a after 0,1\n" +
				"3 forget container.web after 0,1,2\n" +
				"4 forget image.box after 0,1,2\n",
		},
		{
			name: "all goes by a destroy", before: engineSpec("containerd", engineRest), after: engineSpec("containerd", engineRest),
			options: planner.Options{Destroy: true},
			want: "forget container.web: it goes with vm.a\n" +
				"destroy engine.e: it was asked for\n" +
				"forget image.box: it goes with vm.a\n" +
				"destroy vm.a: it was asked for\n" +
				"0 delete engine.e\n" +
				"1 stop vm.a after 0\n" +
				"2 delete vm.a after 0,1\n" +
				"3 forget container.web after 0,1,2\n" +
				"4 forget image.box after 0,1,2\n",
		},
		{
			name: "the VM goes, and it is protected", before: engineSpec("containerd", engineImage+holding(engineContainer, keeps)), after: engineSpec("containerd", engineImage+holding(engineContainer, keeps)),
			options: planner.Options{Destroy: true},
			want: "noop container.web\n" +
				"  blocked: lifecycle.prevent_destroy is set, and it would go with vm.a\n" +
				"  > if it really should go: --allow-destroy=container.web\n" +
				"destroy engine.e: it was asked for\n" +
				"  blocked: container.web is inside of it, and is to be kept\n" +
				"  > see what the plan says of container.web\n" +
				"forget image.box: it goes with vm.a\n" +
				"  blocked: it needs container.web, whose own change is blocked\n" +
				"  > see what the plan says of container.web\n" +
				"destroy vm.a: it was asked for\n" +
				"  blocked: container.web is inside of it, and is to be kept\n" +
				"  > see what the plan says of container.web\n",
		},
		{
			name: "it is destroyed without its VM", before: engineSpec("containerd", engineRest), after: engineSpec("containerd", engineRest),
			options: planner.Options{Destroy: true, Scope: planner.Scope{Targets: []spec.Address{web}, Alone: true}},
			want: "noop container.web\n" +
				"  blocked: engine.e has type = \"containerd\": what is inside of it cannot be removed\n" +
				"  > write another type into engine.e, and apply first\n" +
				"  > or give it up: vmctl state rm container.web\n",
		},
		{
			name: "the engine moves, too", before: engineSpec("moby", engineImage) + "vm \"b\" {}\n",
			after: strings.Replace(engineSpec("containerd", engineImage), "vm.a", "vm.b", 1) + "vm \"b\" {}\n",
			want:  "replace engine.e: vm: cannot change after it was made\n  type moby -> containerd, live\n  vm vm.a -> vm.b, replace\n  blocked: image.box is inside of it, and is to be kept\n  > see what the plan says of image.box\n",
		},
		{
			name: "it is released", before: engineSpec("containerd", engineRest), after: engineSpec("containerd", engineImage+"removed {\n  from    = container.web\n  destroy = false\n}\n"),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := enginePlan(t, test.before, test.after, test.options, nil); got != test.want {
				t.Errorf("plan (-want +got):\n%s", cmp.Diff(test.want, got))
			}
		})
	}
}

// enginePlan returns the plan of one spec right after another one was applied, and the world was changed.
func enginePlan(t *testing.T, applied, wanted string, o planner.Options, change func(*scene)) string {
	t.Helper()
	s := after(t, applied)
	if change != nil {
		change(s)
	}
	o.Types, o.Project = containerTypes(), project
	s.options, s.config = o, load(t, wanted)
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	return text(p)
}

// usable is an engine that removes no object of which another one has the use.
type usable struct{ *system }

func useOf(id providers.ID) providers.Claim {
	return providers.Claim{Kind: providers.ClaimUse, Key: string(id)}
}

func (u usable) Steps(c providers.Change) ([]providers.Step, error) {
	steps := passive(c)
	if c.Action == providers.Destroy {
		steps[0].Takes = []providers.Claim{useOf(c.Object.ID)}
	}
	return steps, nil
}

// What a container of others uses stays, unless the machine around the engine goes: then it goes with that, and is not removed by
// itself before, which would fail.
func TestUsedByOthersInAnEngine(t *testing.T) {
	used := func(s *scene) {
		in := s.inside("engine.e")
		in.inventory.Objects = append(in.inventory.Objects, providers.Object{
			Kind: spec.Container, ID: "1", Name: "theirs", State: "running", Holds: []providers.Claim{useOf(planner.ObjectID(project, addr(t, "image.box"), 0))},
		})
		s.inhabited = func(o planner.Opening) providers.Provider {
			if o.Type.Name == "docker" {
				return usable{in}
			}
			return nil
		}
	}
	for _, test := range []struct {
		name, after string
		options     planner.Options
		want        string
	}{
		{"it alone goes", engineSpec("moby", ""), planner.Options{}, "destroy image.box: it is not in the spec\n" +
			"  retained: libvirt container \"theirs\" (1) uses it\n" +
			"  > once that one is gone, the next apply or destroy removes it\n"},
		{"the engine and it go", "vm \"a\" {\n}\n", planner.Options{}, "destroy engine.e: it is not in the spec\n" +
			"  retained: image.box is inside of it, and is retained\n" +
			"destroy image.box: it is not in the spec\n" +
			"  retained: libvirt container \"theirs\" (1) uses it\n" +
			"  > once that one is gone, the next apply or destroy removes it\n"},
		{"the VM goes", "", planner.Options{}, "destroy engine.e: it is not in the spec\n" +
			"destroy image.box: others use it: it goes with what is around its engine\n" +
			"destroy vm.a: it is not in the spec\n" +
			"0 delete engine.e\n" +
			"1 stop vm.a after 0\n" +
			"2 delete vm.a after 0,1\n" +
			"3 forget image.box after 0,1,2\n"},
		{"all goes by a destroy", engineSpec("moby", engineImage), planner.Options{Destroy: true}, "destroy engine.e: it was asked for\n" +
			"destroy image.box: others use it: it goes with what is around its engine\n" +
			"destroy vm.a: it was asked for\n" +
			"0 delete engine.e\n" +
			"1 stop vm.a after 0\n" +
			"2 delete vm.a after 0,1\n" +
			"3 forget image.box after 0,1,2\n"},
		{"the VM is busy", "", planner.Options{Busy: map[spec.Address][]state.Holder{addr(t, "vm.a"): {{PID: 42, Host: "ada", Command: "vmctl vm exec"}}}}, "destroy engine.e: it is not in the spec\n" +
			"  retained: image.box is inside of it, and is retained\n" +
			"destroy image.box: it is not in the spec\n" +
			"  retained: libvirt container \"theirs\" (1) uses it\n" +
			"  > once that one is gone, the next apply or destroy removes it\n" +
			"destroy vm.a: it is not in the spec\n" +
			"  blocked: it is busy: vmctl vm exec (pid 42 on ada) since 0001-01-01 00:00:00 UTC\n" +
			"  > let them end, or end them where they run; then repeat the command\n" +
			"  > or interrupt them: --allow-interrupt=vm.a\n" +
			"found busy vm.a: vmctl vm exec (pid 42 on ada) since 0001-01-01 00:00:00 UTC\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := enginePlan(t, engineSpec("moby", engineImage), test.after, test.options, used); got != test.want {
				t.Errorf("plan (-want +got):\n%s", cmp.Diff(test.want, got))
			}
		})
	}
}
