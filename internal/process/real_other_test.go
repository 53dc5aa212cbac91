//go:build !linux

package process_test

import "vmctl/internal/process"

// realHosts are the ways in which this machine can be asked.
func realHosts() map[string]process.Host { return map[string]process.Host{"here": {}} }

func otherHost([]string) process.Host { return process.Host{} }
