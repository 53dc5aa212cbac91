package planner_test

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
)

// row L17: what becomes of a VM that runs and has no record.
func TestOrphanPolicy(t *testing.T) {
	under := func(policy string) string {
		return strings.Replace(one, "{\n", "{\n  orphan {\n    policy = \""+policy+"\"\n  }\n", 1)
	}
	broken := func(s *scene) {
		off := false
		o := s.object()
		o.Running, o.State = &off, providers.StateBroken
		o.Findings = []providers.Finding{{Kind: providers.FindBroken, Evidence: []string{"its control socket does not answer"}}}
	}
	const found = "found broken vm.a: its control socket does not answer\n"
	const adopted = "adopt vm.a: it is ours, and its record was lost\n0 record vm.a\n"
	for _, test := range []struct {
		name, spec string
		change     func(*scene)
		want       string
	}{
		{name: "recover, and it works", spec: one, want: adopted},
		{
			name: "recover, and it does not", spec: one, change: broken,
			want: "recover vm.a: it is ours, its record was lost, and it does not work: started anew\n" + found + "0 recover vm.a\n1 start vm.a after 0\n2 wait_ssh vm.a after 1\n3 record vm.a after 0,1,2\n",
		},
		{
			name: "recover, and its state cannot be read", spec: one,
			change: func(s *scene) {
				s.object().Running, s.object().Unreadable = nil, map[string]string{"running": "no answer"}
			},
			want: "noop vm.a\n  unknown: its run state could not be read: no answer\n",
		},
		{name: "adopt, and it works", spec: under("adopt"), want: adopted},
		{
			name: "adopt writes the record, and no more", spec: strings.Replace(under("adopt"), "256MiB", "512MiB", 1), want: adopted,
		},
		{
			name: "adopt, and it does not work", spec: under("adopt"), change: broken,
			want: `adopt vm.a: it is ours, and its record was lost
  blocked: its orphan.policy is adopt, and that it works could not be verified: it is broken (its control socket does not answer)
  > to have it started anew, write in the block of vm.a: orphan { policy = "recover" }
  > or end what runs with the system's own tool
` + found,
		},
		{
			name: "adopt, and its state cannot be read", spec: under("adopt"),
			change: func(s *scene) {
				s.object().Running, s.object().Unreadable = nil, map[string]string{"running": "no answer"}
			},
			want: "noop vm.a\n  unknown: its run state could not be read: no answer\n",
		},
		{name: "stop", spec: under("stop"), want: "stop vm.a: it runs and has no record, and its orphan.policy is stop\n0 stop vm.a\n1 record vm.a after 0\n"},
		{
			name: "report", spec: under("report"),
			want: "found orphan vm.a: libvirt vm \"demo.a\" (ID) runs and bears our mark, and its record was lost\n",
		},
		{
			name: "one that is off is taken back, whatever the policy", spec: strings.Replace(under("report"), "{\n", "{\n  running = false\n", 1),
			change: func(s *scene) { s.off() }, want: adopted,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, one)
			s.forget("vm.a")
			s.config = load(t, test.spec)
			if test.change != nil {
				test.change(s)
			}
			s.check(test.want)
		})
	}
}

// A record that orphan.policy = "adopt" writes has the present values, so that the next plan
// compares them with the wanted ones.
func TestAdoptedAsItIs(t *testing.T) {
	s := after(t, one)
	s.forget("vm.a")
	s.config = load(t, "vm \"a\" {\n  memory = \"512MiB\"\n  orphan {\n    policy = \"adopt\"\n  }\n}\n")
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	c := p.Changes[0]
	if v := c.Prior.GetAttr("memory"); c.Change.Want != cty.NilVal || !v.RawEquals(cty.NumberIntVal(256<<20)) {
		t.Errorf("recorded are %#v of memory, and %#v", v, c.Change.Want)
	}
}
