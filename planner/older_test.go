package planner_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// everything lets the type of the scene support every attribute of a vm, each of
// which restarts it.
func (s *scene) everything() {
	restart := func(cty.Value, cty.Value, bool) providers.Verdict {
		return providers.Verdict{Applies: providers.Restart, Reason: "planted"}
	}
	kinds := maps.Clone(s.options.Types.Systems["libvirt"].Kinds[spec.VM])
	for name := range spec.WantType(spec.VM).AttributeTypes() {
		kinds[name] = providers.Attribute{Judge: restart}
	}
	typ := s.options.Types.Systems["libvirt"]
	typ.Kinds = map[spec.Kind]map[string]providers.Attribute{spec.VM: kinds}
	s.options.Types.Systems = map[string]providers.Type{"libvirt": typ}
}

// without returns v without the value at a path.
func without(v cty.Value, path string) cty.Value {
	name, rest, deeper := strings.Cut(path, ".")
	parts := v.AsValueMap()
	if deeper {
		parts[name] = without(parts[name], rest)
	} else {
		delete(parts, name)
	}
	return cty.ObjectVal(parts)
}

// pathsOf lists the attributes of an object, and of those inside of it.
func pathsOf(v cty.Value, prefix string) []string {
	var all []string
	for name, part := range v.AsValueMap() {
		all = append(all, prefix+name)
		if part.Type().IsObjectType() && !part.IsNull() {
			all = append(all, pathsOf(part, prefix+name+".")...)
		}
	}
	slices.Sort(all)
	return all
}

// A record of a build that had fewer attributes and policies is no reason for a
// change, as long as the spec does not mention them.
func TestRecordOfABuildWithFewerAttributes(t *testing.T) {
	plain := after(t, one).config.Resources[0]
	settled := []string{"cpus", "memory", "name", "running", "ssh", "accel", "boot", "port_forward"} // the first build had these
	lack := func(t *testing.T, spec string, paths ...string) string {
		t.Helper()
		s := after(t, one)
		s.config = load(t, spec)
		s.everything()
		r := s.state.Records[addr(t, "vm.a")]
		for _, path := range paths {
			if side, rest, _ := strings.Cut(path, " "); side == "policy" {
				r.Policy = without(r.Policy, rest)
			} else {
				r.Values = without(r.Values, rest)
			}
		}
		s.state.Records[addr(t, "vm.a")] = r
		p, err := s.plan()
		if err != nil {
			t.Fatal(err)
		}
		return text(p)
	}
	var all []string
	for _, path := range pathsOf(plain.Want, "want ") {
		if name := strings.TrimPrefix(path, "want "); !slices.Contains(settled, firstName(name)) {
			all = append(all, path)
		}
	}
	all = append(all, pathsOf(plain.Policy, "policy ")...)
	if len(all) < 25 {
		t.Fatalf("only %d attributes: %v", len(all), all)
	}
	for _, path := range all {
		if got := lack(t, one, path); got != "" {
			t.Errorf("without %s:\n%s", path, got)
		}
	}
	tops := slices.DeleteFunc(slices.Clone(all), func(path string) bool { return strings.Contains(path, ".") })
	if got := lack(t, one, tops...); got != "" {
		t.Errorf("without %s:\n%s", strings.Join(tops, ", "), got)
	}
	for mentioned, want := range map[string]string{
		"rollout { max_unavailable = 2 }":       "how vmctl treats it changed",
		"restart_triggers = { a = 1 }":          "restart_triggers {} -> {a 1}, restart",
		"image = \"https://example.org/x\"":     "image none -> {source https://example.org/x}, restart",
		"cloud_init { user_data = \"\" }":       "cloud_init none -> {user_data \"\"}, restart",
		"template = \"a: 1\"":                   "template none -> \"a: 1\\n\", restart",
		"params = { a = 1 }":                    "params {} -> {a 1}, restart",
		"plain = false":                         "plain none -> false, restart",
		"mount { source = \"src\" }":            "mount",
		"lifecycle { ignore_changes = [cpus] }": "how vmctl treats it changed",
	} {
		source := "vm \"a\" {\n  memory = \"256MiB\"\n  " + mentioned + "\n}\n"
		if got := lack(t, source, tops...); !strings.Contains(got, want) {
			t.Errorf("with %s:\n%s, want %s", mentioned, got, want)
		}
	}
}

func firstName(path string) string {
	first, _, _ := strings.Cut(path, ".")
	return first
}
