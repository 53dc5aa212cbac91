//go:build !unix

package main

import "os"

// ownSignal is nil: this system has no signal that a program sends to itself.
var ownSignal os.Signal //nolint:gochecknoglobals // there is no constant of this type

// signalSelf sends nothing.
func signalSelf() bool { return false }

// notifyOwn does nothing.
func notifyOwn(chan<- os.Signal) {}
