//go:build unix

package wsl_test

import (
	"os"
	"os/exec"
	"testing"

	"vmctl/internal/wsl/wsltest"
)

// worldKey names the variable with the folder of the World whose wsl.exe this binary plays.
const worldKey = "WSLTEST_WORLD"

func TestMain(m *testing.M) {
	dir := os.Getenv(worldKey)
	if dir == "" {
		os.Exit(m.Run())
	}
	below := exec.Command("sleep", "1000000", "0."+belowKey(dir))
	below.Stdout = os.Stdout
	os.Exit(wsltest.World{Dir: dir}.Run(os.Args[1:], os.Stdout, below.Start))
}
