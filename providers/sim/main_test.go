package sim_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"vmctl/providers/sim"
)

// isVM makes this test binary the process of a VM.
const isVM = "SIM_TEST_VM"

// mute listens on a socket, gives no answer there, and ignores requests to end.
func mute(path string) {
	signal.Ignore(syscall.SIGTERM)
	listener, err := net.Listen("unix", path)
	for err == nil {
		var c net.Conn
		if c, err = listener.Accept(); err == nil {
			err = c.Close()
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func TestMain(m *testing.M) {
	switch os.Getenv(isVM) {
	case "":
		os.Exit(m.Run())
	case "mute":
		mute(os.Args[len(os.Args)-1])
	case "ends":
		fmt.Fprintln(os.Stderr, "there is nothing to boot")
		os.Exit(3)
	}
	if err := sim.Run(context.Background(), os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
