//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// ownSignal is a signal that vmctl sends to itself.
const ownSignal = syscall.SIGUSR2

// signalSelf sends ownSignal to vmctl, and reports whether it will come.
func signalSelf() bool { return syscall.Kill(os.Getpid(), ownSignal) == nil }

// notifyOwn delivers ownSignal to a channel.
func notifyOwn(to chan<- os.Signal) { signal.Notify(to, ownSignal) }
