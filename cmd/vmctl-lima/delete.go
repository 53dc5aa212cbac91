package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/lima-vm/lima/v2/pkg/autostart"
	"github.com/lima-vm/lima/v2/pkg/driverutil"
	"github.com/lima-vm/lima/v2/pkg/limatype"
	"github.com/lima-vm/lima/v2/pkg/lockutil"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
)

// deleted is the result of a delete.
type deleted struct{}

func deleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Undo what Lima did for a stopped instance outside its folder; the folder stays",
		Args:  cobra.ExactArgs(1),
		RunE: act(func(ctx context.Context, _ *cobra.Command, args []string) (any, error) {
			if err := deleteInstance(ctx, args[0]); err != nil {
				return nil, fmt.Errorf("delete instance %s: %w", args[0], err)
			}
			return deleted{}, nil
		}),
	}
}

// deleteInstance removes the registration of an instance with its driver and with the system's
// start at login. An instance that has no YAML, or whose YAML Lima cannot read, has no driver: as
// in Lima, that is no error.
func deleteInstance(ctx context.Context, name string) error {
	dir, err := instanceDir(name)
	if err != nil {
		return err
	}
	if there, err := exists(dir); err != nil || !there {
		return err
	}
	return lockutil.WithDirLock(dir, func() error { return deleteIn(ctx, name, dir) })
}

// deleteIn deletes an instance whose folder is locked: nobody starts it meanwhile.
func deleteIn(ctx context.Context, name, dir string) error {
	inst, err := loadInstance(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		inst = &limatype.Instance{Name: name, Dir: dir}
	case err != nil:
		logrus.WithError(err).Warn("The instance is deleted without its driver")
		inst = &limatype.Instance{Name: name, Dir: dir}
	default:
		if err := checkStopped(inst); err != nil {
			return err
		}
		if inst.VMType == limatype.WSL2 {
			break // vmctl unregisters the distribution: Lima's driver fails once there is none, and waits without a limit
		}
		driver, err := driverutil.CreateConfiguredDriver(ctx, inst, 0)
		if err != nil {
			return err
		}
		if err := driver.Delete(ctx); err != nil {
			return err
		}
	}
	if err := autostart.UnregisterFromStartAtLogin(ctx, inst); err != nil && !errors.Is(err, autostart.ErrNotSupported) {
		return err
	}
	return nil
}
