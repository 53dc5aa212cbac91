//go:build !unix && !windows

package process

import (
	"context"
	"os"
	"runtime"
	"syscall"
)

// detached is not reached: Start fails before, where nothing is recognised.
func detached() *syscall.SysProcAttr { return nil }

// Requested fails: nothing can be requested here.
func Requested(context.Context) (requested context.Context, cancel context.CancelFunc, err error) {
	return nil, nil, unsupported{name: runtime.GOOS}.err()
}

// AskChild ends a child of this process.
func AskChild(child *os.Process) error { return child.Kill() }
