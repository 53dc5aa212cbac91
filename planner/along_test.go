package planner_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// What is inside of an object that ends is looked for, whoever has a record: an orphan there goes along, unless it has work that exists
// nowhere else, and so does nothing that may be there and cannot be read.
func TestOrphansInsideOfWhatEnds(t *testing.T) {
	const vm, work = "vm \"a\" {\n}\n", "workspace \"w\" {\n  vm = vm.a\n  branch = \"w\"\n  path = \"/w\"\n}\n"
	a, w := spec.Address{Kind: spec.VM, Name: "a"}, spec.Address{Kind: spec.Workspace, Name: "w"}
	destroy := func(s *scene) { s.options.Destroy = true }
	soiled := func(s *scene) { s.soil("new") }
	adopted := func(s *scene) {
		r := s.state.Records[a]
		r.Found = true
		s.state.Records[a] = r
	}
	found := func(s *scene) { // state rm has removed the record of the workspace
		adopted(s)
		s.state.Forgotten = map[string]spec.Address{string(planner.ObjectID(project, w, 0)): w}
	}
	mute := func(s *scene) {
		s.inside("vm.a").inventory = providers.Inventory{Partial: map[spec.Kind]*providers.Problem{spec.Workspace: providers.Refuse("no answer", nil)}}
	}
	orphaned := func(s *scene) { // the VM itself has neither a record nor a block
		s.forget("vm.a")
		s.config = load(t, "provider \"libvirt\" \"default\" {\n}\n")
		s.options.Inward, s.options.CleanUp = true, map[spec.Address]bool{a: true}
		s.options.Scope = planner.Scope{Targets: []spec.Address{a}, Alone: true}
	}
	byHand := func(all ...spec.Address) func(*scene) {
		return func(s *scene) {
			s.state.Forgotten = map[string]spec.Address{}
			for _, addr := range all {
				s.state.Forgotten[string(planner.ObjectID(project, addr, 0))] = addr
			}
		}
	}
	began := func(how string) func(*scene) {
		return func(s *scene) {
			s.interrupt("vm.a", "delete")
			e := &s.state.Interrupted[0]
			e.How, e.ID = how, string(s.object().ID)
		}
	}
	const (
		busy    = "  blocked: it is busy: vmctl vm exec (pid 42 on ada) since 0001-01-01 00:00:00 UTC\n"
		left    = "found orphan workspace.w: libvirt workspace \"demo.w\" (ID) bears our mark; it is in neither the spec nor the state\n"
		along   = "destroy workspace.w: it is in neither the spec nor the state, and goes with vm.a\n"
		dirty   = "  blocked: it has work that exists nowhere else: untracked files: new\n  > put its block back, and apply: its commits can be fetched then\n  > or lose it: --allow-dirty=workspace.w\n"
		asked   = "destroy vm.a: it was asked for\n"
		gone    = "destroy vm.a: it is in neither the spec nor the state\n"
		kept    = "  blocked: workspace.w is inside of it, and is to be kept\n  > see what the plan says of workspace.w\n"
		removal = "0 delete workspace.w\n1 stop vm.a after 0\n2 delete vm.a after 0,1\n"
		cut     = "found interrupted vm.a: an earlier run began to destroy it at 2026-05-01 12:00:00 UTC and did not end; it may have left: half of it\n"
		off     = "  blocked: vm.a is off, and what is inside of it may have no record: nobody can see whether a workspace there has work that exists nowhere else\n"
		started = "  > start the VM first: vmctl vm start vm.a\n  > or have it started and looked into: vmctl destroy --wake\n"
		lose    = "  > or lose it: --allow-dirty=vm.a\n"
		unread  = "  blocked: what is inside of it may have no record, and could not be read: nobody can see whether a workspace there has work that exists nowhere else: no answer\n"
	)
	for _, test := range []struct {
		name    string
		changes []func(*scene)
		want    string
	}{
		{"nothing ends", []func(*scene){soiled}, ""},
		{"it goes along", []func(*scene){destroy}, asked + along + removal},
		{"it has work", []func(*scene){destroy, soiled}, asked + kept + along + dirty},
		{"the VM is replaced", []func(*scene){soiled, func(s *scene) { s.options.Replace = map[spec.Address]bool{a: true} }}, "replace vm.a: a replacement was asked for\n" + kept + along + dirty},
		{"the work may be lost", []func(*scene){destroy, soiled, func(s *scene) { s.options.Allow.Dirty = map[spec.Address]bool{w: true} }}, asked + along + "found dirty workspace.w: untracked files: new\n" + removal},
		{"somebody is at work in it", []func(*scene){destroy, func(s *scene) {
			s.options.Visitors = visited(w)
		}}, asked + kept + along + busy + "  > see which jobs run: vmctl job list\n  > let them end, or end them: vmctl job cancel ID\nfound busy workspace.w: vmctl vm exec (pid 42 on ada) since 0001-01-01 00:00:00 UTC\n"},
		{"the VM stays, for somebody is at work in it", []func(*scene){destroy, func(s *scene) {
			s.options.Busy = map[spec.Address][]state.Holder{a: {{PID: 42, Host: "ada", Command: "vmctl vm exec"}}}
		}}, asked + busy +
			"  > let them end, or end them where they run; then repeat the command\n  > or interrupt them: --allow-interrupt=vm.a\n" +
			"  > or have them waited for: when_busy = \"wait 30m\" in the block of vm.a\nfound busy vm.a: vmctl vm exec (pid 42 on ada) since 0001-01-01 00:00:00 UTC\n"},
		{"the VM stays for another reason", []func(*scene){func(s *scene) {
			s.config = load(t, "vm \"b\" {\n}\n")
			r := s.state.Records[a]
			r.Policy = load(t, "vm \"a\" {\n  lifecycle {\n    prevent_destroy = true\n  }\n}\n").Resources[0].Policy
			s.state.Records[a] = r
		}}, "destroy vm.a: it is not in the spec\n  blocked: lifecycle.prevent_destroy is set, and this is a destroy\n  > if it really should go: --allow-destroy=vm.a\n" +
			"  > or write it down: removed { from = vm.a, destroy = true }\ncreate vm.b: it does not exist\n0 define vm.b\n1 start vm.b after 0\n2 wait_ssh vm.b after 1\n"},
		{"the root of the VM is in memory", []func(*scene){soiled, (*scene).stays, func(s *scene) { s.objectOf("vm.a").Volatile = true }}, "stop vm.a: it runs, and a stop was asked for\n  blocked: its root is in memory, and workspace.w inside of it has work that exists nowhere else: untracked files: new\n" +
			"  > put its block back, and apply: its commits can be fetched then\n  > or lose it: --allow-dirty=workspace.w\n" + left},
		{"off, and nothing was ever inside", []func(*scene){destroy, (*scene).off}, asked + "0 delete vm.a\n"},
		{"off, and a record was removed", []func(*scene){destroy, (*scene).off, found}, asked + off + started + lose},
		{"off, and its own record was made anew", []func(*scene){destroy, (*scene).off, adopted}, asked + "0 delete vm.a\n"},
		{"off, its own record was made anew, and a block wants it", []func(*scene){destroy, func(s *scene) { s.config = load(t, vm+work) }, (*scene).off, adopted}, asked + off + started + lose},
		{"off, and what is in it may be lost", []func(*scene){destroy, (*scene).off, found, func(s *scene) { s.options.Allow.Dirty = map[spec.Address]bool{a: true} }}, asked + "0 delete vm.a\n"},
		{"it cannot be read, and nothing was ever inside", []func(*scene){destroy, mute}, asked + "0 stop vm.a\n1 delete vm.a after 0\n"},
		{"it cannot be read, and a record was removed", []func(*scene){destroy, mute, found}, asked + unread + lose},
		{"the VM is an orphan", []func(*scene){orphaned, soiled}, gone + kept + along + dirty},
		{"the VM is an orphan that is off", []func(*scene){orphaned, (*scene).off}, gone + off + "  > put its block back, apply, and see what the plan says of what is inside\n" + lose},
		{"the VM is an orphan that is off, and a run that was cut short looked into", []func(*scene){orphaned, (*scene).off, began(state.Destroying)}, gone + off + "  > put its block back, apply, and see what the plan says of what is inside\n" + lose + cut},
		{"the VM is an orphan that is off, and a run that was cut short began to delete", []func(*scene){orphaned, (*scene).off, began(state.Deleting)}, gone + cut + "0 delete vm.a\n1 settle vm.a after 0\n"},
		{"its record was removed by hand, and none of a workspace", []func(*scene){orphaned, (*scene).off, byHand(a)}, gone + "0 delete vm.a\n"},
		{"its record was removed by hand, and one of a workspace", []func(*scene){orphaned, (*scene).off, byHand(a, w)}, gone + off + "  > put its block back, apply, and see what the plan says of what is inside\n" + lose},
		{"the address of the orphan has another object", []func(*scene){destroy, soiled, func(s *scene) {
			s.state.Records[w] = state.Record{Kind: spec.Workspace, ID: "another", Name: "demo.w", Inside: spec.Address{Kind: spec.VM, Name: "b"}, Provider: s.state.Records[a].Provider, Settings: s.state.Records[a].Settings}
		}}, asked + "  blocked: libvirt workspace \"demo.w\" (ID) is inside of it, bears the mark of workspace.w, which is another object, and has work that exists nowhere else: untracked files: new\n" +
			lose + "forget workspace.w: vm.b does not exist, and nothing is inside of it\n0 forget workspace.w\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, vm+work)
			s.options.Types = jobTypes()
			s.forget("workspace.w")
			s.config = load(t, vm)
			for _, change := range test.changes {
				change(s)
			}
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, uuid.ReplaceAllString(text(p), "ID")); diff != "" {
				t.Errorf("the plan (-want +got):\n%s", diff)
			}
		})
	}
}

// A guest that gives no answer keeps nobody from destroying a VM in which nothing is known to be.
func TestGuestThatHangsIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := after(t, "vm \"a\" {\n}\n")
		s.options.Types, s.options.Destroy = jobTypes(), true
		s.inhabited = func(o planner.Opening) providers.Provider {
			if o.Via == nil {
				return nil
			}
			return hanging{s.inside("vm.a")}
		}
		s.check("destroy vm.a: it was asked for\n0 stop vm.a\n1 delete vm.a after 0\n")
	})
}

// A limit of the reading that is shorter than a guest takes to answer hides nobody's work in a VM that is to go.
func TestASlowGuestIsLookedInto(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := after(t, "vm \"a\" {\n}\nworkspace \"w\" {\n  vm = vm.a\n  branch = \"w\"\n  path = \"/w\"\n}\n")
		s.options.Types, s.options.Destroy = jobTypes(), true
		s.soil("new")
		s.forget("workspace.w")
		s.config = load(t, "vm \"a\" {\n}\n")
		s.config.Settings.ReadTimeout = time.Second
		s.inhabited = func(o planner.Opening) providers.Provider {
			if o.Via == nil {
				return nil
			}
			return slow{s.inside("vm.a")}
		}
		p, err := s.plan()
		if err != nil || !p.Forbidden() || len(p.Steps) > 0 {
			t.Errorf("%v\n%s", err, text(p))
		}
	})
}

// slow is a system that answers after ten seconds, if it is asked for that long.
type slow struct{ *system }

func (s slow) Observe(ctx context.Context, q providers.Query) (providers.Inventory, error) {
	select {
	case <-ctx.Done():
		return providers.Inventory{}, ctx.Err()
	case <-time.After(10 * time.Second):
		return s.system.Observe(ctx, q)
	}
}

// hanging is a system that gives no answer.
type hanging struct{ *system }

func (hanging) Observe(ctx context.Context, _ providers.Query) (providers.Inventory, error) {
	<-ctx.Done()
	return providers.Inventory{}, ctx.Err()
}

// visited returns a look at the visitors, which finds one in an object.
func visited(inside spec.Address) func(context.Context, []spec.Address) (map[spec.Address][]state.Holder, error) {
	return func(_ context.Context, all []spec.Address) (map[spec.Address][]state.Holder, error) {
		if !slices.Contains(all, inside) {
			return nil, nil
		}
		return map[spec.Address][]state.Holder{inside: {{PID: 42, Host: "ada", Command: "vmctl vm exec"}}}, nil
	}
}
