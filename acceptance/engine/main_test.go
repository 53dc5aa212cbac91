//go:build linux

// Package engine_test runs the real vmctl against a real container engine, dockerd, which it starts for itself on a
// socket and in folders of its own.
//
// VMCTL_SKIP_REAL=1, or -short, leaves these tests out.
package engine_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vmctl/internal/real"
)

// vmctl is the binary under test.
var vmctl string

func TestMain(m *testing.M) {
	flag.Parse()
	code := 0
	left, err := real.Skipped(os.Stdout, os.Getenv)
	if err == nil && !left {
		code, err = run(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if os.Getuid() != 0 {
		return 0, errors.New("dockerd runs as root only: run these tests as root, or leave them out with VMCTL_SKIP_REAL=1")
	}
	dir, err := os.MkdirTemp("", "vmctl-engine-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	defer func() { err = errors.Join(err, endShared()) }()
	vmctl = filepath.Join(dir, "vmctl")
	if out, err := exec.Command("go", "build", "-o", vmctl, "vmctl/cmd/vmctl").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build vmctl: %w\n%s", err, out)
	}
	return m.Run(), nil
}

// daemon is a dockerd of a test's own.
type daemon struct {
	t   testing.TB
	dir string // short: a socket's path has less than 108 bytes
	cmd *exec.Cmd
	log *os.File
	net *bridge // nil: its containers have no networks
}

// patience limits every wait of these tests.
const patience = 3 * time.Minute

func newDaemon(t testing.TB) *daemon {
	dir, err := os.MkdirTemp("/tmp", "e") //nolint:usetesting // the path of a test's folder is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Unmount(filepath.Join(dir, "data"), syscall.MNT_DETACH) //nolint:errcheck // only one that was killed leaves a mount
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	d := &daemon{t: t, dir: dir}
	t.Cleanup(d.stop)
	d.start()
	return d
}

func (d *daemon) socket() string { return filepath.Join(d.dir, "s") }

func (d *daemon) start() {
	d.t.Helper()
	var err error
	if d.log, err = os.OpenFile(filepath.Join(d.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		d.t.Fatal(err)
	}
	d.cmd = exec.Command("dockerd", append([]string{
		"--host", "unix://" + d.socket(), "--data-root", filepath.Join(d.dir, "data"), "--exec-root", filepath.Join(d.dir, "x"),
		"--pidfile", filepath.Join(d.dir, "p"), "--iptables=false",
	}, d.net.flags()...)...)
	d.cmd.Stdout, d.cmd.Stderr = d.log, d.log
	if err := d.cmd.Start(); err != nil {
		d.t.Fatalf("start dockerd (scripts/deps.sh engine installs it): %v", err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		if _, err := d.ask(http.MethodGet, "/_ping", ""); err == nil {
			return
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(d.log.Name()) //nolint:errcheck // only to tell more
			d.t.Fatalf("dockerd did not answer within %s:\n%s", patience, text)
		}
	}
}

// stop ends the engine, and its containers with it.
func (d *daemon) stop() {
	if d.cmd == nil {
		return
	}
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Error(err)
	}
	force := time.AfterFunc(patience, func() { _ = d.cmd.Process.Kill() }) //nolint:errcheck // Wait tells
	defer force.Stop()
	if err := d.cmd.Wait(); err != nil {
		d.t.Errorf("dockerd ended with %v", err)
	}
	d.cmd = nil
	if err := d.log.Close(); err != nil {
		d.t.Error(err)
	}
}

// ask sends a request to the engine, past vmctl.
func (d *daemon) ask(method, path, body string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.t.Context()), patience) // also at the end of a test
	defer cancel()
	t := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", d.socket())
	}}
	defer t.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, method, "http://engine"+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := (&http.Client{Transport: t}).Do(r)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err == nil && answer.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	return string(text), err
}

func (d *daemon) must(method, path, body string) string {
	d.t.Helper()
	text, err := d.ask(method, path, body)
	if err != nil {
		d.t.Fatal(err)
	}
	return text
}

// kill ends the engine as a crash would. Its containers live on until it starts again.
func (d *daemon) kill() {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, "x", "containerd", "containerd.pid"))
	if err != nil {
		d.t.Fatal(err)
	}
	containerd, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.cmd.Process.Kill(); err != nil {
		d.t.Fatal(err)
	}
	_ = d.cmd.Wait() //nolint:errcheck // it was killed
	// Its containerd ends with it, a moment later. An engine that starts meanwhile would take it for its own.
	for deadline := time.Now().Add(patience); syscall.Kill(containerd, 0) == nil && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	if err := d.log.Close(); err != nil {
		d.t.Error(err)
	}
}
