package run

import "syscall"

func bound() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
