package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"

	"github.com/lima-vm/lima/v2/pkg/hostagent"
	"github.com/lima-vm/lima/v2/pkg/hostagent/api/server"
	"github.com/lima-vm/lima/v2/pkg/store"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
)

// agentFlags are the flags of limactl's hostagent, under the same names.
type agentFlags struct {
	pidFile, socket            string
	guestAgent, nerdctlArchive string
	gui, progress              bool
}

func hostagentCommand() *cobra.Command {
	var flags agentFlags
	cmd := &cobra.Command{
		Use:         "hostagent NAME",
		Short:       "Run an instance until it ends",
		Long:        "Run an instance until it ends. The command takes the place of limactl hostagent, and limactl finds it by its pid file and its socket.",
		Args:        cobra.ExactArgs(1),
		Annotations: map[string]string{serviceKey: "its standard output has Lima's events"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return runAgent(cmd.Context(), args[0], flags, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	set := cmd.Flags()
	set.StringVarP(&flags.pidFile, "pidfile", "p", "", "file to write the pid to")
	set.StringVar(&flags.socket, "socket", "", "socket to serve Lima's API on")
	set.BoolVar(&flags.gui, "run-gui", false, "show the VM's display")
	set.StringVar(&flags.guestAgent, "guestagent", "", "path of the guest agent")
	set.StringVar(&flags.nerdctlArchive, "nerdctl-archive", "", "path of the nerdctl archive")
	set.BoolVar(&flags.progress, "progress", false, "report what cloud-init does")
	return cmd
}

// runAgent starts the VM of an instance, serves Lima's API, and returns when the VM has ended. A
// first request to end makes it shut the VM down.
func runAgent(ctx context.Context, name string, flags agentFlags, stdout, stderr io.Writer) (err error) {
	if flags.socket == "" {
		return errors.New("hostagent: --socket is missing")
	}
	// Requests to end are noticed before there is a pid file that would tell anybody where to send one.
	requests := make(chan os.Signal, 1)
	signal.Notify(requests, endSignals()...)
	if flags.pidFile != "" {
		if err := claimPID(flags.pidFile); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, removePID(flags.pidFile, os.Getpid())) }()
	}
	if flags.gui {
		// Apple's windows are drawn by the thread that loaded them.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	logForWatchers(stderr)

	agent, err := hostagent.New(ctx, name, synced{stdout}, requests, flags.options()...)
	if err != nil {
		return err
	}
	stop, err := serve(ctx, agent, flags.socket)
	if err != nil {
		return err
	}
	return errors.Join(agent.Run(ctx), stop())
}

// options returns the flags in the form that Lima takes.
func (f agentFlags) options() []hostagent.Opt {
	var options []hostagent.Opt
	if f.guestAgent != "" {
		options = append(options, hostagent.WithGuestAgentBinary(f.guestAgent))
	}
	if f.nerdctlArchive != "" {
		options = append(options, hostagent.WithNerdctlArchive(f.nerdctlArchive))
	}
	if f.progress {
		options = append(options, hostagent.WithCloudInitProgress(true))
	}
	return options
}

// claimPID writes the pid of this process into a pid file that no living process has. Nobody reads
// half of it, and of two processes one gets it.
func claimPID(path string) error {
	if err := removeTemps(path); err != nil {
		return err
	}
	pid, err := store.ReadPIDFile(path) // removes the file of a process that is gone
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if pid != 0 {
		return fmt.Errorf("another hostagent may run: process %d, %s", pid, path)
	}
	err = createFile(path, strconv.Itoa(os.Getpid())+"\n", 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("another hostagent has just written its pid file %s", path)
	}
	return err
}

// serve answers requests to Lima's API until stop is called.
func serve(ctx context.Context, agent *hostagent.HostAgent, socket string) (stop func() error, err error) {
	if err := os.RemoveAll(socket); err != nil {
		return nil, err
	}
	routes := http.NewServeMux()
	server.AddRoutes(routes, &server.Backend{Agent: agent})
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	logrus.Infof("hostagent socket created at %s", socket)
	api := &http.Server{Handler: routes} //nolint:gosec // a socket that only the user reaches
	served := make(chan error, 1)
	go func() { served <- api.Serve(listener) }()
	return func() error {
		err := api.Close()
		if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
			err = errors.Join(err, failed)
		}
		return err
	}, nil
}

// logForWatchers writes Lima's log in the form that limactl reads, one level more verbose than the
// command that started the hostagent.
func logForWatchers(w io.Writer) {
	logrus.SetOutput(synced{w})
	level := logrus.DebugLevel
	if logrus.IsLevelEnabled(logrus.DebugLevel) {
		level = logrus.TraceLevel
	}
	logrus.SetLevel(level)
}

// synced is a writer whose content is on the disk after each write: a log says why a machine went
// down.
type synced struct{ io.Writer }

// Write writes p.
func (s synced) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	if file, ok := s.Writer.(*os.File); ok && err == nil {
		_ = file.Sync() //nolint:errcheck // a pipe or a terminal cannot be synced
	}
	return n, err
}
