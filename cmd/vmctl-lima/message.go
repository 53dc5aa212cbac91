package main

import (
	"bytes"
	"context"
	"fmt"
	"text/template"

	"github.com/lima-vm/lima/v2/pkg/limatype"
	"github.com/lima-vm/lima/v2/pkg/store"
	"github.com/spf13/cobra"
)

// told is the message of an instance for its user, as limactl shows it after a start.
type told struct {
	Message string `json:"message"`
}

func messageCommand() *cobra.Command {
	var port int
	cmd := &cobra.Command{
		Use:   "message NAME",
		Short: "Print the message of an instance that runs, with its own values in it",
		Args:  cobra.ExactArgs(1),
		RunE: act(func(ctx context.Context, _ *cobra.Command, args []string) (any, error) {
			inst, err := loadInstance(ctx, args[0])
			if err != nil {
				return nil, err
			}
			inst.Status, inst.SSHLocalPort = limatype.StatusRunning, port
			text, err := message(inst)
			if err != nil {
				return nil, fmt.Errorf("fill in the message of instance %s: %w", args[0], err)
			}
			return told{Message: text}, nil
		}),
	}
	cmd.Flags().IntVar(&port, "ssh-port", 0, "the port of this host that leads to its SSH")
	return cmd
}

// message returns the message of an instance. Lima's own function writes it into a log, and lets it have all of the
// definition: with the script that brings the guest its private host key.
func message(inst *limatype.Instance) (string, error) {
	inst.Message, inst.Param = inst.Config.Message, inst.Config.Param
	inst.Config = public(inst.Config)
	t, err := template.New("message").Parse(inst.Message)
	if err != nil {
		return "", err
	}
	data, err := store.AddGlobalFields(inst)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	err = t.Execute(&text, data)
	return text.String(), err
}

// public returns what a message may have of a definition: no scripts, and nothing else in which there may be secrets.
func public(c *limatype.LimaYAML) *limatype.LimaYAML {
	return &limatype.LimaYAML{
		VMType: c.VMType, VMOpts: c.VMOpts, OS: c.OS, Arch: c.Arch, CPUs: c.CPUs, Memory: c.Memory, Disk: c.Disk, Plain: c.Plain,
		MountType: c.MountType, User: c.User,
	}
}
