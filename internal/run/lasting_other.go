//go:build !unix

package run

import "syscall"

func apart() *syscall.SysProcAttr { return nil }
