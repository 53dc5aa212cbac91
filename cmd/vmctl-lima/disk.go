package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/lima-vm/go-qcow2reader"
	"github.com/lima-vm/lima/v2/pkg/lockutil"
	"github.com/spf13/cobra"
)

// The formats of disks. They are called as qemu-img calls them.
const (
	formatRaw   = "raw"
	formatQcow2 = "qcow2"
)

// sector is the unit of a disk's size, in bytes.
const sector = 512

// disk is a disk as it is wanted, and the result of making it so.
type disk struct {
	Path   string `json:"path"`
	Format string `json:"format"`
	Size   int64  `json:"size"` // bytes that the guest sees, a multiple of sector
}

func diskCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "disk",
		Short: "Make and grow disks beside the root disk",
	}
	cmd.AddCommand(
		diskAct("make", "Make an empty disk; one of that format and size that is there stays", makeEmpty),
		diskAct("grow", "Grow a disk, never shrink it", grow),
	)
	return cmd
}

func diskAct(name, short string, do func(context.Context, disk) error) *cobra.Command {
	return &cobra.Command{
		Use:   name + " PATH raw|qcow2 BYTES",
		Short: short,
		Args:  cobra.ExactArgs(3),
		RunE: act(func(ctx context.Context, _ *cobra.Command, args []string) (any, error) {
			wanted, err := parseDisk(args[0], args[1], args[2])
			if err != nil {
				return nil, err
			}
			err = lockutil.WithDirLock(filepath.Dir(wanted.Path), func() error { return do(ctx, wanted) })
			if err != nil {
				return nil, fmt.Errorf("%s disk %s: %w", name, wanted.Path, err)
			}
			return wanted, nil
		}),
	}
}

// parseDisk reads the arguments of a disk command. The size is rounded up to whole sectors.
func parseDisk(path, format, size string) (disk, error) {
	if format != formatRaw && format != formatQcow2 {
		return disk{}, fmt.Errorf("the format of a disk is %s or %s, not %q", formatRaw, formatQcow2, format)
	}
	bytes, err := strconv.ParseInt(size, 10, 64)
	if err != nil || bytes <= 0 || bytes > math.MaxInt64-sector {
		return disk{}, fmt.Errorf("the size of a disk is a number of bytes, not %q", size)
	}
	return disk{Path: path, Format: format, Size: (bytes + sector - 1) / sector * sector}, nil
}

// makeEmpty makes an empty disk, which is at its path only when it is complete. Lima makes qcow2
// whatever format is asked for.
func makeEmpty(ctx context.Context, wanted disk) error {
	if err := removeTemps(wanted.Path); err != nil {
		return err
	}
	switch there, err := inspectDisk(wanted.Path); {
	case err == nil && there == wanted:
		return nil
	case err == nil:
		return fmt.Errorf("a %s disk of %d bytes is there", there.Format, there.Size)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	temp, err := writeTemp(wanted.Path, "", 0o644)
	if err != nil {
		return err
	}
	if err := fillEmpty(ctx, temp, wanted); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return putInPlace(temp, wanted.Path)
}

// fillEmpty writes the content of an empty disk into a file, durably.
func fillEmpty(ctx context.Context, path string, wanted disk) error {
	if wanted.Format == formatRaw {
		if err := os.Truncate(path, wanted.Size); err != nil {
			return err
		}
		return syncFile(path)
	}
	if _, err := output(exec.CommandContext(ctx, "qemu-img", "create", "-q", "-f", wanted.Format, path, strconv.FormatInt(wanted.Size, 10))); err != nil {
		return err
	}
	return syncFile(path)
}

// grow grows a disk. The new part reads as zeros.
func grow(ctx context.Context, wanted disk) error {
	there, err := inspectDisk(wanted.Path)
	switch {
	case err != nil:
		return err
	case there.Format != wanted.Format:
		return fmt.Errorf("its format is %s, not %s", there.Format, wanted.Format)
	case there.Size == wanted.Size:
		return nil
	case there.Size > wanted.Size:
		return fmt.Errorf("it has %d bytes: a disk cannot shrink to %d", there.Size, wanted.Size)
	}
	if wanted.Format == formatRaw {
		if err := os.Truncate(wanted.Path, wanted.Size); err != nil {
			return err
		}
		return syncFile(wanted.Path)
	}
	if _, err := output(exec.CommandContext(ctx, "qemu-img", "resize", "-q", "-f", wanted.Format, wanted.Path, strconv.FormatInt(wanted.Size, 10))); err != nil {
		return err
	}
	return syncFile(wanted.Path)
}

// inspectDisk reads the format and the size of a disk.
func inspectDisk(path string) (disk, error) {
	file, err := os.Open(path)
	if err != nil {
		return disk{}, err
	}
	image, err := qcow2reader.Open(file)
	if err != nil {
		return disk{}, errors.Join(err, file.Close())
	}
	return disk{Path: path, Format: string(image.Type()), Size: image.Size()}, file.Close()
}
