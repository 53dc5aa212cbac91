//go:build !linux && !darwin && !windows

package process

import "runtime"

func thisSystem() system { return unsupported{name: runtime.GOOS} }
