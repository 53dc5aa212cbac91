package planner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// leaks returns the leaks of a scene, a line for each, those that could not be read last.
func (s *scene) leaks() string {
	s.t.Helper()
	s.options.Inward = true
	w, err := planner.Observe(s.t.Context(), s.open, s.config, s.state, s.options)
	if err != nil {
		s.t.Fatal(err)
	}
	d, err := planner.Diff(s.config, s.state, w, s.options)
	if err != nil {
		s.t.Fatal(err)
	}
	found, text := planner.LeaksOf(d, w), ""
	for _, l := range found.All {
		var next []string
		for _, advice := range l.Next {
			next = append(next, advice.Text+strings.Join(advice.Args, " "))
		}
		text += fmt.Sprintf("%s %s goes=%t orphan=%t: %s > %s\n", l.Kind, l.Address, l.Goes, l.Orphan, strings.Join(l.Evidence, "; "), strings.Join(next, "; "))
	}
	for _, l := range found.Unread {
		text += fmt.Sprintf("unread %s%s: %s\n", l.Address, map[bool]string{true: l.Object}[l.System != nil], strings.Join(l.Evidence, "; "))
	}
	return uuid.ReplaceAllString(text, "ID")
}

func TestLeaks(t *testing.T) {
	for _, test := range []struct {
		name, applied, spec string
		change              func(*scene)
		want                string
	}{
		{name: "nothing", applied: one + note},
		{name: "what is to be made or destroyed has not leaked", applied: one, spec: "vm \"b\" {\n}\n"},
		{
			name: "a record without an object, and without a block", applied: one + note, spec: one,
			change: func(s *scene) { s.vanish("box.note") },
			want:   "missing box.note goes=true orphan=false: its record is there, it is gone, and no block wants it > cleanup box.note\n",
		},
		{name: "with a block, it is made again", applied: one + note, change: func(s *scene) { s.vanish("box.note") }},
		{
			name: "an object inside of another one", applied: one + note, spec: one, change: func(s *scene) { s.forget("box.note"); s.madeElsewhere() },
			want: "orphan box.note goes=false orphan=true: libvirt box \"demo.note\" (9) bears our mark; it is in neither the spec nor the state; another data directory made it: it may be in use from there > to remove it: cleanup box.note\n",
		},
		{
			name: "one that this data directory made", applied: one + note, spec: one, change: func(s *scene) { s.forget("box.note") },
			want: "orphan box.note goes=true orphan=true: libvirt box \"demo.note\" (ID) bears our mark; it is in neither the spec nor the state > to remove it: cleanup box.note\n",
		},
		{
			name: "with a block, and without a record", applied: one, change: func(s *scene) { s.forget("vm.a") },
			want: "orphan vm.a goes=false orphan=false: it is there, and its record was lost > apply\n",
		},
		{
			name: "a second object of an address that has one", applied: one, change: func(s *scene) {
				sys := s.system("qemu:///session")
				sys.inventory.Objects = append(sys.inventory.Objects, providers.Object{
					Kind: spec.VM, ID: "9", Name: "other", Owner: &providers.Mark{ID: project.ID, Address: addr(s.t, "vm.a"), Of: "9"},
				})
			},
			want: "orphan vm.a goes=false orphan=false: libvirt vm \"other\" (9) bears our mark; it is in neither the spec nor the state; the object of vm.a is another one; another data directory made it: it may be in use from there > delete it with the system's own tool, if nobody needs it\n",
		},
		{
			name: "a lock and remains", applied: one + cache, change: func(s *scene) {
				s.objectOf("disk.cache").Findings = []providers.Finding{{Kind: providers.FindStaleLock, Evidence: []string{"its holder is gone"}}}
				s.object().Findings = []providers.Finding{{Kind: providers.FindLeftover, Evidence: []string{"a pid file"}}, {Kind: providers.FindCrashed}}
			},
			want: "leftover vm.a goes=false orphan=false: a pid file > apply\n" +
				"stale_lock disk.cache goes=false orphan=false: its holder is gone > disk unlock disk.cache\n",
		},
		{
			name: "a lock of a VM", applied: one, change: func(s *scene) {
				s.object().Findings = []providers.Finding{{Kind: providers.FindStaleLock, Evidence: []string{"its holder is gone"}}}
			},
			want: "stale_lock vm.a goes=false orphan=false: its holder is gone > apply\n",
		},
		{
			name: "a system that could not be read", applied: one, spec: one, change: func(s *scene) {
				s.system("qemu:///session").inventory.Partial = map[spec.Kind]*providers.Problem{spec.Disk: providers.Refuse("the daemon hung up", nil)}
			},
			want: "unread provider.libvirt.default: the daemon hung up\n",
		},
		{name: "what could not be read", applied: one, change: func(s *scene) { s.veil("vm.a") }, want: "unread vm.a: no answer\n"},
		{
			name: "a step that did not end", applied: one, change: func(s *scene) { s.interrupt("vm.a", "stop") },
			want: "interrupted vm.a goes=false orphan=false: an earlier run began to stop it at 2026-05-01 12:00:00 UTC and did not end; it may have left: half of it > apply\n",
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
			if d := cmp.Diff(test.want, s.leaks()); d != "" {
				t.Errorf("leaks (-want +got):\n%s", d)
			}
		})
	}
}

// box returns the object of box.note.
func (s *scene) box() *providers.Object { return &s.inside("vm.a").inventory.Objects[0] }

// madeElsewhere gives the object of box.note an ID that another data directory would.
func (s *scene) madeElsewhere() { s.box().ID, s.box().Owner.Of = "9", "9" }

// A clean-up removes the orphan that it names, wherever that is, and nothing else. What forbids an end forbids this one, too.
func TestCleanUp(t *testing.T) {
	const destroys = "destroy box.note: it is in neither the spec nor the state\n0 close box.note\n1 remove box.note after 0\n"
	for _, test := range []struct {
		name   string
		change func(*scene)
		want   string
	}{
		{"that this data directory made", func(*scene) {}, destroys},
		{"that another one made", (*scene).madeElsewhere, destroys},
		{"whose run state could not be read", func(s *scene) {
			s.box().Running, s.box().Unreadable = nil, map[string]string{"running": "no answer"}
		}, "noop box.note\n  unknown: its run state could not be read: no answer\n"},
		{"in a VM that is off", func(s *scene) { s.off() }, "found drift vm.a: it is off, and vmctl left it running\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, one+note)
			s.config = load(t, strings.Replace(one, "256MiB", "512MiB", 1))
			test.change(s)
			s.forget("box.note")
			a := addr(t, "box.note")
			s.options.Inward, s.options.CleanUp, s.options.Scope = true, map[spec.Address]bool{a: true}, planner.Scope{Targets: []spec.Address{a}, Alone: true}
			s.check(test.want)
		})
	}
}
