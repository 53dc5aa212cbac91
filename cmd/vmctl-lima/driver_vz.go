//go:build darwin && cgo

package main

// Apple's virtualization framework is reached through cgo, so that this file is compiled on a Mac
// alone. Nothing of it has been tested here.
import _ "github.com/lima-vm/lima/v2/pkg/driver/vz" // registers the driver
