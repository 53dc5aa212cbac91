//go:build unix

package process

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// detached puts a child into a session of its own, without a terminal.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// Requested returns a context that ends when ctx does, when this process is
// requested to end, as by Host.Request, or when cancel is called, which the
// caller does in the end. From its return on, a request ends nothing else.
func Requested(ctx context.Context) (requested context.Context, cancel context.CancelFunc, err error) {
	requested, cancel = signal.NotifyContext(ctx, syscall.SIGTERM)
	return requested, cancel, nil
}

// AskChild asks a child of this process, whose end nobody has waited for yet, to end.
func AskChild(child *os.Process) error { return child.Signal(syscall.SIGTERM) }
