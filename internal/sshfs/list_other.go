//go:build !linux

package sshfs

import (
	"fmt"
	"runtime"

	"vmctl/internal/mountinfo"
)

// Supported returns the reason why this system has no mounts of sshfs.
func Supported() error { return fmt.Errorf("mounts are not supported on %s", runtime.GOOS) }

func list() ([]mountinfo.Entry, error) { return nil, nil }

func holders(string) []Holder { return nil }
