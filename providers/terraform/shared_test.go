package terraform

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"vmctl/providers"
)

// jsonObject returns an object as a spec has it.
func jsonObject(t *testing.T, text string) cty.Value {
	t.Helper()
	kind, err := ctyjson.ImpliedType([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := ctyjson.Unmarshal([]byte(text), kind)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// stateOf returns a state with resources, each as TYPE.NAME=ID; ! behind it: it is tainted.
func stateOf(resources ...string) string {
	var all []string
	for _, r := range resources {
		address, id, _ := strings.Cut(r, "=")
		kind, name, _ := strings.Cut(address, ".")
		status := ""
		id, tainted := strings.CutSuffix(id, "!")
		if tainted {
			status = `"status": "tainted", `
		}
		all = append(all, fmt.Sprintf(`{"mode": "managed", "type": %q, "name": %q, "provider": "p", "instances": [{%s"attributes": {"id": %q}}]}`, kind, name, status, id))
	}
	return `{"version": 4, "serial": 3, "lineage": "l", "outputs": {}, "resources": [` + strings.Join(all, ", ") + `]}`
}

// sharedScene has workspaces with states in memory.
func sharedScene(t *testing.T, belonging shared, states map[string]string) (*Provider, recalledStates) {
	t.Helper()
	p := &Provider{shared: belonging, settings: providers.Settings{Name: "cloud", Dir: t.TempDir()}}
	r := recalledStates{texts: map[string][]byte{}}
	for _, name := range slices.Sorted(maps.Keys(states)) {
		r.all = append(r.all, workspace{name: name})
		r.texts[name] = []byte(states[name])
	}
	return p, r
}

// A workspace joins what exists of the shared resources: as another state has it, or by its ID in the block; what exists nowhere is made
// by the first. What two states have differently is decided by nobody but the user.
func TestJoining(t *testing.T) {
	for name, test := range map[string]struct {
		shared shared
		states map[string]string // of the others
		kept   string            // the state of what stayed; "": none
		own    string
		want   string
	}{
		"there are none":                 {nil, map[string]string{"b": stateOf("net.a=1")}, "", "", "[] map[] false"},
		"the first":                      {shared{"net.a": ""}, nil, "", "", "[] map[] true"},
		"another has it":                 {shared{"net.a": ""}, map[string]string{"b": stateOf("net.a=1", "vm.b=2")}, "", "", "[net.a=1] map[] false"},
		"it has it itself":               {shared{"net.a": ""}, map[string]string{"b": stateOf("net.a=1")}, "", stateOf("net.a=1"), "[] map[] false"},
		"it stayed":                      {shared{"net.a": ""}, nil, stateOf("net.a=1"), "", "[net.a=1] map[] false"},
		"another has it, and it stayed":  {shared{"net.a": ""}, map[string]string{"b": stateOf("net.a=2")}, stateOf("net.a=1"), "", "[net.a=2] map[] false"},
		"the block has its ID":           {shared{"net.a": "1"}, nil, "", "", "[] map[net.a:1] false"},
		"another has another ID":         {shared{"net.a": "1"}, map[string]string{"b": stateOf("net.a=2")}, "", "", "[] map[net.a:1] false"},
		"one of two":                     {shared{"net.a": "", "disk.d": ""}, map[string]string{"b": stateOf("net.a=1")}, "", "", "[net.a=1] map[] true"},
		"two differ":                     {shared{"net.a": ""}, map[string]string{"b": stateOf("net.a=1"), "c": stateOf("net.a=2")}, "", "", "have different objects as the shared net.a"},
		"two differ, and the ID is told": {shared{"net.a": "2"}, map[string]string{"b": stateOf("net.a=2"), "c": stateOf("net.a=1")}, "", "", "[net.a=2] map[] false"},
		"it is tainted":                  {shared{"net.a": ""}, map[string]string{"b": stateOf("net.a=1!")}, "", "", "the shared net.a is tainted in the workspace b"},
		"it is whole elsewhere":          {shared{"net.a": ""}, map[string]string{"b": stateOf("net.a=1!"), "c": stateOf("net.a=1")}, "", "", "[net.a=1] map[] false"},
		"unreadable":                     {shared{"net.a": ""}, map[string]string{"b": `{"version": 3}`}, "", "", "read the workspace b: its format is unknown"},
	} {
		p, from := sharedScene(t, test.shared, test.states)
		if test.kept != "" {
			if err := os.MkdirAll(filepath.Dir(p.keptPath()), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p.keptPath(), []byte(test.kept), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		from.all = append(from.all, workspace{name: "own"})
		from.texts["own"] = []byte(stateOf("net.a=own")) // that of the VM itself does not count
		add, err := p.joiningOf(context.Background(), from, "own", []byte(test.own))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			copies := []string{}
			for _, e := range add.copies {
				copies = append(copies, e.address+"="+e.id)
			}
			got = fmt.Sprint(copies, add.imports, add.first)
			if add.imports == nil {
				got = fmt.Sprint(copies, map[string]string{}, add.first)
			}
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// A state tells the resources of the VM alone, what is tainted, and old copies.
func TestReadState(t *testing.T) {
	const text = `{"version": 4, "resources": [
		{"mode": "data", "type": "aws_ami", "name": "x", "instances": [{}]},
		{"module": "module.m", "mode": "managed", "type": "aws_vm", "name": "a", "instances": [{"index_key": "k"}, {"index_key": 1, "status": "tainted"}]},
		{"mode": "managed", "type": "aws_vm", "name": "b", "instances": [{}, {"deposed": "0a1b"}]},
		{"mode": "managed", "type": "aws_net", "name": "n", "instances": [{}]},
		{"mode": "managed", "type": "aws_vm", "name": "none", "instances": []}]}`
	s, err := readState([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"aws_vm.b", "aws_vm.b (deposed)", `module.m.aws_vm.a["k"]`, "module.m.aws_vm.a[1]"}, s.managed(shared{"aws_net.n": ""})); diff != "" {
		t.Errorf("its own (-want +got):\n%s", diff)
	}
	if got := s.managed(shared{"aws_net.n": "", `module.m.aws_vm.a["k"]`: "", "aws_vm.b": ""}); !slices.Equal(got, []string{"module.m.aws_vm.a[1]"}) {
		t.Errorf("its own: %v", got)
	}
	if got := s.flawed(); !slices.Equal(got, []string{"module.m.aws_vm.a[1]"}) {
		t.Errorf("tainted: %v", got)
	}
	if got := s.copies(); len(got) != 1 || got[0].address != "aws_vm.b" {
		t.Errorf("with an old copy: %v", got)
	}
	for text, want := range map[string]string{
		"": "", " \n": "", `{"version": 4}`: "", `{"version": 3}`: "its format is unknown", `{"encrypted_data": "x"}`: "OpenTofu has encrypted it", "{": "it is no state of a Terraform module",
	} {
		_, err := readState([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
