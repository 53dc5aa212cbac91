package terraform_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/process"
	"vmctl/internal/scratch"
	"vmctl/providers"
	"vmctl/providers/terraform"
)

// The folder of the sessions of a killed vmctl goes once no Terraform needs it.
func TestSweep(t *testing.T) {
	alive, err := process.Host{}.Capture(t.Context(), os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	gone := alive
	gone.BootID = "of an earlier boot"
	for _, test := range []struct {
		name, record string
		process      process.Identity
		stays        bool
	}{
		{"the Terraform of a session lives", "2/running", alive, true},
		{"the Terraform of a session has ended", "2/running", gone, false},
		{"a Terraform of an older vmctl lives", "running", alive, true},
		{"a Terraform that uses the init of one of an older vmctl lives", "running-vmctl-terraform-2", alive, true},
		{"a Terraform of an older vmctl has ended", "running", gone, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			temp := t.TempDir()
			folder := filepath.Join(temp, "vmctl-terraform-1")
			text, err := json.Marshal(map[string]any{"process": test.process, "command": "apply", "folder": folder})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(folder, "2"), 0o700); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string][]byte{test.record: text, scratch.LockName: nil} {
				if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p, err := terraform.Type(terraform.Host{Temp: temp}).Open(t.Context(), providers.Settings{
				Name: "cloud", Dir: t.TempDir(), Attrs: cty.ObjectVal(map[string]cty.Value{"dir": cty.StringVal(t.TempDir())}),
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(folder); err == nil != test.stays {
				t.Errorf("the folder is there: %t, want %t", err == nil, test.stays)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
