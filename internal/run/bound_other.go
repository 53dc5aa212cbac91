//go:build !linux && !darwin

package run

import "syscall"

func bound() *syscall.SysProcAttr { return nil }
