package planner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// owe makes something due on the objects inside of vm.a.
func (s *scene) owe(due ...providers.Due) {
	inventory := &s.inside("vm.a").inventory
	for i := range inventory.Objects {
		inventory.Objects[i].Due = due
	}
}

// owed adds a step for each thing that is due in a change to its other steps.
func owed(steps []providers.Step, c providers.Change) []providers.Step {
	if c.Action != providers.Update {
		return steps
	}
	for _, due := range c.Due {
		phase := providers.PhaseChange
		if strings.HasPrefix(due.Op, "prepare") {
			phase = providers.PhasePrepare
		}
		steps = machine.Append(steps, c, providers.Step{Op: due.Op, Phase: phase, Object: c.ID, Name: c.Name})
	}
	return steps
}

// What is due on an object that is otherwise as wanted is an update, unless the command is about something else.
func TestDue(t *testing.T) {
	hook, push := providers.Due{Op: "hook a", Reason: "hook a has not run yet"}, providers.Due{Op: "push", Reason: "commits wait"}
	for _, test := range []struct {
		name   string
		change func(*scene)
		want   string
	}{
		{name: "one", change: func(*scene) {}, want: "update box.note: hook a has not run yet; commits wait\n0 hook a box.note\n1 push box.note after 0\n"},
		{name: "its record is lost", change: func(s *scene) { s.forget("box.note") }, want: "update box.note: hook a has not run yet; commits wait\n0 hook a box.note\n1 push box.note after 0\n"},
		{name: "nothing is due", change: func(s *scene) { s.owe() }, want: ""},
		{name: "a VM is to run", change: func(s *scene) { s.options.Running = map[spec.Address]bool{addr(s.t, "vm.a"): true} }, want: ""},
		{
			name: "a VM is to run, and its user is to get in", want: "update box.note: its mount does not answer\n0 remount box.note\n",
			change: func(s *scene) {
				s.owe(hook, providers.Due{Op: "remount", Reason: "its mount does not answer", Access: true}, push)
				s.options.Running = map[spec.Address]bool{addr(s.t, "vm.a"): true}
			},
		},
		{
			name: "only what is recorded counts, though its user is to get in", want: "",
			change: func(s *scene) {
				s.owe(providers.Due{Op: "remount", Reason: "its mount does not answer", Access: true})
				s.options.Heal = true
			},
		},
		{name: "only what is recorded counts", change: func(s *scene) { s.options.Heal = true }, want: ""},
		{name: "it goes back to its record", change: func(s *scene) { s.options.Revert = map[spec.Address]bool{addr(s.t, "box.note"): true} }, want: ""},
		{
			name: "it is destroyed", change: func(s *scene) { s.config = load(s.t, one) },
			want: "destroy box.note: it is not in the spec\n0 close box.note\n1 remove box.note after 0\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, one+note)
			s.owe(hook, push)
			test.change(s)
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, text(p)); diff != "" {
				t.Errorf("the plan (-want +got):\n%s", diff)
			}
		})
	}
}

// What uses an object stays up until what the object is to hold is prepared.
func TestUsersStayUpUntilAllIsPrepared(t *testing.T) {
	const user = "box \"user\" {\n  in         = vm.a\n  label      = \"user\"\n  content    = \"x\"\n  depends_on = [box.note]\n}\n"
	s := after(t, one+note+user)
	inventory := &s.inside("vm.a").inventory
	for i := range inventory.Objects {
		if o := &inventory.Objects[i]; o.Owner.Address == addr(t, "box.note") {
			o.Due = []providers.Due{{Op: "prepare", Reason: "it is another one by now"}, {Op: "take", Reason: "it is another one by now"}}
		}
	}
	s.config = load(t, one+note)
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	_, steps, _ := strings.Cut(text(p), "\n0 ")
	if diff := cmp.Diff("prepare box.note\n1 close box.user after 0\n2 remove box.user after 0,1\n3 take box.note after 0\n", steps); diff != "" {
		t.Errorf("the steps (-want +got):\n%s\nof\n%s", diff, text(p))
	}
}

// So does what is around it, which also waits until it is prepared.
func TestWhatIsAroundStaysUpUntilAllIsPrepared(t *testing.T) {
	s := after(t, one+note)
	s.owe(providers.Due{Op: "prepare", Reason: "it is another one by now"}, providers.Due{Op: "take", Reason: "it is another one by now"})
	s.config = load(t, strings.Replace(one, "256MiB", "512MiB", 1)+note)
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	_, steps, _ := strings.Cut(text(p), "\n0 ")
	want := "close box.note\n1 prepare box.note after 0\n2 stop vm.a after 0,1\n3 redefine vm.a after 2\n4 start vm.a after 3\n" +
		"5 wait_ssh vm.a after 4\n6 take box.note after 1,3,4,5\n7 open box.note after 3,4,5,6\n"
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("the steps (-want +got):\n%s\nof\n%s", diff, text(p))
	}
}

// A provider judges by the policy of the spec what is due.
func TestDueIsJudgedByThePolicyOfTheSpec(t *testing.T) {
	s := after(t, one+note)
	s.config = load(t, one+strings.Replace(note, "{\n", "{\n  lifecycle {\n    prevent_destroy = true\n  }\n", 1))
	if _, err := s.plan(); err != nil {
		t.Fatal(err)
	}
	for _, k := range s.inside("vm.a").known {
		if k.Address == addr(t, "box.note") && k.Policy != cty.NilVal && k.Policy.GetAttr("lifecycle").GetAttr("prevent_destroy").True() {
			return
		}
	}
	t.Errorf("the provider got %+v", s.inside("vm.a").known)
}

// Whatever is due, and whatever is asked for: an object on which nothing is due, and that equals its block, has no change; the
// change of one that equals its block has the reasons of all that is due, and nothing else about it; and once that is done,
// nothing is due any more.
func TestLawsOfWhatIsDue(t *testing.T) {
	a := addr(t, "box.note")
	rapid.Check(t, func(r *rapid.T) {
		s := after(t, one+note)
		reasons := rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,8}`), 0, 4).Draw(r, "reasons")
		var due []providers.Due
		for _, reason := range reasons {
			due = append(due, providers.Due{Op: "do " + reason, Reason: reason})
		}
		s.owe(due...)
		power := rapid.SampledFrom([]string{"", "", "", "run", "heal", "revert"}).Draw(r, "command")
		switch power {
		case "run":
			s.options.Running = map[spec.Address]bool{addr(t, "vm.a"): true}
		case "heal":
			s.options.Heal = true
		case "revert":
			s.options.Revert = map[spec.Address]bool{a: true}
		}
		want := ""
		if len(due) > 0 && power == "" {
			want = "update box.note: " + strings.Join(reasons, "; ") + "\n"
			for i, reason := range reasons {
				want += fmt.Sprintf("%d do %s box.note", i, reason)
				if i > 0 {
					want += fmt.Sprintf(" after %d", i-1)
				}
				want += "\n"
			}
		}
		checkText(r, s, want)
		s.owe()
		checkText(r, s, "")
	})
}

func checkText(r *rapid.T, s *scene, want string) {
	p, err := s.plan()
	if err != nil {
		r.Fatal(err)
	}
	if diff := cmp.Diff(want, text(p)); diff != "" {
		r.Fatalf("the plan (-want +got):\n%s", diff)
	}
}
