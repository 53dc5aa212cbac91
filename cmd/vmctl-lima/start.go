package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lima-vm/lima/v2/pkg/instance"
	"github.com/lima-vm/lima/v2/pkg/limatype"
	"github.com/lima-vm/lima/v2/pkg/limatype/filenames"
	"github.com/lima-vm/lima/v2/pkg/lockutil"
	"github.com/lima-vm/lima/v2/pkg/store"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
)

const (
	// pidDeadline is the time that a hostagent has to write its pid file, which it does before
	// anything else. Lima gives it 5 seconds, which a loaded machine may miss.
	pidDeadline = time.Minute
	pidInterval = 10 * time.Millisecond
)

// started is the result of a start: the hostagent, which may not have started the VM yet.
type started struct {
	PID  int      `json:"pid"`
	Args []string `json:"args"`
}

func startCommand() *cobra.Command {
	var guestAgent string
	cmd := &cobra.Command{
		Use:   "start NAME",
		Short: "Start the hostagent of an instance, which starts the VM",
		Args:  cobra.ExactArgs(1),
		RunE: act(func(ctx context.Context, _ *cobra.Command, args []string) (any, error) {
			return startInstance(ctx, args[0], guestAgent)
		}),
	}
	cmd.Flags().StringVar(&guestAgent, "guestagent", "", "path of the guest agent, instead of the one that was installed with this program")
	return cmd
}

// startInstance starts the hostagent of an instance that is stopped. It returns when the hostagent
// has written its pid file; its stdout log says what becomes of the VM.
func startInstance(ctx context.Context, name, guestAgent string) (started, error) {
	dir, err := instanceDir(name)
	if err != nil {
		return started{}, err
	}
	var result started
	err = lockutil.WithDirLock(dir, func() error {
		inst, err := loadInstance(ctx, name)
		if err != nil {
			return err
		}
		if err := checkStopped(inst); err != nil {
			return err
		}
		prepared, err := prepare(ctx, inst, guestAgent)
		if err != nil {
			return err
		}
		result, err = spawn(ctx, inst, prepared)
		return err
	})
	if err != nil {
		return started{}, fmt.Errorf("start instance %s: %w", name, err)
	}
	return result, nil
}

// checkStopped looks for processes of an instance. A second hostagent would remove the pid file of
// a VM that runs.
func checkStopped(inst *limatype.Instance) error {
	agent := filepath.Join(inst.Dir, filenames.HostAgentPID)
	if there, err := exists(agent); err != nil {
		return err
	} else if there {
		return fmt.Errorf("a hostagent runs, or its pid file was left: %s", agent)
	}
	driver := filepath.Join(inst.Dir, filenames.PIDFile(inst.VMType))
	if pid, err := store.ReadPIDFile(driver); err != nil {
		return fmt.Errorf("read %s: %w", driver, err)
	} else if pid != 0 {
		return fmt.Errorf("the VM runs without its hostagent: process %d, %s", pid, driver)
	}
	return nil
}

// spawn starts the hostagent, with the arguments that limactl gives to its own.
func spawn(ctx context.Context, inst *limatype.Instance, prepared *instance.Prepared) (started, error) {
	self, err := os.Executable()
	if err != nil {
		return started{}, err
	}
	pidFile := filepath.Join(inst.Dir, filenames.HostAgentPID)
	args := []string{"hostagent", "--pidfile", pidFile, "--socket", filepath.Join(inst.Dir, filenames.HostAgentSock)}
	if logrus.IsLevelEnabled(logrus.DebugLevel) {
		args = append([]string{"--debug"}, args...)
	}
	if prepared.Driver.Info(ctx).Features.CanRunGUI {
		args = append(args, "--run-gui")
	}
	if prepared.GuestAgent != "" {
		args = append(args, "--guestagent", prepared.GuestAgent)
	}
	if prepared.NerdctlArchiveCache != "" {
		args = append(args, "--nerdctl-archive", prepared.NerdctlArchiveCache)
	}
	args = append(args, inst.Name)

	stdout, err := newLog(filepath.Join(inst.Dir, filenames.HostAgentStdoutLog))
	if err != nil {
		return started{}, err
	}
	defer stdout.Close() //nolint:errcheck // nothing was written through it
	stderr, err := newLog(filepath.Join(inst.Dir, filenames.HostAgentStderrLog))
	if err != nil {
		return started{}, err
	}
	defer stderr.Close() //nolint:errcheck // nothing was written through it
	// No context: the hostagent outlives this process.
	agent := exec.Command(self, args...)
	agent.SysProcAttr = ownSession()
	agent.Stdout, agent.Stderr = stdout, stderr
	if err := agent.Start(); err != nil {
		return started{}, err
	}
	if err := awaitPID(agent, pidFile); err != nil {
		return started{}, fmt.Errorf("%w\n%s", err, lastLines(stderr.Name()))
	}
	return started{PID: agent.Process.Pid, Args: agent.Args}, nil
}

// newLog opens an empty log. A reader of the old one keeps it.
func newLog(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.Create(path)
}

// awaitPID waits until a hostagent's pid file has the hostagent's pid. A hostagent that does not
// write it in time is killed: nothing would find it later.
func awaitPID(agent *exec.Cmd, pidFile string) error {
	ended := make(chan error, 1)
	go func() { ended <- agent.Wait() }() // ends with this process, or with the hostagent
	deadline := time.After(pidDeadline)
	poll := time.NewTicker(pidInterval)
	defer poll.Stop()
	for {
		select {
		case err := <-ended:
			if err == nil {
				err = errors.New("exit status 0")
			}
			return fmt.Errorf("the hostagent ended: %w", err)
		case <-deadline:
			err := agent.Process.Kill() //nolint:forbidigo // a child of this process that nobody else knows
			return errors.Join(fmt.Errorf("the hostagent wrote no pid file within %v", pidDeadline), err, removePID(pidFile, agent.Process.Pid))
		case <-poll.C:
			if pidIn(pidFile) == agent.Process.Pid {
				return nil
			}
		}
	}
}

// pidIn returns the number in a pid file, 0 if there is none.
func pidIn(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// removePID removes a pid file, unless it is another process's by now.
func removePID(path string, pid int) error {
	if pidIn(path) != pid {
		return nil
	}
	return os.Remove(path)
}

// lastLines returns the end of a log, as much as belongs into an error.
func lastLines(path string) string {
	const most = 10
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-most):], []byte("\n")))
}
