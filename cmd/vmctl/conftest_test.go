package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"vmctl/internal/real"
)

// The real conftest judges plans as Terraform writes them, by the policy of examples/gitops. VMCTL_TEST_CONFTEST is its program.
func TestConftest(t *testing.T) {
	real.Long(t)
	program := os.Getenv("VMCTL_TEST_CONFTEST")
	if program == "" {
		t.Skip("NOT TESTED with the real conftest: VMCTL_TEST_CONFTEST is not set: make conftest builds it")
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("VMCTL_TEST_CONFTEST: %v: make conftest builds it", err)
	}
	policy, err := filepath.Abs(filepath.Join("..", "..", "examples", "gitops", "policy"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "conftest"),
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE") == "1",
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, "HOME="+env.WorkDir+"/home", "XDG_STATE_HOME="+env.WorkDir+"/s", "VMCTL_DATA_DIR="+env.WorkDir+"/d", "CONFTEST="+program, "POLICY="+policy)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}
