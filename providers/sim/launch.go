package sim

import (
	"encoding/json"
	"errors"
	"os"

	"vmctl/internal/process"
)

// launch describes a process of a VM that is to be started.
type launch struct {
	Program   string   `json:"program"`
	Args, Env []string `json:",omitempty"`
	Log       string   `json:"log"`
	Orders    orders   `json:"orders"`
}

// start starts the process with its orders, and returns the pipe for its report.
func (l launch) start(h process.Host) (child *process.Child, said *os.File, err error) {
	stderr, err := os.OpenFile(l.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer stderr.Close() //nolint:errcheck // the child has its own
	stdin, tell, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer stdin.Close() //nolint:errcheck // the child has its own
	said, stdout, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, tell.Close())
	}
	defer stdout.Close() //nolint:errcheck // the child has its own
	child, err = h.Start(process.Command{
		Path: l.Program, Args: l.Args, Env: l.Env, Dir: string(os.PathSeparator), Stdin: stdin, Stdout: stdout, Stderr: stderr,
	})
	if err == nil {
		err = json.NewEncoder(tell).Encode(l.Orders)
	}
	if err = errors.Join(err, tell.Close()); err != nil {
		return nil, nil, errors.Join(err, said.Close())
	}
	return child, said, nil
}
