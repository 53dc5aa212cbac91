//go:build !windows

package wsl

import "errors"

// registered fails: only Windows has WSL.
func registered() ([]Registration, error) { return nil, errors.ErrUnsupported }
