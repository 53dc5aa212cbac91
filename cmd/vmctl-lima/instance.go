package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/docker/go-units"
	"github.com/lima-vm/lima/v2/pkg/instance/hostname"
	"github.com/lima-vm/lima/v2/pkg/limatype"
	"github.com/lima-vm/lima/v2/pkg/limatype/dirnames"
	"github.com/lima-vm/lima/v2/pkg/limatype/filenames"
	"github.com/lima-vm/lima/v2/pkg/osutil"
	"github.com/lima-vm/lima/v2/pkg/store"
)

// instanceDir returns the folder of an instance, which need not exist. It is an error if the name
// is not one of Lima's, or if the folder's path leaves no room for the sockets in it.
func instanceDir(name string) (string, error) {
	dir, err := dirnames.InstanceDir(name)
	if err != nil {
		return "", err
	}
	if socket := filepath.Join(dir, filenames.LongestSock); len(socket) >= osutil.UnixPathMax {
		return "", fmt.Errorf("the path of a socket in %s would have %d bytes, and the system allows %d: use a shorter name or LIMA_HOME",
			dir, len(socket), osutil.UnixPathMax-1)
	}
	return dir, nil
}

// loadInstance reads the YAML of an instance. Lima's own way to inspect an instance removes the pid
// files of processes that are gone; this one changes nothing.
func loadInstance(ctx context.Context, name string) (*limatype.Instance, error) {
	dir, err := instanceDir(name)
	if err != nil {
		return nil, err
	}
	config, err := store.LoadYAMLByFilePath(ctx, filepath.Join(dir, filenames.LimaYAML))
	if err != nil {
		return nil, fmt.Errorf("read instance %s: %w", name, err)
	}
	inst, err := instanceOf(name, dir, config)
	if err != nil {
		return nil, fmt.Errorf("read instance %s: %w", name, err)
	}
	return inst, nil
}

// instanceOf returns the instance that a complete configuration describes.
func instanceOf(name, dir string, config *limatype.LimaYAML) (*limatype.Instance, error) {
	memory, err := units.RAMInBytes(*config.Memory)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	disk, err := units.RAMInBytes(*config.Disk)
	if err != nil {
		return nil, fmt.Errorf("disk: %w", err)
	}
	return &limatype.Instance{
		Name: name, Hostname: hostname.FromInstName(name), Dir: dir, Config: config,
		Status: limatype.StatusStopped, VMType: *config.VMType, Arch: *config.Arch,
		CPUs: *config.CPUs, Memory: memory, Disk: disk,
		AdditionalDisks: config.AdditionalDisks, Networks: config.Networks,
		SSHAddress: "127.0.0.1", SSHLocalPort: *config.SSH.LocalPort, SSHConfigFile: filepath.Join(dir, filenames.SSHConfig),
	}, nil
}

// exists tells whether there is something at path, a dangling link included.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
