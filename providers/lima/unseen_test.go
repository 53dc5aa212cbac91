//go:build unix

package lima_test

import (
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"vmctl/providers"
)

// From another process namespace, as of a container, no process of a running instance can be seen. It is not off then:
// nothing is done to it, and none of its files is removed.
func TestUnseenIsNotOff(t *testing.T) {
	for _, test := range []struct {
		name string
		hide func(l *lab) (appear func())
		says string
	}{
		{
			name: "its host agent was recorded in another namespace", says: "recorded in another process namespace",
			hide: func(l *lab) func() {
				record := l.read("lab.dev", "vmctl.run.json")
				namespace := regexp.MustCompile(`"namespace": "[^"]*"`)
				if !namespace.MatchString(record) {
					l.t.Skip("this system has no such namespaces")
				}
				l.write(namespace.ReplaceAllString(record, `"namespace": "pid:[1]"`), "lab.dev", "vmctl.run.json")
				return func() { l.write(record, "lab.dev", "vmctl.run.json") }
			},
		},
		{
			name: "its host agent was recorded on another machine", says: `recorded on host "another"`,
			hide: func(l *lab) func() {
				record := l.read("lab.dev", "vmctl.run.json")
				l.write(regexp.MustCompile(`"host": "[^"]*"`).ReplaceAllString(record, `"host": "another"`), "lab.dev", "vmctl.run.json")
				return func() { l.write(record, "lab.dev", "vmctl.run.json") }
			},
		},
		{
			name: "its monitor answers", says: "qmp.sock, and no process of it can be seen from here",
			hide: func(l *lab) func() {
				if err := os.Remove(l.inDev("qmp.sock")); err != nil {
					l.t.Fatal(err)
				}
				monitor, err := net.Listen("unix", l.inDev("qmp.sock"))
				if err != nil {
					l.t.Fatal(err)
				}
				monitor.(*net.UnixListener).SetUnlinkOnClose(false) //nolint:forcetypeassert // of a unix socket
				return func() { _ = monitor.Close() }               //nolint:errcheck // it listens no more either way
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			off := l.object(devID)
			l.kill("ha.pid") // to this process it looks so from another namespace
			l.kill("qemu.pid")
			appear := test.hide(l)
			before := strings.Join(l.traces(), "\n")
			o := l.object(devID)
			if said := o.Unreadable["running"]; o.State != "" || !strings.Contains(said, test.says) {
				t.Errorf("it is %q: %s", o.State, said)
			}
			if said := findings(l.object(cacheID)); strings.Contains(said, "stale") {
				t.Errorf("its disk is said to be free: %s", said)
			}
			for _, action := range []providers.Action{providers.Start, providers.Stop, providers.Destroy} {
				if err := l.carryOut(l.change(dev, action, off)); err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%s: %v", action, err)
				}
			}
			if now := strings.Join(l.traces(), "\n"); now != before {
				t.Errorf("something was done to it:\n%s\nbefore:\n%s", now, before)
			}
			appear()
			if o := l.object(devID); o.State != providers.StateOff {
				t.Errorf("once it is known to be off, it is %q: %s", o.State, o.Unreadable["running"])
			}
			l.do(dev, providers.Start)
		})
	}
}

// An instance that was stopped where it ran can be started elsewhere: its run has left nothing.
func TestStoppedElsewhere(t *testing.T) {
	l := newLab(t)
	l.do(dev, providers.Stop)
	record := l.read("lab.dev", "vmctl.run.json")
	l.write(regexp.MustCompile(`"host": "[^"]*"`).ReplaceAllString(record, `"host": "another"`), "lab.dev", "vmctl.run.json")
	l.do(dev, providers.Start)
}
