package process_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"

	"vmctl/internal/process"
)

// playStarter holds a program that makes a file, and drops it when its input ends.
func playStarter() error {
	touch, err := exec.LookPath("touch")
	if err != nil {
		return err
	}
	command, ok := process.ShellGate(touch, os.Args[1:], os.Environ())
	if !ok {
		return errors.New("the shell may lose a variable of this test")
	}
	cmd := exec.Command(command[0], command[1:]...)
	held, err := process.Host{}.Hold(cmd, touch)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(held.Identity); err != nil {
		return err
	}
	if err := errors.Join(inputEnds(), held.Drop()); err != nil {
		return err
	}
	_ = cmd.Wait() //nolint:errcheck // it was dropped, and tells that
	return nil
}
