package planner_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
	"vmctl/state"
)

// containerTypes returns the types of engines, and of containers in them.
func containerTypes() providers.Types {
	live := providers.Attribute{Judge: machine.Live("at once")}
	return providers.Types{
		Systems: map[string]providers.Type{"libvirt": testType()},
		Inside: map[spec.Kind]providers.Type{
			spec.Engine:    {Name: "engine", Kinds: map[spec.Kind]map[string]providers.Attribute{spec.Engine: {"host": {}, "type": live, "id": {Computed: true}}}},
			spec.Image:     {Name: "docker", Kinds: map[spec.Kind]map[string]providers.Attribute{spec.Image: {"ref": {}, "id": {Computed: true}}}},
			spec.Container: {Name: "docker", Kinds: map[spec.Kind]map[string]providers.Attribute{spec.Container: {"image": {}, "memory": live, "state": live, "id": {Computed: true}}}},
		},
	}
}

// A command asks for another state of a container, and carries out no edit of its block, ignore_changes or not.
//
// row E39, of what commands ask for
func TestContainerStates(t *testing.T) {
	web := addr(t, "container.web")
	states := func(state string) planner.Options {
		return planner.Options{States: map[spec.Address]string{web: state}}
	}
	restart := states("running")
	restart.Restart = map[spec.Address]bool{web: true}
	const ignores = "  lifecycle {\n    ignore_changes = [state]\n  }\n"
	for _, test := range []struct {
		name, block string
		found       string // the state that the engine shows; "": the container does not exist
		options     planner.Options
		want        string
	}{
		{"stop", "", "running", states("created"), "update container.web: state: at once\n  state running -> created, live\n0 redefine container.web\n"},
		{"stop with an edit that waits", "  memory = \"8MiB\"\n", "running", states("created"), "update container.web: state: at once\n  state running -> created, live\n0 redefine container.web\n"},
		{"stop of one whose state is ignored", ignores, "running", states("created"), "update container.web: state: at once\n  state running -> created, live\n0 redefine container.web\n"},
		{"stop of one that is stopped", "", "created", states("created"), "update container.web: the recorded state is updated\nfound drift container.web: state is created, and vmctl applied running\n0 redefine container.web\n"},
		{"stop of one in an unknown state", "", "unknown", states("created"), "update container.web: state: at once\n  state running -> created, live\n0 redefine container.web\n"},
		{"stop of none", "", "", states("created"), ""},
		{"restart", "", "running", restart, "restart container.web: a restart was asked for\n"},
		{"restart of a paused one", "", "paused", restart, "restart container.web: a restart was asked for\n  state paused -> running, live\nfound drift container.web: state is paused, and vmctl applied running\n0 record container.web\n"},
		{"restart of a stopped one", "", "created", restart, "update container.web: state: at once\n  state created -> running, live\nfound drift container.web: state is created, and vmctl applied running\n0 redefine container.web\n"},
		{"restart of none", "", "", restart, ""},
		{"one that never starts again", "", "dead", planner.Options{}, "replace container.web: state: it is dead\n  state created -> running, replace\nfound drift container.web: state is created, and vmctl applied running\n0 delete container.web\n1 define container.web after 0\n"},
		{"one that never starts again, and whose state is ignored", ignores, "dead", planner.Options{}, "update container.web: how vmctl treats it changed; the object stays as it is\n0 redefine container.web\n"},
		{"one that never starts again, and need not", "  state = \"created\"\n", "dead", planner.Options{}, "update container.web: the recorded state is updated\nfound drift container.web: state is created, and vmctl applied running\n0 redefine container.web\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := containerPlan(t, test.block, test.found, test.options); got != test.want {
				t.Errorf("plan (-want +got):\n%s", cmp.Diff(test.want, got))
			}
		})
	}
}

// containerPlan returns the plan for a container that was applied without the additions to its block.
func containerPlan(t *testing.T, block, found string, o planner.Options) string {
	t.Helper()
	return containerPlanBeside(t, "", nil, block, found, o)
}

// containerPlanBeside is containerPlan in an engine with an addition to its block, and with objects of others in it.
func containerPlanBeside(t *testing.T, in string, others []providers.Object, block, found string, o planner.Options) string {
	t.Helper()
	engine := "engine \"here\" {\n  host = \"unix:///s\"\n" + in + "}\nimage \"box\" {\n  engine = engine.here\n  ref    = \"box:1\"\n}\n"
	source := func(block string) string {
		return engine + "container \"web\" {\n  engine = engine.here\n  image  = image.box\n" + block + "}\n"
	}
	docker := &system{}
	inside := map[spec.Kind]*system{spec.Engine: {}, spec.Image: docker, spec.Container: docker}
	s := &state.Snapshot{Format: state.Format, ID: project.ID, Project: project.Name, Serial: 7, Records: map[spec.Address]state.Record{}}
	for _, r := range load(t, source("")).Resources {
		id, name := planner.ObjectID(project, r.Address, 0), planner.ObjectName(project, r.Address)
		s.Records[r.Address] = state.Record{
			Kind: r.Address.Kind, Provider: r.Provider, Settings: cty.EmptyObjectVal, ID: string(id), Name: name, Generation: 1,
			Values: r.Want, Policy: r.Policy, Uses: r.Uses, Inside: r.Inside,
		}
		attrs, spent := map[string]cty.Value{"id": cty.StringVal(string(id))}, ""
		switch {
		case r.Address.Kind == spec.Container && found == "":
			delete(s.Records, r.Address)
			continue
		case r.Address.Kind == spec.Container && found == "dead":
			attrs["state"], spent = cty.StringVal("created"), "it is dead"
		case r.Address.Kind == spec.Container && found != "unknown":
			attrs["state"] = cty.StringVal(found)
		}
		in := inside[r.Address.Kind]
		in.inventory.Objects = append(in.inventory.Objects, providers.Object{
			Kind: r.Address.Kind, ID: id, Name: name, Attrs: cty.ObjectVal(attrs), Fingerprint: "as applied", State: found, Spent: spent,
			Owner: &providers.Mark{ID: project.ID, Project: project.Name, Address: r.Address, Of: id, Generation: 1},
		})
	}
	docker.inventory.Objects = append(docker.inventory.Objects, others...)
	open := func(_ context.Context, o planner.Opening) (providers.Provider, error) {
		if o.Type.Name == "docker" {
			return inside[spec.Container], nil
		}
		return inside[spec.Engine], nil
	}
	o.Types, o.Project, o.Scope = containerTypes(), project, planner.Scope{Targets: []spec.Address{addr(t, "container.web")}, Alone: true}
	p, w, err := planner.Make(t.Context(), open, load(t, source(block)), s, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return text(p)
}

// What others have in an engine is told where the block of the engine says so, and nothing is done about it.
func TestUnmanaged(t *testing.T) {
	others := []providers.Object{
		{Kind: spec.Container, ID: "1", Name: "theirs", State: "running"},
		{Kind: spec.Container, ID: "2", Name: "ours elsewhere", Owner: &providers.Mark{ID: "other", Project: "shop", Address: addr(t, "container.db"), Of: "2"}},
		{Kind: spec.Image, ID: "3", Name: "docker.io/library/box:2"},
		{Kind: spec.Volume, ID: "4", Name: "of the system", Protected: "every engine has it"},
	}
	const containers = "found unmanaged : container \"ours elsewhere\" (2) is in engine.here, no block describes it, and it is container.db of the project \"shop\"\n" +
		"found unmanaged : container \"theirs\" (1) is in engine.here, no block describes it, and it bears no mark of vmctl\n"
	const images = "found unmanaged : image \"docker.io/library/box:2\" (3) is in engine.here, no block describes it, and it bears no mark of vmctl\n"
	for in, want := range map[string]string{
		"": "",
		"  unmanaged {\n    containers = \"report\"\n  }\n":                          containers,
		"  unmanaged {\n    containers = \"report\"\n    images = \"report\"\n  }\n": images + containers,
		"  unmanaged {\n    volumes = \"report\"\n  }\n":                             "",
	} {
		if got := containerPlanBeside(t, in, others, "", "running", planner.Options{}); got != want {
			t.Errorf("%s(-want +got):\n%s", in, cmp.Diff(want, got))
		}
	}
}
