package spec_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/spec"
)

func inDev(branch string) spec.NewWorkspace {
	return spec.NewWorkspace{Branch: branch, Repo: "my repo", Path: "/work/x", VM: spec.Address{Kind: spec.VM, Name: "web", Key: "a"}}
}

func TestAddWorkspace(t *testing.T) {
	const before = "# Mine.\nvm \"x\" {}   # not formatted"
	const want = before + `

# Written by ` + "`vmctl workspace open` (d01b21e7): `vmctl workspace close`" + ` removes it, unless somebody edits it.
workspace "it_27s_24_7bx_7d" {
  vm            = vm.web["a"]
  repo          = "my repo"
  branch        = "it's$${x}"
  path          = "/work/x"
  create_branch = true
}
`
	got := spec.AddWorkspace([]byte(before), inDev("it's${x}"))
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("the file (-want +got):\n%s", diff)
	}
	if formatted, diags := spec.Format([]byte(strings.TrimPrefix(string(got), before)), "x"); diags.HasErrors() || !strings.HasSuffix(string(got), string(formatted)) {
		t.Errorf("it is not formatted: %v\n%s", diags, formatted)
	}
}

// What is added is removed, and all else stays, byte for byte, whatever it is.
func TestAddAndRemoveWorkspace(t *testing.T) {
	others := rapid.SampledFrom([]string{
		"", "vm \"x\" {}\n", "# a comment\n\n\nlocals { a = \"}\" }\n", "\n\n", "locals {\r\n  b = 1\r\n}\r\n",
		string(spec.AddWorkspace(nil, inDev("other"))), "workspace \"auth\" {\n}\n",
	})
	rapid.Check(t, func(t *rapid.T) {
		before, after, branch := others.Draw(t, "before"), others.Draw(t, "after"), rapid.String().Draw(t, "branch")
		w := inDev(branch)
		src := string(spec.AddWorkspace([]byte(before), w)) + after
		got, removed, diags := spec.RemoveWorkspace([]byte(src), "x", w.Address())
		if diags.HasErrors() || !removed || string(got) != before+after {
			t.Fatalf("removed %t, %v: it is\n%q, want\n%q", removed, diags, got, before+after)
		}
	})
}

func TestAnEditedWorkspaceStays(t *testing.T) {
	w := inDev("auth")
	written := string(spec.AddWorkspace([]byte("vm \"x\" {}\n"), w))
	for name, text := range map[string]string{
		"a value":         strings.Replace(written, "/work/x", "/work/y", 1),
		"a line more":     strings.Replace(written, "= true\n", "= true\n  env {}\n", 1),
		"no mark":         strings.Replace(written, "# Written", "# Once written", 1),
		"a remark":        strings.TrimSuffix(written, "\n") + " # keep this\n",
		"a line between":  strings.Replace(written, "edits it.\n", "edits it.\n\n", 1),
		"another's label": strings.Replace(written, `"auth" {`, `"other" {`, 1),
	} {
		got, removed, diags := spec.RemoveWorkspace([]byte(text), "x", w.Address())
		if removed || diags.HasErrors() || string(got) != text {
			t.Errorf("%s: removed %t, %v:\n%s", name, removed, diags, got)
		}
	}
	if got, removed, diags := spec.RemoveWorkspace([]byte(written+"workspace {"), "f.vmctl.hcl", w.Address()); removed || !diags.HasErrors() ||
		string(got) != written+"workspace {" || diags[0].Subject.Filename != "f.vmctl.hcl" {
		t.Errorf("removed %t from a file that does not parse: %v\n%s", removed, diags, got)
	}
}
