package spec_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/spec"
)

const sourceSpec = `vmctl {
  project = "demo"
  id      = "k7m2qd9x4r"
}

variable "cpus" {
  type = number
}

variable "names" {
  type    = list(object({ name = string, note = optional(string) }))
  default = [{ name = "a" }, { name = "b\n\"quoted\" ${"$"}{not}" }]
}

variable "token" {
  type      = string
  sensitive = true
}

output "notes" {
  value = [for n in var.names : "${n.name} ${file("note.txt")} ${fileexists("more.txt")}"]
}

output "length" {
  value     = length(var.token) + var.cpus
  sensitive = true
}
`

// The source of a Config makes the same Config again, even if the files and the given values have
// changed; sensitive variables are given again.
func TestSource(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.vmctl.hcl"), []byte(sourceSpec))
	write(t, filepath.Join(dir, "note.txt"), []byte("first"))
	first, diags := spec.Load(dir, spec.Inputs{Vars: []string{"cpus=3"}, Environ: []string{"VMCTL_VAR_token=secret"}})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	source := first.Source()
	if cmp.Equal(source.Variables, "") || len(source.Files) != 1 {
		t.Fatalf("source: %+v", source)
	}

	write(t, filepath.Join(dir, "main.vmctl.hcl"), []byte("vmctl {\n  project = \"other\"\n}\n"))
	write(t, filepath.Join(dir, "more.vmctl.hcl"), []byte("nonsense"))
	again, diags := spec.Load(dir, spec.Inputs{
		Source: &source, Vars: []string{"cpus=3"}, Environ: []string{"VMCTL_VAR_token=secret", "VMCTL_VAR_names=[]"},
	})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if diff := cmp.Diff(outputsOf(t, first), outputsOf(t, again)); diff != "" {
		t.Errorf("outputs (-first +again):\n%s", diff)
	}
	if diff := cmp.Diff(source, again.Source()); diff != "" {
		t.Errorf("source (-first +again):\n%s", diff)
	}
	if again.Settings.Project != "demo" {
		t.Errorf("project is %q", again.Settings.Project)
	}

	// A value that differs from the saved one is no slip of the pen.
	_, diags = spec.Load(dir, spec.Inputs{Source: &source, Vars: []string{"cpus=4"}, Environ: []string{"VMCTL_VAR_token=secret"}})
	const want = "`var.cpus` has another value in the saved plan than `--var cpus` gives. Leave it out, or make a new plan."
	if len(diags) != 1 || diags[0].Detail != want {
		t.Errorf("another value: %v, want %s", diags, want)
	}

	// Without the secret, it does not load; with another file it is another spec.
	if _, diags := spec.Load(dir, spec.Inputs{Source: &source}); !diags.HasErrors() {
		t.Error("a sensitive variable was not asked for")
	}
	write(t, filepath.Join(dir, "note.txt"), []byte("second"))
	write(t, filepath.Join(dir, "more.txt"), []byte(""))
	changed, diags := spec.Load(dir, spec.Inputs{Source: &source, Environ: []string{"VMCTL_VAR_token=secret"}})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if diff := cmp.Diff([]string{"more.txt", "note.txt"}, source.Changed(changed.Source())); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
}

// Imports, and instances of a provider, are of the same source.
func TestSourceOfImportsAndInstances(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.vmctl.hcl"), []byte(`variable "hosts" { type = map(string) }
provider "libvirt" "host" {
  for_each = var.hosts
  uri      = each.value
}
disk "data" {
  for_each = var.hosts
  provider = provider.libvirt.host[each.key]
  size     = "1GiB"
}
vm "a" {
  for_each = var.hosts
  provider = provider.libvirt.host[each.key]
  image    = "a.qcow2"
  additional_disk { disk = disk.data[each.key] }
}
import {
  to = disk.data["x"]
  id = "old"
}
`))
	write(t, filepath.Join(dir, "a.qcow2"), []byte("an image"))
	first, diags := spec.Load(dir, spec.Inputs{Vars: []string{`hosts={ x = "qemu:///session", "y z" = "qemu:///system" }`}})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	source := first.Source()
	if len(source.Read) != 0 { // it counts when a machine is made, and is looked at then
		t.Errorf("an image is among %v", source.Read)
	}
	if err := os.RemoveAll(filepath.Join(dir, "main.vmctl.hcl")); err != nil {
		t.Fatal(err)
	}
	again, diags := spec.Load(dir, spec.Inputs{Source: &source})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if diff := cmp.Diff(dump(t, first), dump(t, again)); diff != "" {
		t.Errorf("loaded again (-first +again):\n%s", diff)
	}
	if diff := cmp.Diff(source, again.Source()); diff != "" {
		t.Errorf("source (-first +again):\n%s", diff)
	}
	if len(again.Imports) != 1 || len(again.Providers) != 2 || len(again.Resources) != 4 {
		t.Errorf("%d imports, %d providers, %d resources", len(again.Imports), len(again.Providers), len(again.Resources))
	}
}

func outputsOf(t *testing.T, c *spec.Config) map[string]string {
	t.Helper()
	outputs, diags := c.Outputs(nil)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	all := map[string]string{}
	for _, o := range outputs {
		all[o.Name] = o.Value.GoString()
	}
	return all
}

// Whoever changes what a spec says changes one of these files, or a file in one of these folders.
func TestReadPaths(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.vmctl.hcl"), []byte(sourceSpec+"provider \"terraform\" \"cloud\" {\n  dir = \"infra\"\n  binary = \"./tofu\"\n}\n"))
	write(t, filepath.Join(dir, "note.txt"), []byte("first"))
	c, diags := spec.Load(dir, spec.Inputs{Vars: []string{"cpus=3"}, Environ: []string{"VMCTL_VAR_token=x"}})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	want := []string{filepath.Join(dir, "infra"), filepath.Join(dir, "main.vmctl.hcl"), filepath.Join(dir, "more.txt"), filepath.Join(dir, "note.txt"), filepath.Join(dir, "tofu")}
	if diff := cmp.Diff(want, c.ReadPaths()); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	if none := (&spec.Config{}).ReadPaths(); none != nil {
		t.Errorf("without files: %q", none)
	}
}
