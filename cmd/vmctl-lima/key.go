package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/lima-vm/lima/v2/pkg/limatype/dirnames"
	"github.com/lima-vm/lima/v2/pkg/limatype/filenames"
	"github.com/lima-vm/lima/v2/pkg/lockutil"
)

// ensureKey makes the SSH key of LIMA_HOME, which all its instances share, unless it is there. Lima
// makes it, too, but two of Lima's processes at once make two, and when one is killed between the
// two files no instance starts any more. A private key that is there stays.
func ensureKey(ctx context.Context) error {
	dir, err := dirnames.LimaConfigDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return lockutil.WithDirLock(dir, func() error {
		if err := removeWork(dir); err != nil {
			return err
		}
		private, public := filepath.Join(dir, filenames.UserPrivateKey), filepath.Join(dir, filenames.UserPublicKey)
		hasPrivate, err := exists(private)
		if err != nil {
			return err
		}
		hasPublic, err := exists(public)
		switch {
		case err != nil:
			return err
		case hasPrivate && hasPublic:
			return nil
		case hasPrivate:
			return derivePublic(ctx, private, public)
		}
		return generateKey(ctx, private, public)
	})
}

// derivePublic writes the public key of a private one.
func derivePublic(ctx context.Context, private, public string) error {
	text, err := output(exec.CommandContext(ctx, "ssh-keygen", "-y", "-P", "", "-f", private))
	if err != nil {
		return fmt.Errorf("read the SSH key %s, whose public key is missing: %w", private, err)
	}
	return writeFile(public, text, 0o644)
}

// generateKey makes a pair of keys. The private one comes into place last, and means that both are
// complete.
func generateKey(ctx context.Context, private, public string) (err error) {
	work, err := os.MkdirTemp(filepath.Dir(private), workPrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	file := filepath.Join(work, filepath.Base(private))
	if _, err := output(exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lima", "-f", file)); err != nil {
		return fmt.Errorf("make an SSH key: %w", err)
	}
	if err := publish(file+".pub", filepath.Dir(public)); err != nil {
		return err
	}
	return publish(file, filepath.Dir(private))
}

// output runs a command and returns its standard output. The error has its standard error.
func output(cmd *exec.Cmd) (string, error) {
	text, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err)
	}
	return string(text), nil
}
