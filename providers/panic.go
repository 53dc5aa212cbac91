package providers

import (
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// PanicError is a panic of a provider: a bug in vmctl, or in a library that it uses.
type PanicError struct {
	Value any    // the argument of panic
	Where string // file and line: "sim/do.go:57"
	Stack string // the stack of the goroutine
}

// Error says that the mistake is not the user's.
func (e *PanicError) Error() string {
	return fmt.Sprintf("this is a mistake in vmctl, please report it: the provider panicked at %s: %v", e.Where, e.Value)
}

// Contain calls a provider, and returns its panic as a *PanicError. A panic in a goroutine
// that the provider started still ends the program.
func Contain(call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Where: panicked(), Stack: string(debug.Stack())}
		}
	}()
	return call()
}

// panicked returns where the panic that is being recovered was raised.
func panicked() string {
	var counters [32]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(1, counters[:])])
	for raised := false; ; {
		frame, more := frames.Next()
		switch ours := !strings.HasPrefix(frame.Function, "runtime."); {
		case frame.Function == "runtime.gopanic":
			raised = true
		case raised && ours:
			return filepath.Join(filepath.Base(filepath.Dir(frame.File)), fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line))
		}
		if !more {
			return "an unknown place"
		}
	}
}
