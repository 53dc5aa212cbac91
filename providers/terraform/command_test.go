package terraform_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/terraform"
)

// What is tainted or deposed is found with the commands that keep it and forget it, for each sort of backend.
func TestFlawsTellTheCommands(t *testing.T) {
	const name = "vmctl--k7m2qd9x4r--web--0123456789abcdef0123456789abcdef"
	for _, test := range []struct{ backend, instance, want string }{
		{"", `"status": "tainted"`, "untaint -state=DIR/states/" + name + "/terraform.tfstate terraform_data.vm"},
		{"terraform {\n  backend \"local\" {}\n}\n", `"status": "tainted"`, "TF_WORKSPACE=" + name + " terraform -chdir=MODULE untaint terraform_data.vm"},
		{"", `"status": "tainted"`, "state rm -state=DIR/states/" + name + "/terraform.tfstate terraform_data.vm"},
		{"", `"deposed": "0a1b2c3d"`, "state rm -state=DIR/states/" + name + "/terraform.tfstate terraform_data.vm"},
		{"", `"deposed": "0a1b2c3d"`, "import -state=DIR/states/" + name + "/terraform.tfstate terraform_data.vm ID"},
	} {
		dir, module := t.TempDir(), t.TempDir()
		files := map[string]string{
			filepath.Join(module, "main.tf"): "resource \"terraform_data\" \"vm\" {}\n" + test.backend,
			filepath.Join(dir, "states", name, "terraform.tfstate"): `{"version": 4, "serial": 1, "resources": [{"mode": "managed", "type": "terraform_data", "name": "vm",
				"instances": [{` + test.instance + `, "attributes": {}}]}]}`,
		}
		for path, text := range files {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p, err := terraform.Type(terraform.Host{Temp: t.TempDir()}).Open(t.Context(), providers.Settings{
			Name: "cloud", Dir: dir, Project: providers.Project{Name: "demo", ID: "k7m2qd9x4r"},
			Attrs: cty.ObjectVal(map[string]cty.Value{"dir": cty.StringVal(module)}),
		})
		if err != nil {
			t.Fatal(err)
		}
		inv, err := p.Observe(t.Context(), providers.Query{})
		if err != nil || len(inv.Objects) != 1 {
			t.Fatalf("%+v, %v", inv, err)
		}
		want := strings.NewReplacer("DIR", dir, "MODULE", module).Replace(test.want)
		said := ""
		for _, f := range inv.Objects[0].Findings {
			for _, next := range f.Next {
				said += next.Text + "\n"
			}
		}
		if !strings.Contains(said, want) || !strings.Contains(said, "TF_DATA_DIR="+filepath.Join(dir, "data", name)) {
			t.Errorf("%q, want %q", said, want)
		}
	}
}
