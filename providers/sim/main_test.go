package sim_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"vmctl/providers/sim"
)

// isVM makes this test binary the process of a VM.
const isVM = "SIM_TEST_VM"

func TestMain(m *testing.M) {
	switch os.Getenv(isVM) {
	case "":
		os.Exit(m.Run())
	case "ends":
		fmt.Fprintln(os.Stderr, "there is nothing to boot")
		os.Exit(3)
	}
	if err := sim.Run(context.Background(), os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
