//go:build unix

package lima_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers/lima"
	"vmctl/spec"
)

// The whole text of a template stands in the place of its name or its bases. What the block itself sets counts, and
// not what only a base says; both of the user's own is for the check.
func TestTemplatesAreExpanded(t *testing.T) {
	const base = "base: []\ncontainerd: {user: null}\ncpus: null\nimages: [{location: b}]\nmounts: [{location: ~}]\nplain: true\n"
	mount := set("mount", cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{
		"source": cty.StringVal("/src"), "target": cty.NullVal(cty.String), "writable": cty.False,
	})}))
	noImage := set("image", cty.NullVal(cty.DynamicPseudoType))
	for name, c := range map[string]struct {
		template string
		edits    []func(map[string]cty.Value)
		want     string // the fields, or the flaw
		runs     int    // of vmctl-lima
	}{
		"nothing elsewhere":      {template: "env: {}\n", want: "env"},
		"name":                   {template: "template:docker", want: "containerd mounts plain", runs: 1},
		"name, without an image": {template: "template:docker", edits: []func(map[string]cty.Value){noImage}, want: "containerd images mounts plain", runs: 1},
		"base, and a block":      {template: "base: a.yaml\n", edits: []func(map[string]cty.Value){mount}, want: "containerd plain", runs: 1},
		"of the user's own":      {template: "base: a.yaml\nimages: []\nmounts: []\n", edits: []func(map[string]cty.Value){mount, set("plain", cty.True)}, want: "containerd images mounts", runs: 1},
		"based on nothing":       {template: "base: null\nenv: {}\n", want: "env"},
		"no bases":               {template: "base: []\nenv: {}\n", want: "env"},
		"no bases, and a file":   {template: "base: []\nprobes: [{file: a.sh}]\n", want: "containerd mounts plain", runs: 1},
		"file of a script":       {template: "probes: [{file: a.sh}]\n", want: "containerd mounts plain", runs: 1},
		"that cannot be read":    {template: "template:nothing", want: "Its whole text cannot be had: not found: nothing.", runs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			typ := lima.Type(lima.Host{Program: embedding(t, dir, base), Getenv: os.Getenv})
			wanted := want(append(c.edits, set("template", cty.StringVal(c.template)))...)
			if names := typ.Elsewhere(spec.VM, wanted) != ""; names != (c.runs > 0) {
				t.Errorf("names a text elsewhere: %t, want %t", names, c.runs > 0)
			}
			for range 2 {
				got, flaw := typ.Expand(t.Context(), spec.VM, wanted, "/specs")
				if said := described(got, flaw); said != c.want {
					t.Errorf("expanded: %s, want %s", said, c.want)
				}
			}
			asked, err := os.ReadFile(filepath.Join(dir, "asked"))
			if err != nil && c.runs > 0 {
				t.Error(err)
			}
			if diff := cmp.Diff(strings.Repeat("embed /specs\n", c.runs), string(asked)); diff != "" {
				t.Errorf("runs of vmctl-lima (-want +got):\n%s", diff)
			}
		})
	}
}

// described returns the fields of an expanded template, or the flaws.
func described(want cty.Value, flaw *spec.Flaw) string {
	if flaw != nil {
		return flaw.Detail
	}
	var fields []string
	for line := range strings.Lines(ctyread.Text(want, "template")) {
		if key, _, found := strings.Cut(line, ":"); found && !strings.HasPrefix(key, " ") {
			fields = append(fields, key)
		}
	}
	return strings.Join(fields, " ")
}

// embedding returns a program that answers as vmctl-lima embed, with one template for all but template:nothing, and
// writes down how it was called.
func embedding(t *testing.T, dir, template string) string {
	t.Helper()
	path := filepath.Join(dir, "vmctl-lima")
	script := fmt.Sprintf(`#!/bin/sh
echo "$@" >>%[1]s/asked
case $(cat) in
template:nothing) echo '{"error":"not found: nothing"}'; exit 1 ;;
*) cat %[1]s/answer ;;
esac
`, dir)
	answer, err := json.Marshal(map[string]string{"template": template})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "answer"), answer, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	return path
}
