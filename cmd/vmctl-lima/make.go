package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lima-vm/lima/v2/pkg/cidata"
	"github.com/lima-vm/lima/v2/pkg/driver/wsl2" // on Windows this registers the driver
	"github.com/lima-vm/lima/v2/pkg/driverutil"
	"github.com/lima-vm/lima/v2/pkg/instance"
	"github.com/lima-vm/lima/v2/pkg/limatype"
	"github.com/lima-vm/lima/v2/pkg/limatype/filenames"
	"github.com/lima-vm/lima/v2/pkg/lockutil"
	"github.com/lima-vm/lima/v2/pkg/version"
	"github.com/spf13/cobra"
)

// workPrefix starts the names of the folders in which root disks and keys are made. They are in the
// folder where the result belongs, so that a rename puts it into place.
const workPrefix = ".vmctl-make-"

// made is the result of making an instance.
type made struct {
	Dir  string `json:"dir"`
	Disk string `json:"disk"`
}

func makeCommand() *cobra.Command {
	var guestAgent string
	cmd := &cobra.Command{
		Use:   "make NAME",
		Short: "Make an instance of the lima.yaml in its folder: keys, cloud-config, image and root disk",
		Long: `Make an instance of the lima.yaml in its folder: keys, cloud-config, image and root disk.

The command can be repeated, also after it was killed: it completes what is missing, and a root disk
that is there stays. A second command for the same instance waits until the first has ended.`,
		Args: cobra.ExactArgs(1),
		RunE: act(func(ctx context.Context, _ *cobra.Command, args []string) (any, error) {
			return makeInstance(ctx, args[0], guestAgent)
		}),
	}
	cmd.Flags().StringVar(&guestAgent, "guestagent", "", "path of the guest agent, instead of the one that was installed with this program")
	return cmd
}

// makeInstance takes the steps of Lima's instance.Create that follow the YAML, and then those that
// Lima takes at the first start.
func makeInstance(ctx context.Context, name, guestAgent string) (made, error) {
	dir, err := instanceDir(name)
	if err != nil {
		return made{}, err
	}
	var result made
	err = lockutil.WithDirLock(dir, func() error {
		inst, err := loadInstance(ctx, name)
		if err != nil {
			return err
		}
		result = made{Dir: dir, Disk: filepath.Join(dir, rootFile(inst.VMType))}
		return populate(ctx, inst, guestAgent)
	})
	if err != nil {
		return made{}, fmt.Errorf("make instance %s: %w", name, err)
	}
	return result, nil
}

// populate makes the files of an instance that Lima makes before its first start: its version, its
// cloud-config, its root disk.
func populate(ctx context.Context, inst *limatype.Instance, guestAgent string) error {
	if err := ensureKey(ctx); err != nil {
		return err
	}
	versionFile := filepath.Join(inst.Dir, filenames.LimaVersion)
	switch there, err := exists(versionFile); {
	case err != nil:
		return err
	case !there:
		if err := writeFile(versionFile, version.Version, 0o444); err != nil {
			return err
		}
	}
	driver, err := driverutil.CreateConfiguredDriver(ctx, inst, 0)
	if err != nil {
		return err
	}
	if err := cidata.GenerateCloudConfig(ctx, inst.Dir, inst.Name, inst.Config); err != nil {
		return err
	}
	if err := driver.Create(ctx); err != nil {
		return err
	}
	_, err = prepare(ctx, inst, guestAgent)
	return err
}

// prepare makes the root disk, unless it is there, and grows it to the size of the configuration.
// The caller holds the lock of the instance's folder.
func prepare(ctx context.Context, inst *limatype.Instance, guestAgent string) (*instance.Prepared, error) {
	if err := driverutil.MigrateDiskLayout(inst.Dir); err != nil {
		return nil, err
	}
	if err := removeWork(inst.Dir); err != nil {
		return nil, err
	}
	there, err := exists(filepath.Join(inst.Dir, rootFile(inst.VMType)))
	if err != nil {
		return nil, err
	}
	if !there {
		if err := makeDisk(ctx, inst, guestAgent); err != nil {
			return nil, err
		}
	}
	return instance.Prepare(ctx, inst, guestAgent)
}

// rootFile returns the name of the root disk that an instance of a vmType starts with. WSL makes its disk by
// itself at the first start, of an archive.
func rootFile(vmType limatype.VMType) string {
	if vmType == limatype.WSL2 {
		return filenames.BaseDiskLegacy
	}
	return filenames.Disk
}

// makeDisk makes the root disk and the files that belong to it. Lima takes an image, a kernel or a
// disk that exists for complete, though it copies them under their final names. So Lima makes them
// in a folder of their own, and the disk comes into place as the last of them.
func makeDisk(ctx context.Context, inst *limatype.Instance, guestAgent string) (err error) {
	work, err := os.MkdirTemp(inst.Dir, workPrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	unmade := *inst
	unmade.Dir = work
	if _, err := instance.Prepare(ctx, &unmade, guestAgent); err != nil {
		return err
	}
	if inst.VMType == limatype.WSL2 {
		if err := wsl2.EnsureFs(ctx, &unmade); err != nil {
			return err
		}
	}
	last := rootFile(inst.VMType)
	entries, err := os.ReadDir(work)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == last {
			continue
		}
		if err := publish(filepath.Join(work, entry.Name()), inst.Dir); err != nil {
			return err
		}
	}
	return publish(filepath.Join(work, last), inst.Dir)
}

// publish moves a complete file into a folder, so that it is whole there after a power failure, too.
func publish(file, dir string) error {
	if err := syncFile(file); err != nil {
		return err
	}
	if err := os.Rename(file, filepath.Join(dir, filepath.Base(file))); err != nil {
		return err
	}
	return syncDir(dir)
}

// removeWork removes what a make that was killed left in a folder.
func removeWork(dir string) error {
	left, err := filepath.Glob(filepath.Join(escapeGlob(dir), workPrefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
