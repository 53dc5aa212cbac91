package planner_test

import (
	"strings"
	"testing"

	"vmctl/planner"
	"vmctl/spec"
)

// reached returns what a plan reaches.
func (s *scene) reached() string {
	s.t.Helper()
	p, err := s.plan()
	if err != nil {
		s.t.Fatal(err)
	}
	var all []string
	for _, r := range p.Reach {
		all = append(all, r.Address.String()+" "+string(r.What)+" "+r.Text)
	}
	return strings.Join(all, "\n")
}

// What a plan reaches is what its blocks reach and its records do not.
func TestReach(t *testing.T) {
	const at8080 = "vm.a port guest 80, host 8080, host_ip 127.0.0.1, protocol tcp"
	for _, test := range []struct {
		name, applied, spec string
		change              func(*scene)
		want                string
	}{
		{name: "nothing new", applied: forwards("a", "127.0.0.1", ""), spec: forwards("a", "127.0.0.1", "  memory = \"512MiB\"\n")},
		{name: "a port more", applied: bare("a", ""), spec: forwards("a", "127.0.0.1", ""), want: at8080},
		{name: "a port less", applied: forwards("a", "127.0.0.1", ""), spec: bare("a", "")},
		{name: "another address", applied: forwards("a", "127.0.0.1", ""), spec: forwards("a", "0.0.0.0", ""), want: strings.Replace(at8080, "127.0.0.1", "0.0.0.0", 1)},
		{
			name: "one that is lost is made again with the same", applied: forwards("a", "127.0.0.1", ""), spec: forwards("a", "127.0.0.1", ""),
			change: func(s *scene) { s.lose("vm.a") },
		},
		{
			name: "one whose record is lost reaches all anew", applied: forwards("a", "127.0.0.1", ""), spec: forwards("a", "127.0.0.1", ""),
			change: func(s *scene) { s.forget("vm.a") }, want: at8080,
		},
		{
			name: "what is blocked reaches nothing", applied: "vm \"a\" {\n  boot {\n    kernel  = \"kernel\"\n    cmdline = \"x\"\n  }\n}\n",
			spec: forwards("a", "127.0.0.1", "  boot {\n    kernel  = \"kernel\"\n    cmdline = \"y\"\n  }\n"),
		},
		{name: "what goes reaches nothing", applied: forwards("a", "127.0.0.1", ""), spec: "# empty\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, test.applied)
			s.config = load(t, test.spec)
			if test.change != nil {
				test.change(s)
			}
			if got := s.reached(); got != test.want {
				t.Errorf("it reaches\n%s\nnot\n%s", got, test.want)
			}
		})
	}
}

// A digest is that of what is reached, wherever the plan was made.
func TestReachDigest(t *testing.T) {
	a := planner.Reach{Address: spec.Address{Kind: spec.VM, Name: "a"}, What: spec.ReachPort, Text: "guest 80"}
	b := a
	b.On = spec.Address{Kind: spec.VM, Name: "b"}
	digests := map[string]bool{}
	for _, all := range [][]planner.Reach{nil, {a}, {b}, {a, b}, {b, a}} {
		digests[planner.ReachDigest(all)] = true
	}
	if len(digests) != 5 {
		t.Errorf("5 lists have %d digests", len(digests))
	}
	if got := planner.ReachDigest([]planner.Reach{a}); got != "86b0e7de1ef2" {
		t.Errorf("the digest is %s: it must be the one of earlier builds", got)
	}
}
