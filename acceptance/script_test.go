//go:build linux

package acceptance_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs every script as the test's user, each in a home of its own.
//
// Beside testscript's own commands a script has
//
//	exits CODE CMD ARG…   runs CMD and demands that very exit code
//	await [-n] TEXT CMD…  runs CMD until its output holds TEXT (-n: no longer holds it)
//	qemu NAME             prints the process IDs of QEMU for the domain NAME
//	kill9 NAME            ends QEMU of the domain NAME at once
//	kill9-of PATH…        ends the processes of this home with an argument that ends in /PATH at once
//	kill9-exec            ends the vm exec of this home at once
//	user-git              is git as the test's user (a program)
//	user-sh               is a shell as the test's user (a program)
//	nothing-left          demands that no QEMU of this home runs
//	hold-port             listens on a free port of loopback, sets PORT to it, until free-port
//	free-port             frees it
//	serve [tls]           starts a web server with the script's files, and sets URL
//	cut BYTES             makes it end every answer after so many bytes; 0: none
//	asked                 prints what it was asked for since the last time
//	splice FILE OLD NEW   replaces text in a file
//	neighbour             starts the libvirt of another user, whose socket is $NEIGHBOUR, with a pool vms in each
//	inside CODE SETUP CMD…  like exits, on a machine that the shell text SETUP has changed
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE") == "1",
		Setup:               setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":        exits,
			"await":        await,
			"qemu":         qemu,
			"kill9":        kill9,
			"kill9-of":     kill9Of,
			"kill9-exec":   kill9Exec,
			"nothing-left": nothingLeft,
			"splice":       splice,
			"inside":       inside,
			"hold-port":    holdPort,
			"free-port":    freePort,
			"neighbour":    neighbour,
			"serve":        serve,
			"cut":          cut,
			"hold":         hold,
			"asked":        asked,
		},
	})
}

func setup(env *testscript.Env) error {
	home, err := os.MkdirTemp("", "vm")
	if err != nil {
		return err
	}
	env.Defer(func() {
		for _, pid := range processesWith(home) {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended by itself
		}
		removeAll(home)
	})
	for _, dir := range []string{"c", "k", "s", "r", "bin"} {
		if err := os.Mkdir(filepath.Join(home, dir), 0o700); err != nil {
			return err
		}
	}
	env.Vars = append(env.Vars,
		"HOME="+home, "XDG_CONFIG_HOME="+home+"/c", "XDG_CACHE_HOME="+home+"/k",
		"XDG_STATE_HOME="+home+"/s", "XDG_RUNTIME_DIR="+home+"/r", "LIBVIRT_DEFAULT_URI=qemu:///session",
		"GUEST="+shared.guest, "IMAGE="+shared.image, "REAL_VMCTL="+shared.vmctl, "TERM=dumb",
	)
	env.Setenv("PATH", filepath.Join(home, "bin")+":"+env.Getenv("PATH"))
	if err := asUser(home, "vmctl", shared.vmctl); err != nil {
		return err
	}
	if virsh, err := exec.LookPath("virsh"); err != nil {
		return fmt.Errorf("virsh is missing: install libvirt-clients, or run `make test`: %w", err)
	} else if err := asUser(home, "virsh", virsh); err != nil {
		return err
	}
	if git, err := exec.LookPath("git"); err != nil {
		return err
	} else if err := asUser(home, "user-git", git); err != nil {
		return err
	}
	for name, program := range map[string]string{"user-sh": "sh", "sleep": "sleep"} {
		path, err := exec.LookPath(program)
		if err != nil {
			return err
		}
		if err := asUser(home, name, path); err != nil {
			return err
		}
	}
	if err := asUser(home, "limactl", "env "+limaEnvironment(home)+" "+shared.limactl); err != nil {
		return err
	}
	if err := os.Symlink(shared.guest, filepath.Join(env.WorkDir, "guest")); err != nil {
		return err
	}
	return errors.Join(ownTree(home), ownTree(env.WorkDir), os.Chmod(home, 0o755), os.Chmod(filepath.Dir(env.WorkDir), 0o755)) //nolint:gosec // the test's user has to get in
}

// limaEnvironment returns the environment of limactl, as arguments of env: it emulates all
// processors, and unless a script sets LIMA_HOME it works in the home that vmctl made for provider.lima.here.
func limaEnvironment(home string) string {
	return `"LIMA_HOME=${LIMA_HOME:-$(echo ` + home + `/s/vmctl/demo-*/lima-here)}" ` +
		`"QEMU_SYSTEM_X86_64=qemu-system-x86_64 -machine q35,vmport=off -accel tcg,thread=multi"`
}

// asUser puts a program on the PATH that runs the real one as the test's user.
func asUser(home, name, program string) error {
	text := "#!/bin/sh\nexec " + program + " \"$@\"\n"
	if os.Getuid() == 0 {
		text = fmt.Sprintf("#!/bin/sh\nexec setpriv --reuid=%s --regid=%s --clear-groups %s \"$@\"\n", shared.user.Uid, shared.user.Gid, program)
	}
	return os.WriteFile(filepath.Join(home, "bin", name), []byte(text), 0o755) //nolint:gosec // a program
}

// ownTree gives a tree to the test's user.
func ownTree(dir string) error { return chownTree(dir, shared.user) }

// command runs a program of the script's PATH.
func command(ts *testscript.TestScript, args []string) (code int) {
	stdout, stderr, code := quietly(ts, args)
	fmt.Fprintf(ts.Stdout(), "%s", stdout)
	fmt.Fprintf(ts.Stderr(), "%s", stderr)
	return code
}

// quietly runs a program and keeps what it says from the script.
func quietly(ts *testscript.TestScript, args []string) (stdout, stderr []byte, code int) {
	if len(args) == 0 {
		ts.Fatalf("no command")
	}
	path := filepath.Join(ts.Getenv("HOME"), "bin", args[0])
	if _, err := os.Stat(path); err != nil {
		var lookErr error
		if path, lookErr = exec.LookPath(args[0]); lookErr != nil {
			ts.Fatalf("%v", lookErr)
		}
	}
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), environ(ts)
	stdout, stderr, code, err := bounded(cmd, runLimit)
	if err != nil {
		ts.Fatalf("%v", err)
	}
	return stdout, stderr, code
}

func environ(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{
		"PATH", "HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
		"LIBVIRT_DEFAULT_URI", "SSL_CERT_FILE", "VMCTL_DATA_DIR", "VMCTL_LOG", "TERM", "TMPDIR", "LIMA_HOME",
		"VMCTL_VAR_greeting", "VMCTL_VAR_trigger",
	} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := command(ts, args[1:])
	if code != want {
		ts.Fatalf("%s: exit code %d, want %d", strings.Join(args[1:], " "), code, want)
	}
}

// inside runs a command where mounts are its own, after a shell text has changed
// them: a file hidden, a disk too small.
func inside(ts *testscript.TestScript, _ bool, args []string) {
	path := filepath.Join(ts.Getenv("HOME"), "bin", args[2])
	shell := []string{"unshare", "--mount"}
	if os.Getuid() != 0 {
		shell = append(shell, "--user", "--map-current-user", "--keep-caps")
	}
	shell = append(shell, "sh", "-ec", args[1]+"\nexec \"$@\"", "sh", path)
	exits(ts, false, append([]string{args[0]}, append(shell, args[3:]...)...))
}

// holdPort listens on a port, so that nothing else can.
func holdPort(ts *testscript.TestScript, _ bool, _ []string) {
	listener, err := listenBelowEphemeral()
	ts.Check(err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	ts.Check(err)
	ts.Setenv("PORT", port)
	ts.Defer(func() { listener.Close() }) //nolint:errcheck // free-port may have closed it
	held.Store(ts, listener)
}

// listenBelowEphemeral listens on a free port that the kernel gives to nobody by itself: once it is free
// again, no connection of another program takes it.
func listenBelowEphemeral() (net.Listener, error) {
	var err error
	for range 100 {
		var listener net.Listener
		if listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))); err == nil { //nolint:gosec // any port will do
			return listener, nil
		}
	}
	return nil, err
}

// held are the listeners of holdPort, by script.
var held sync.Map

func freePort(ts *testscript.TestScript, _ bool, _ []string) {
	listener, ok := held.LoadAndDelete(ts)
	if !ok {
		ts.Fatalf("no port is held")
	}
	ts.Check(listener.(net.Listener).Close())
}

// await fails after two minutes, which is far more than anything here needs.
func await(ts *testscript.TestScript, _ bool, args []string) {
	absent := args[0] == "-n"
	if absent {
		args = args[1:]
	}
	var out, errs []byte
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		out, errs, _ = quietly(ts, args[1:])
		if bytes.Contains(append(out, errs...), []byte(args[0])) != absent {
			return
		}
	}
	ts.Fatalf("waited in vain for %q in:\n%s%s", args[0], out, errs)
}

func qemu(ts *testscript.TestScript, _ bool, args []string) {
	fmt.Fprintln(ts.Stdout(), args[0], qemuOf(ts, args[0]))
}

func kill9(ts *testscript.TestScript, _ bool, args []string) {
	pids := qemuOf(ts, args[0])
	if len(pids) != 1 {
		ts.Fatalf("%d QEMU processes for %s: %v", len(pids), args[0], pids)
	}
	ts.Check(syscall.Kill(pids[0], syscall.SIGKILL))
}

func kill9Of(ts *testscript.TestScript, _ bool, args []string) {
	var pids []int
	for _, path := range args {
		ended := len(pids)
		for _, pid := range processesWith(ts.Getenv("HOME")) {
			argv := strings.Split(commandLine(pid), "\x00")
			if slices.ContainsFunc(argv, func(arg string) bool { return strings.HasSuffix(arg, "/"+path) }) {
				ts.Check(syscall.Kill(pid, syscall.SIGKILL))
				pids = append(pids, pid)
			}
		}
		if len(pids) == ended {
			ts.Fatalf("no process has an argument that ends in /%s", path)
		}
	}
	for _, pid := range pids {
		waitUntilGone(ts, pid)
	}
}

// waitUntilGone waits until a process that was ended has no memory any more. Its parent may leave it
// unread for longer.
func waitUntilGone(ts *testscript.TestScript, pid int) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if commandLine(pid) == "" {
			return
		}
	}
	ts.Fatalf("process %d does not end", pid)
}

func kill9Exec(ts *testscript.TestScript, _ bool, _ []string) {
	var pids []int
	for _, pid := range processesWith(ts.Getenv("HOME")) {
		if strings.HasPrefix(commandLine(pid), ts.Getenv("REAL_VMCTL")+"\x00vm\x00exec\x00") {
			pids = append(pids, pid)
		}
	}
	if len(pids) != 1 {
		ts.Fatalf("%d processes run vm exec: %v", len(pids), pids)
	}
	ts.Check(syscall.Kill(pids[0], syscall.SIGKILL))
}

func nothingLeft(ts *testscript.TestScript, _ bool, _ []string) {
	for _, pid := range processesWith(ts.Getenv("HOME")) {
		if cmdline := commandLine(pid); strings.Contains(cmdline, "qemu-system") {
			ts.Fatalf("process %d is left: %s", pid, cmdline)
		}
	}
	var files []string
	ts.Check(filepath.WalkDir(ts.Getenv("XDG_STATE_HOME"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, filepath.Base(path))
		}
		return err
	}))
	slices.Sort(files)
	fmt.Fprintln(ts.Stdout(), strings.Join(files, "\n"))
}

// qemuOf finds QEMU of a domain in this script's home.
func qemuOf(ts *testscript.TestScript, domain string) []int {
	named := regexp.MustCompile(`(^|\x00)guest=` + regexp.QuoteMeta(domain) + `[,\x00]`)
	var pids []int
	for _, pid := range processesWith(ts.Getenv("HOME")) {
		if named.MatchString(commandLine(pid)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// processesWith lists the test's user's processes that name a folder in their
// arguments or run with it as their home.
func processesWith(home string) []int {
	var pids []int
	for _, pid := range processesOf(shared.user.Uid) {
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && bytes.Contains(environment, []byte("HOME="+home+"\x00")) || strings.Contains(commandLine(pid), home+"/") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func commandLine(pid int) string {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	return string(line)
}

func splice(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	text, err := os.ReadFile(path)
	ts.Check(err)
	if !strings.Contains(string(text), args[1]) {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(path, []byte(strings.Replace(string(text), args[1], args[2], 1)), 0o644)) //nolint:gosec // the test's user reads it
}
