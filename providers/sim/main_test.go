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
	if os.Getenv(isVM) == "" {
		os.Exit(m.Run())
	}
	if err := sim.Run(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
