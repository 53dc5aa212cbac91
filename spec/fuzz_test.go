package spec_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"vmctl/spec"
)

// FuzzLoad loads any text, and evaluates a spec without mistakes further.
func FuzzLoad(f *testing.F) {
	example, err := os.ReadFile("testdata/example/example.vmctl.hcl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	f.Add([]byte(chain))
	archives, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range archives {
		a, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			if filepath.Base(file.Name) == "main.vmctl.hcl" {
				f.Add(file.Data)
			}
		}
	}
	dir := f.TempDir()
	write(f, filepath.Join(dir, "kernel"), []byte("a kernel"))
	f.Fuzz(func(t *testing.T, src []byte) {
		write(t, filepath.Join(dir, "main.vmctl.hcl"), src)
		in := spec.Inputs{Vars: []string{"memory=1GiB"}, Environ: []string{"VMCTL_VAR_names=[\"a\"]", "VMCTL_VAR_user=me"}}
		c, diags := spec.Load(dir, in)
		text := render(t, c, diags)
		for _, d := range diags {
			if d.Summary == "" || d.Detail == "" {
				t.Errorf("a diagnostic says nothing:\n%s", text)
			}
		}
		in.Partial = true
		kept, again := spec.Load(dir, in)
		if again.HasErrors() != diags.HasErrors() || !diags.HasErrors() && len(kept.Resources) != len(c.Resources) {
			t.Errorf("read anyway: %v, and %d resources:\n%s", again, len(kept.Resources), text)
		}
		for _, r := range kept.Resources { // what is kept may be used
			got, diags := kept.Resolve(r.Address, nil)
			if diags.HasErrors() || !got.Want.RawEquals(r.Want) || !got.Policy.RawEquals(r.Policy) {
				t.Errorf("read anyway, %s resolves to %#v, %v", r.Address, got.Want, diags)
			}
		}
		formatted, bad := spec.Format(src, "main.vmctl.hcl")
		if bad.HasErrors() {
			return
		}
		if _, bad := spec.Format(formatted, "main.vmctl.hcl"); bad.HasErrors() {
			t.Errorf("formatting breaks it: %v\n%s", bad, formatted)
		}
		if diags.HasErrors() {
			return
		}
		if _, diags := c.Outputs(nil); diags.HasErrors() {
			t.Errorf("outputs: %v", diags)
		}
		for _, r := range c.Resources {
			got, diags := c.Resolve(r.Address, nil)
			if diags.HasErrors() || !got.Want.RawEquals(r.Want) || !got.Policy.RawEquals(r.Policy) {
				t.Errorf("%s resolves to %#v, %v", r.Address, got.Want, diags)
			}
			if found, err := c.Lookup(r.Address.String()); err != nil || len(found) != 1 {
				t.Errorf("%s is not found: %v", r.Address, err)
			}
		}
	})
}

// FuzzInit writes into any file, which must then hold the project and the id.
func FuzzInit(f *testing.F) {
	for _, src := range []string{"", "vmctl {}", "vmctl { project = \"a\" }", "vmctl { # x\n}\r\n", "vmctl {\n  state {}\n}", "vmctl{project=<<E\nE\n}"} {
		f.Add([]byte(src))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, src []byte) {
		write(t, filepath.Join(dir, "main.vmctl.hcl"), src)
		if err := os.RemoveAll(filepath.Join(dir, "vmctl.vmctl.hcl")); err != nil {
			t.Fatal(err)
		}
		path, _, err := spec.Init(dir, "demo", newID)
		if err != nil {
			return
		}
		c, diags := spec.Load(dir, spec.Inputs{})
		for _, d := range diags {
			if d.Subject == nil || d.Summary == "Missing project" || d.Summary == "Declared twice" {
				t.Errorf("%s after init: %v", path, d)
			}
		}
		if !diags.HasErrors() && c.Settings.ID == "" {
			t.Errorf("%s has no id", path)
		}
	})
}
