package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"vmctl/internal/real"
)

// The scripts of VMs of Terraform run with the stand-in everywhere, and with the real programs where they are
// installed. In a script, $TF_PROGRAM is the program and $REAL is "1" for a real one.
func TestTerraform(t *testing.T) {
	real.Long(t)
	t.Run("stand-in", func(t *testing.T) { runTerraformScripts(t, "") })
	for _, name := range []string{"terraform", "tofu"} {
		t.Run(name, func(t *testing.T) {
			program, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("NOT TESTED with the real %s: it is not in PATH", name)
			}
			runTerraformScripts(t, program)
		})
	}
}

func runTerraformScripts(t *testing.T, program string) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "terraform"),
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE") == "1",
		Setup: func(env *testscript.Env) error {
			real, program := "1", program
			if program == "" {
				var err error
				real = ""
				if program, err = exec.LookPath("terraform-stand-in"); err != nil {
					return err
				}
			}
			env.Vars = append(env.Vars, "HOME="+env.WorkDir+"/home", "XDG_STATE_HOME="+env.WorkDir+"/s", "VMCTL_DATA_DIR="+env.WorkDir+"/d",
				"STANDIN="+env.WorkDir, "TF_PROGRAM="+program, "VMCTL_VAR_tf="+program, "REAL="+real)
			return nil
		},
		Condition: func(condition string) (bool, error) {
			if condition != "real" {
				return false, errors.New("unknown condition")
			}
			return program != "", nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}
