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

// jobTypes returns the types of workspaces of this host, and of jobs.
func jobTypes() providers.Types {
	again := providers.Attribute{Judge: machine.Live("the job runs again")}
	return providers.Types{
		Systems: map[string]providers.Type{"libvirt": testType()},
		Inside: map[spec.Kind]providers.Type{
			spec.Workspace: {Name: "workspace", Kinds: map[spec.Kind]map[string]providers.Attribute{spec.Workspace: {"id": {Computed: true}, "base": {Computed: true}, "head": {Computed: true}}}},
			spec.Job:       {Name: "job", Kinds: map[spec.Kind]map[string]providers.Attribute{spec.Job: {"command": again, "triggers": again, "id": {Computed: true}}}},
		},
	}
}

// Which jobs a plan runs: those that are due once, in a workspace that can be entered, and that has no other past.
func TestJobs(t *testing.T) {
	const work = "workspace \"w\" {\n  branch = \"w\"\n  path = \"/w\"\n}\n"
	block := func(attrs string) string {
		return "job \"j\" {\n  workspace = workspace.w\n  command = [\"true\"]\n" + attrs + "}\n"
	}
	once := block("  run = \"once\"\n")
	tests := []struct {
		name          string
		before, after string   // the spec
		lost          []string // whose records were lost
		found         bool     // the workspace was there before its record
		want          string
	}{
		{name: "a manual one", before: work, after: work + block(""), want: ""},
		{name: "one that is due, with its workspace", after: work + once, want: "create job.j: it does not exist\ncreate workspace.w: it does not exist\n" +
			"0 define workspace.w\n1 define job.j after 0\n"},
		{name: "one that ran", before: work + once, after: work + once, want: ""},
		{
			name: "one that ran, and has another command", before: work + once, after: work + "job \"j\" {\n  workspace = workspace.w\n  command = [\"false\"]\n  run = \"once\"\n}\n",
			want: "update job.j: command: the job runs again\n  command [true] -> [false], live\n0 redefine job.j\n",
		},
		{
			name: "one that ran, and becomes a manual one", before: work + once, after: work + block(""),
			want: "forget job.j: its records are kept: vmctl job list shows them\n0 forget job.j\n",
		},
		{name: "one whose block is gone", before: work + once, after: work, want: "forget job.j: its records are kept: vmctl job list shows them\n0 forget job.j\n"},
		{
			name: "one in a workspace that the state does not know yet", before: work, after: work + once, lost: []string{"workspace.w"},
			want: "adopt workspace.w: it is ours, and its record was lost\n" +
				"found not_run job.j: workspace.w was there before this state, and no record says whether job.j has run in it\n0 record workspace.w\n",
		},
		{
			name: "one in a workspace that an earlier apply found", before: work, after: work + once, found: true,
			want: "found not_run job.j: workspace.w was there before this state, and no record says whether job.j has run in it\n",
		},
		{name: "a manual one that ran", before: work + block(""), after: work + block(""), lost: []string{"job.j"}, want: ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := jobPlan(t, test.before, test.after, func(s *state.Snapshot) {
				for _, a := range test.lost {
					delete(s.Records, addr(t, a))
				}
				if test.found {
					r := s.Records[addr(t, "workspace.w")]
					r.Found = true
					s.Records[addr(t, "workspace.w")] = r
				}
			})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// A job is blocked whose VM is not to run: it would fail, and count as run.
func TestJobInAVMThatIsOff(t *testing.T) {
	const off = "vm \"a\" {\n  running = false\n}\nworkspace \"w\" {\n  vm = vm.a\n  branch = \"w\"\n  path = \"/w\"\n}\n" +
		"job \"j\" {\n  workspace = workspace.w\n  command = [\"true\"]\n  run = \"once\"\n}\n"
	got := jobPlan(t, "", off, func(*state.Snapshot) {})
	const want = "create job.j: it does not exist\n  blocked: vm.a, in which it would run, is off\n  > start the VM first: vmctl vm start vm.a\n"
	if len(got) < len(want) || got[:len(want)] != want {
		t.Errorf("plan:\n%s\nwant it to begin with\n%s", got, want)
	}
}

// jobPlan returns the plan of a spec after another one was applied, and the state was changed.
func jobPlan(t *testing.T, before, after string, change func(*state.Snapshot)) string {
	t.Helper()
	systems := map[string]*system{"workspace": {}, "job": {}, "libvirt": {}}
	s := &state.Snapshot{Format: state.Format, ID: project.ID, Project: project.Name, Serial: 7, Records: map[spec.Address]state.Record{}}
	for _, r := range load(t, before).Resources {
		id, name := planner.ObjectID(project, r.Address, 0), planner.ObjectName(project, r.Address)
		attrs := map[string]cty.Value{"id": cty.StringVal(string(id))}
		values := r.Want.AsValueMap()
		values["id"] = attrs["id"]
		s.Records[r.Address] = state.Record{
			Kind: r.Address.Kind, Provider: r.Provider, Settings: cty.EmptyObjectVal, ID: string(id), Name: name, Generation: 1,
			Values: cty.ObjectVal(values), Policy: r.Policy, Uses: r.Uses,
		}
		in := systems[string(r.Address.Kind)]
		in.inventory.Objects = append(in.inventory.Objects, providers.Object{
			Kind: r.Address.Kind, ID: id, Name: name, Attrs: cty.ObjectVal(attrs), Fingerprint: "as applied",
			Owner: &providers.Mark{ID: project.ID, Project: project.Name, Address: r.Address, Of: id, Generation: 1},
		})
	}
	change(s)
	open := func(_ context.Context, o planner.Opening) (providers.Provider, error) {
		if o.Ref.IsOnThisHost() {
			return systems[o.Ref.Name], nil
		}
		return systems["libvirt"], nil
	}
	p, w, err := planner.Make(t.Context(), open, load(t, after), s, planner.Options{Types: jobTypes(), Project: project})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return text(p)
}
