package terraform_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/terraform"
	"vmctl/spec"
)

// What a backend says about its workspaces: with one of them and no default, init selects it, and nobody could remove it then; one
// that has none is refused.
func TestBackendWorkspaces(t *testing.T) {
	for _, test := range []struct{ name, program, want string }{
		{"init selects one", `init) printf only >"$TF_DATA_DIR/environment" ;;
workspace) if test -e "$TF_DATA_DIR/environment"; then echo selected >&2; exit 1; fi; echo "  only" ;;`, ""},
		{"a setting is null", `init) for a in "$@"; do case $a in
  -backend-config=*) if grep null "${a#*=}" >&2 || ! grep path "${a#*=}"; then exit 1; fi ;;
  esac; done ;;
workspace) echo "  only" ;;`, ""},
		{"it has none", `workspace) echo "╷
│ Error: workspaces not supported
╵" >&2; exit 1 ;;`, "the backend remote of the module"},
		{"it does not answer", `workspace) echo "╷
│ Error: no
│  such host
╵" >&2; exit 1 ;;`, "Error: no such host"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{
				"main.tf": "terraform {\n  backend \"remote\" {}\n}\nresource \"terraform_data\" \"vm\" {}\n",
				"program": "#!/bin/sh\ncase $1 in\nversion) echo '{\"terraform_version\":\"1.11.4\",\"terraform_outdated\":false}' ;;\n" + test.program + "\nesac\n",
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil { //nolint:gosec // one is run
					t.Fatal(err)
				}
			}
			host := terraform.Host{Program: filepath.Join(dir, "program"), Temp: t.TempDir(), Dir: dir, Environ: []string{"PATH=" + os.Getenv("PATH")}}
			p, err := terraform.Type(host).Open(t.Context(), providers.Settings{
				Name: "cloud", Dir: filepath.Join(dir, "d"), Files: dir, Project: providers.Project{Name: "demo", ID: "k7m2qd9x4r"},
				Attrs: cty.ObjectVal(map[string]cty.Value{
					"dir": cty.StringVal(dir), "binary": cty.StringVal("./program"),
					"backend_config": cty.MapVal(map[string]cty.Value{"path": cty.StringVal("p"), "key": cty.NullVal(cty.String)}),
				}),
			})
			if err != nil {
				t.Fatal(err)
			}
			inv, err := p.Observe(t.Context(), providers.Query{})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if partial := inv.Partial[spec.VM]; partial != nil {
				got = partial.Err.Error()
			}
			if got != "" != (test.want != "") || !strings.Contains(got, test.want) {
				t.Errorf("the workspaces cannot be listed: %q, want %q", got, test.want)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if left, err := os.ReadDir(host.Temp); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}
