package terraform_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/terraform"
)

// A state that Terraform could not write blocks the plan of its VM, and of no other one.
func TestErroredState(t *testing.T) {
	const name = "vmctl--k7m2qd9x4r--web--0123456789abcdef0123456789abcdef"
	for _, test := range []struct{ lineage, want string }{
		{"one", "left it in "},
		{"two", "run terraform"}, // it goes on, and there is no Terraform
	} {
		dir, module := t.TempDir(), t.TempDir()
		for path, text := range map[string]string{
			filepath.Join(module, "main.tf"):                        "resource \"terraform_data\" \"vm\" {}\n",
			filepath.Join(module, "errored.tfstate"):                `{"version": 4, "serial": 2, "lineage": "one"}`,
			filepath.Join(dir, "states", name, "terraform.tfstate"): `{"version": 4, "serial": 1, "lineage": "` + test.lineage + `"}`,
		} {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p, err := terraform.Type(terraform.Host{Temp: t.TempDir()}).Open(t.Context(), providers.Settings{
			Name: "cloud", Dir: dir, Project: providers.Project{Name: "demo", ID: "k7m2qd9x4r"},
			Attrs: cty.ObjectVal(map[string]cty.Value{"dir": cty.StringVal(module), "binary": cty.StringVal("terraform")}),
		})
		if err != nil {
			t.Fatal(err)
		}
		object := &providers.Object{ID: "01234567-89ab-cdef-0123-456789abcdef"}
		_, err = p.(providers.Previewer).Preview(t.Context(), providers.Change{Action: providers.Update, Object: object, Want: cty.EmptyObjectVal})
		if err == nil || strings.Contains(err.Error(), "left it in ") != (test.lineage == "one") {
			t.Errorf("%s: %v, want %q", test.lineage, err, test.want)
		}
		var problem *providers.Problem
		if !errors.As(err, &problem) || test.lineage == "one" && !strings.Contains(problem.Next[0].Text, "install -m 600 "+module+"/errored.tfstate "+dir) {
			t.Errorf("%s: it advises %+v", test.lineage, problem)
		}
	}
}

// A state that a full disk has cut off makes its VM unknown, and the copy from before is named.
func TestTornState(t *testing.T) {
	const name = "vmctl--k7m2qd9x4r--web--0123456789abcdef0123456789abcdef"
	for _, test := range []struct{ before, want string }{
		{"", "it is no state of a Terraform module"},
		{`{"version": 4}`, "the state from before the last change is in "},
	} {
		dir, module := t.TempDir(), t.TempDir()
		state := filepath.Join(dir, "states", name, "terraform.tfstate")
		files := map[string]string{filepath.Join(module, "main.tf"): "resource \"terraform_data\" \"vm\" {}\n", state: `{"version": 4, "ser`}
		if test.before != "" {
			files[state+".before"] = test.before
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
		if err != nil || len(inv.Unknown) != 1 || len(inv.Objects) > 0 {
			t.Fatalf("%+v, %v", inv, err)
		}
		if got := inv.Unknown[0].Reason; !strings.Contains(got, "read "+state) || !strings.Contains(got, test.want) ||
			strings.Contains(got, ".before") != (test.before != "") {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
