package terraform

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// The name of a workspace is one that every backend takes, holds the ID, and the address unless that is long. Different addresses
// have different names.
func TestWorkspaceName(t *testing.T) {
	wellNamed := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	rapid.Check(t, func(r *rapid.T) {
		a, b := drawAddress(r, "a"), drawAddress(r, "b")
		id := providers.ID(rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`).Draw(r, "id"))
		lineage := rapid.StringMatching(`[a-z0-9]{10}(/[a-z0-9]{10})?`).Draw(r, "lineage")
		name := workspaceName(lineage, a, id)
		w, ok := parseWorkspace(name)
		if !ok || w.id != id || w.lineage != encode(lineage) || len(name) > 90 || !wellNamed.MatchString(name) {
			r.Fatalf("%q, of %d bytes, is read as %+v, %t", name, len(name), w, ok)
		}
		if at, known := w.at(); known && at != a || known != (plainLength(addressText(a)) <= longestPart) {
			r.Errorf("%s in %q is read as %s, %t", a, name, at, known)
		}
		if (a == b) != (name == workspaceName(lineage, b, id)) {
			r.Errorf("%s and %s have the name %q", a, b, name)
		}
	})
}

// plainLength returns the length of a text that is encoded, and no digest.
func plainLength(text string) (n int) {
	for i := range len(text) {
		n += 3
		if c := text[i]; c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			n -= 2
		}
	}
	return n
}

func drawAddress(r *rapid.T, label string) spec.Address {
	return spec.Address{
		Kind: spec.VM, Name: rapid.StringMatching(`[a-z_][a-zA-Z0-9_-]{0,30}`).Draw(r, label),
		Key: rapid.OneOf(rapid.Just(""), rapid.StringN(1, 12, -1)).Draw(r, label+" key"),
	}
}

// What others have named is no workspace of vmctl.
func TestWorkspacesOfOthers(t *testing.T) {
	const ours = "vmctl--k7m2qd9x4r--web--0123456789abcdef0123456789abcdef"
	if w, ok := parseWorkspace(ours); !ok || w.id != "01234567-89ab-cdef-0123-456789abcdef" {
		t.Errorf("%q is read as %+v, %t", ours, w, ok)
	}
	for _, name := range []string{
		"", "default", "released" + ours[5:], ours + "0", ours[:len(ours)-1], ours + "--x", "xvmctl" + ours[5:], ours[:len(ours)-1] + "G", "vmctl--web--0123456789abcdef0123456789abcdef",
	} {
		if w, ok := parseWorkspace(name); ok {
			t.Errorf("%q is read as %+v", name, w)
		}
	}
	p := &Provider{settings: providers.Settings{Project: providers.Project{ID: "k7m2qd9x4r"}}}
	other := "vmctl--" + encode("aaaaaaaaaa") + ours[len("vmctl--k7m2qd9x4r"):]
	mine := "vmctl--" + encode(p.settings.Project.Lineage()) + ours[len("vmctl--k7m2qd9x4r"):]
	if all := p.ours([]string{"default", other, mine}); len(all) != 1 || all[0].name != mine {
		t.Errorf("of the project are %+v", all)
	}
}

// A text that is encoded is decoded again, and only a long one is a digest.
func TestEncode(t *testing.T) {
	for text, want := range map[string]string{
		"web": "web", "Web": "-57eb", "a_b": "a-5fb", "w[x": "w-5bx", "a-b": "a-2db", "": "", "ü": "-c3-bc", "aaaaaaaaaaaaaaaaaaaaaa": "aaaaaaaaaaaaaaaaaaaaaa",
	} {
		got := encode(text)
		if back, ok := decode(got); got != want || !ok || back != text {
			t.Errorf("%q is encoded as %q, want %q, and decoded as %q, %t", text, got, want, back, ok)
		}
	}
	long := encode("aaaaaaaaaaaaaaaaaaaaaaa")
	if _, ok := decode(long); ok || len(long) > longestPart {
		t.Errorf("%q is no digest", long)
	}
	for _, broken := range []string{"-", "-5", "-zz", "a-g0"} {
		if back, ok := decode(broken); ok {
			t.Errorf("%q is decoded as %q", broken, back)
		}
	}
}

// The attributes of a VM are what outputs tell, of the right type, once it has resources.
func TestComputed(t *testing.T) {
	const outputs = `"ip": {"value": "192.0.2.7", "type": "string"}, "port": {"value": 2222, "type": "number"}, "list": {"value": ["x"], "type": ["list", "string"]},
		"none": {"value": null, "type": "string"}, "bad": {"value": 1, "type": "nonsense"}`
	const made = `"resources": [{"mode": "managed", "type": "aws_vm", "name": "a", "instances": [{}]}], `
	for name, test := range map[string]struct {
		state, block string
		address      string
		port         int
	}{
		"all":                    {made, `{"address": "ip", "ssh_port": "port"}`, "192.0.2.7", 2222},
		"the port has a default": {made, `{"address": "ip"}`, "192.0.2.7", 22},
		"of another type":        {made, `{"address": "port", "ssh_port": "ip"}`, "", 0},
		"a list":                 {made, `{"address": "list"}`, "", 0},
		"null":                   {made, `{"address": "none"}`, "", 0},
		"unreadable":             {made, `{"address": "bad"}`, "", 0},
		"there is none":          {made, `{"address": "no"}`, "", 0},
		"nothing was made":       {"", `{"address": "ip", "ssh_port": "port"}`, "", 0},
	} {
		state, err := readState([]byte(`{"version": 4, ` + test.state + `"outputs": {` + outputs + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		s := &seen{state: state, own: state.managed(nil)}
		got := s.computed(jsonObject(t, test.block))
		address := ""
		if v := got[outAddress]; ctyread.Known(v) {
			address = v.AsString()
		}
		port := 0
		if v := got[outSSHPort]; ctyread.Known(v) {
			n, _ := v.AsBigFloat().Int64()
			port = int(n)
		}
		if address != test.address || port != test.port {
			t.Errorf("%s: %q, port %d; want %q, port %d", name, address, port, test.address, test.port)
		}
	}
}
