package spec_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/spec"
)

// The backend of a module is that of its override file, if it has one, whatever the names of its files. Its digest is that of the
// block, and of nothing beside it.
func TestBackendOfAModule(t *testing.T) {
	const s3 = "terraform {\n  backend \"s3\" { bucket = \"a\" }\n}\n"
	digests := map[string]string{}
	for _, test := range []struct {
		name, want string
		files      map[string]string
	}{
		{"none", "", map[string]string{"main.tf": "resource \"terraform_data\" \"vm\" {}\n"}},
		{"a block", "s3", map[string]string{"main.tf": s3}},
		{"beside a resource", "s3", map[string]string{"main.tf": "resource \"terraform_data\" \"vm\" {}\n" + s3}},
		{"another bucket", "s3", map[string]string{"main.tf": "terraform {\n  backend \"s3\" { bucket = \"b\" }\n}\n"}},
		{"an override file", "http", map[string]string{"main.tf": s3, "a_override.tf": "terraform {\n  backend \"http\" {}\n}\n"}},
		{"an override in JSON", "pg", map[string]string{"main.tf": s3, "override.tf.json": `{"terraform": {"backend": {"pg": {}}}}`}},
		{"a cloud block", "cloud", map[string]string{"main.tf": "terraform {\n  cloud {\n    organization = \"o\"\n  }\n}\n"}},
	} {
		dir := t.TempDir()
		for name, text := range test.files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		m, err := new(spec.TerraformModules).Read(dir, spec.Terraform)
		if err != nil || m.Backend != test.want || (m.BackendDigest == "") != (test.want == "") {
			t.Errorf("%s: %q (%s), %v, want %q", test.name, m.Backend, m.BackendDigest, err, test.want)
		}
		digests[test.name] = m.BackendDigest
	}
	if digests["a block"] != digests["beside a resource"] || digests["a block"] == digests["another bucket"] {
		t.Errorf("digests of the blocks: %v", digests)
	}
}

// A module that is read again is as its files are now.
func TestModulesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	var modules spec.TerraformModules
	read := func(tool spec.TerraformTool, files map[string]string) spec.TerraformModule {
		t.Helper()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		m, err := modules.Read(dir, tool)
		if err != nil {
			t.Fatal(err)
		}
		again, err := modules.Read(dir, tool)
		if err != nil || !cmp.Equal(again, m) {
			t.Errorf("read again it is %+v, %v, and was %+v", again, err, m)
		}
		return m
	}
	const backend = "terraform {\n  backend %q {}\n}\n"
	first := read(spec.Terraform, map[string]string{"main.tf": fmt.Sprintf(backend, "s3"), "main.tofu": fmt.Sprintf(backend, "gcs")})
	if tofu := read(spec.OpenTofu, nil); first.Backend != "s3" || tofu.Backend != "gcs" {
		t.Errorf("Terraform reads the backend %q, OpenTofu %q; want s3 and gcs", first.Backend, tofu.Backend)
	}
	if second := read(spec.Terraform, map[string]string{"main.tf": fmt.Sprintf(backend, "pg")}); second.Backend != "pg" || second.Digest == first.Digest {
		t.Errorf("after an edit it is %+v", second)
	} else if second.Files["main.tf"] == first.Files["main.tf"] || second.Files["main.tofu"] != first.Files["main.tofu"] || len(second.Files) != 2 {
		t.Errorf("after an edit of main.tf its files are %v, and were %v", second.Files, first.Files)
	}
	if third := read(spec.Terraform, map[string]string{"main.tf": fmt.Sprintf(backend, "s3")}); !cmp.Equal(third, first) {
		t.Errorf("after the edit was taken back it is %+v, and was %+v", third, first)
	}
}

// A block that names its workspace has one; tags and prefixes find any number.
func TestOneWorkspaceOfAModule(t *testing.T) {
	for text, want := range map[string]bool{
		"cloud {\n workspaces { name = \"one\" }\n}":                 true,
		"cloud {\n workspaces { tags = [\"vms\"] }\n}":               false,
		"cloud {\n workspaces { project = \"p\" }\n}":                false,
		"backend \"remote\" {\n workspaces { name = \"one\" }\n}":    true,
		"backend \"remote\" {\n workspaces { prefix = \"vms-\" }\n}": false,
		"backend \"s3\" { bucket = \"name\" }":                       false,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte("terraform {\n"+text+"\n}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if m, err := new(spec.TerraformModules).Read(dir, spec.Terraform); err != nil || m.OneWorkspace != want {
			t.Errorf("%s: %t, %v, want %t", text, m.OneWorkspace, err, want)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.tf.json"), []byte(`{"terraform": {"cloud": {"workspaces": {"name": "one"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err := new(spec.TerraformModules).Read(dir, spec.Terraform); err != nil || !m.OneWorkspace {
		t.Errorf("in JSON: %+v, %v", m, err)
	}
}
