package cli_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"vmctl/cmd/internal/cli"
	"vmctl/providers/terraform"
)

// In place of Terraform vmctl makes nothing that only its own commands need: neither their tree nor the types of providers.
func TestACallOfTerraformMakesNoCommands(t *testing.T) {
	order, err := json.Marshal(map[string]string{"program": "/nowhere/terraform", "version": `{"terraform_version":"1.11.4"}`})
	if err != nil {
		t.Fatal(err)
	}
	var out, errors bytes.Buffer
	env := cli.Env{
		Args: []string{"version", "-json"}, Stdout: &out, Stderr: &errors,
		Environ: []string{terraform.CallVariable + "=" + string(order), "VMCTL_LOG=nonsense"},
	}
	const calls = 10
	made := testing.AllocsPerRun(calls-1, func() {
		if code := cli.Main(t.Context(), env); code != 0 {
			t.Errorf("exit code %d: %s", code, errors.String())
		}
	})
	if want := bytes.Repeat([]byte(`{"terraform_version":"1.11.4"}`), calls); !bytes.Equal(out.Bytes(), want) {
		t.Errorf("it writes %q, want %q", out.String(), want)
	}
	const most = 100 // the tree of commands takes thousands
	if made > most {
		t.Errorf("a call makes %v objects, want at most %d", made, most)
	}

	env.Args = []string{"plan"}
	if code := cli.Main(t.Context(), env); code != 1 || !bytes.Contains(errors.Bytes(), []byte("/nowhere/terraform")) {
		t.Errorf("without the program: exit code %d, and %q", code, errors.String())
	}
}
