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

// terraformProgram is a program that runs Terraform modules in a test.
type terraformProgram struct {
	path   string
	tool   string // that it is, or speaks as: "Terraform" or "OpenTofu"
	isReal bool
}

// realPrograms are the names of the programs of the real tools.
func realPrograms() map[string]string {
	return map[string]string{"terraform": "Terraform", "tofu": "OpenTofu"}
}

// find returns the program of a tool that is installed, or that make has built: VMCTL_TEST_TOFU.
func find(t *testing.T, name string) terraformProgram {
	t.Helper()
	real.Long(t)
	built := os.Getenv("VMCTL_TEST_TOFU")
	if name == "tofu" && built != "" {
		if _, err := os.Stat(built); err != nil {
			t.Fatalf("VMCTL_TEST_TOFU: %v: make tofu builds it", err)
		}
		name = built
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("NOT TESTED with the real %s: %v", name, err)
	}
	return terraformProgram{path: path, isReal: true}
}

// withTerraforms runs a test with the stand-in, and with the real programs where they are.
func withTerraforms(t *testing.T, test func(t *testing.T, program terraformProgram)) {
	t.Helper()
	standIn, err := exec.LookPath("terraform-stand-in")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("stand-in", func(t *testing.T) {
		t.Parallel()
		test(t, terraformProgram{path: standIn, tool: "Terraform"})
	})
	for name, tool := range realPrograms() {
		t.Run(name, func(t *testing.T) {
			program := find(t, name)
			program.tool = tool
			t.Parallel()
			test(t, program)
		})
	}
}

// The scripts of VMs of Terraform run with the stand-in everywhere, and with the real programs where they are. OpenTofu
// runs a sample. In a script, $TF_PROGRAM is the program and $REAL is "1" for a real one.
func TestTerraform(t *testing.T) {
	real.Long(t)
	t.Run("stand-in", func(t *testing.T) { runTerraformScripts(t, "", "terraform/*", "terraform-stand-in/*") })
	t.Run("terraform", func(t *testing.T) {
		runTerraformScripts(t, find(t, "terraform").path, "terraform/*", "terraform-real/*")
	})
	t.Run("tofu", func(t *testing.T) { runTerraformScripts(t, find(t, "tofu").path, "terraform/life", "terraform-real/*") })
}

func runTerraformScripts(t *testing.T, program string, which ...string) {
	var files []string
	for _, some := range which {
		found, err := filepath.Glob(filepath.Join("testdata", some+".txtar"))
		if err != nil || len(found) == 0 {
			t.Fatalf("scripts %s: %v, %v", some, found, err)
		}
		files = append(files, found...)
	}
	testscript.Run(t, testscript.Params{
		Files:               files,
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
