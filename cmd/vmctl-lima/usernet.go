package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strconv"

	"github.com/lima-vm/lima/v2/pkg/networks/usernet"
	"github.com/spf13/cobra"
)

// usernetCommand is the daemon of Lima's user-v2 networks. Lima starts it as a command of its own
// executable, so that its name and its flags are limactl's.
func usernetCommand() *cobra.Command {
	var pidFile string
	var options usernet.GVisorNetstackOpts
	cmd := &cobra.Command{
		Use:         "usernet",
		Short:       "Run a network that several instances share",
		Args:        cobra.NoArgs,
		Annotations: map[string]string{serviceKey: "Lima starts it"},
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if pidFile != "" {
				err := createFile(pidFile, strconv.Itoa(os.Getpid())+"\n", 0o644)
				if errors.Is(err, fs.ErrExist) {
					return fmt.Errorf("another network daemon runs, or its pid file was left: %s", pidFile)
				}
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, removePID(pidFile, os.Getpid())) }()
			}
			for _, socket := range []string{options.Endpoint, options.QemuSocket, options.FdSocket} {
				if err := os.RemoveAll(socket); err != nil {
					return err
				}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), endSignals()...)
			defer stop()
			return usernet.StartGVisorNetstack(ctx, &options)
		},
	}
	set := cmd.Flags()
	set.StringVarP(&pidFile, "pidfile", "p", "", "file to write the pid to")
	set.StringVarP(&options.Endpoint, "endpoint", "e", "", "socket to serve the network's API on")
	set.StringVar(&options.QemuSocket, "listen-qemu", "", "socket for QEMU's connections")
	set.StringVar(&options.FdSocket, "listen", "", "socket for connections that bring file descriptors")
	set.StringVar(&options.Subnet, "subnet", "192.168.5.0/24", "addresses of the network")
	set.IntVar(&options.MTU, "mtu", 1500, "greatest packet, in bytes")
	set.StringToStringVar(&options.DefaultLeases, "leases", nil, "addresses that are taken from the start: IP=MAC,...")
	return cmd
}
