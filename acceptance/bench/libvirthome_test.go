//go:build cgo && libvirt_dlopen && linux

package bench_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vmctl/internal/clock"
)

// home is the home of an ordinary user with a libvirt of their own.
type home struct {
	dir      string
	uri      string // of that libvirt, for this process
	uid, gid int
	programs map[string]string
	more     []string // of the environment of its programs
}

// newHome makes a home and builds vmctl. Root becomes the user nobody for it.
func newHome(b *testing.B) *home {
	b.Helper()
	guest := os.Getenv("VMCTL_TEST_GUEST")
	if guest == "" {
		b.Skip("VMCTL_TEST_GUEST is not set: run `make bench`")
	}
	dir, err := os.MkdirTemp("", "vb") //nolint:usetesting // short: it holds sockets
	check(b, err)
	h := &home{dir: dir, uid: os.Getuid(), gid: os.Getgid(), uri: "qemu:///session?socket=" + dir + "/r/libvirt/libvirt-sock"}
	if h.uid == 0 {
		nobody, err := user.Lookup("nobody")
		check(b, err)
		h.uid, err = strconv.Atoi(nobody.Uid)
		check(b, err)
		h.gid, err = strconv.Atoi(nobody.Gid)
		check(b, err)
	}
	b.Cleanup(func() { h.end(b) })
	for _, name := range []string{"c", "k", "s", "r", "guest"} {
		check(b, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	for _, name := range []string{"vmlinuz", "initrd.gz"} {
		h.copy(b, filepath.Join(guest, name), filepath.Join(dir, "guest", name), nil)
	}
	program := filepath.Join(dir, "bin", "vmctl")
	build := exec.CommandContext(b.Context(), "go", "build", "-tags", "libvirt_dlopen", "-o", program, "vmctl/cmd/vmctl")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build vmctl: %v\n%s", err, out)
	}
	h.programs = map[string]string{"vmctl": program}
	for _, name := range []string{"virsh", "ssh"} {
		h.programs[name], err = exec.LookPath(name)
		check(b, err)
	}
	h.own(b)
	return h
}

// end ends the processes of the home and removes it.
func (h *home) end(b *testing.B) {
	entries, err := os.ReadDir("/proc")
	check(b, err)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if environment, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ")); err == nil && strings.Contains(string(environment), "HOME="+h.dir+"\x00") {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended by itself
		}
	}
	check(b, os.RemoveAll(h.dir))
}

// own gives all files of the home to its user.
func (h *home) own(b *testing.B) {
	b.Helper()
	check(b, filepath.WalkDir(h.dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, h.uid, h.gid))
	}))
}

// copy copies a file with its time; change may change its text.
func (h *home) copy(b *testing.B, from, to string, change func(string) string) {
	b.Helper()
	text, err := os.ReadFile(from)
	check(b, err)
	info, err := os.Stat(from)
	check(b, err)
	if change != nil {
		text = []byte(change(string(text)))
	}
	check(b, os.WriteFile(to, text, 0o600))
	check(b, os.Chtimes(to, info.ModTime(), info.ModTime()))
}

// write writes the spec of a project.
func (h *home) write(b *testing.B, project, text string) {
	b.Helper()
	folder := filepath.Join(h.dir, project)
	check(b, os.MkdirAll(folder, 0o700))
	check(b, os.WriteFile(filepath.Join(folder, "main.vmctl.hcl"), []byte(text), 0o600))
	h.own(b)
}

func (h *home) process(b *testing.B, project string, args []string) *exec.Cmd {
	cmd := exec.CommandContext(b.Context(), h.programs[args[0]], args[1:]...)
	cmd.Dir = filepath.Join(h.dir, project)
	cmd.Env = append([]string{
		"HOME=" + h.dir, "XDG_CONFIG_HOME=" + h.dir + "/c", "XDG_CACHE_HOME=" + h.dir + "/k", "XDG_STATE_HOME=" + h.dir + "/s",
		"XDG_RUNTIME_DIR=" + h.dir + "/r", "PATH=" + os.Getenv("PATH"), "LIBVIRT_DEFAULT_URI=qemu:///session",
	}, h.more...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(h.uid), Gid: uint32(h.gid)}} //nolint:gosec // they fit
	return cmd
}

// run runs a program in the folder of a project, and returns its output.
func (h *home) run(b *testing.B, project string, args ...string) string {
	b.Helper()
	out, err := h.process(b, project, args).CombinedOutput()
	if err != nil {
		b.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// timed returns a function that measures a program in the folder of project one.
func (h *home) timed(args ...string) func(*testing.B) used {
	return func(b *testing.B) used {
		b.Helper()
		cmd := h.process(b, "one", args)
		began := time.Now()
		out, err := cmd.CombinedOutput()
		took := time.Since(began)
		if err != nil {
			b.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return used{wall: took, cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	}
}

// script makes the VM of project one with virsh and ssh: a copy of vmctl's, with the same files.
type script struct {
	home  *home
	xml   string   // the file with the domain's description
	login []string // the command that logs in
}

// bareName and bareID are the name and the ID of the script's domain.
const (
	bareName = "bare"
	bareID   = "00000000-0000-8000-8000-00000000000b"
)

// script reads the VM that vmctl has made.
func (h *home) script(b *testing.B) *script {
	b.Helper()
	text := h.run(b, "one", "virsh", "dumpxml", "--inactive", "one.dev")
	between := func(from, to string) string {
		_, rest, _ := strings.Cut(text, from)
		value, _, _ := strings.Cut(rest, to)
		return value
	}
	uuid, kernel, initrd, hostKey := between("<uuid>", "<"), between("<kernel>", "<"), between("<initrd>", "<"), between(`host_key="`, `"`)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(b, err)
	port := listener.Addr().(*net.TCPAddr).Port
	check(b, listener.Close())
	folder, file := filepath.Join(h.dir, "bare"), func(name string) string { return filepath.Join(h.dir, "bare-"+name) }
	check(b, os.Mkdir(folder, 0o700))
	h.copy(b, kernel, file("kernel"), nil)
	h.copy(b, initrd, file("initrd"), nil)
	h.copy(b, filepath.Join(h.dir, "s/vmctl/one-k7m2qd9x4r/keys", uuid, "id_ed25519"), file("identity"), nil)
	check(b, os.WriteFile(file("hosts"), []byte(bareName+" "+hostKey+"\n"), 0o600))
	before, after, _ := strings.Cut(text, "<metadata>")
	_, after, _ = strings.Cut(after, "</metadata>")
	text = strings.NewReplacer(
		uuid, bareID, "one.dev", bareName, kernel, folder+"/kernel", initrd, folder+"/initrd",
		"127.0.0.1:"+between("hostfwd=tcp:127.0.0.1:", "-"), fmt.Sprintf("127.0.0.1:%d", port),
	).Replace(before + after)
	check(b, os.WriteFile(file("xml"), []byte(text), 0o600))
	h.own(b)
	h.run(b, "one", "virsh", "pool-create-as", bareName, "dir", "--target", folder)
	return &script{home: h, xml: file("xml"), login: []string{
		"ssh", "-F", "none", "-p", strconv.Itoa(port), "-i", file("identity"), "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
		"-o", "StrictHostKeyChecking=yes", "-o", "HostKeyAlias=" + bareName, "-o", "UserKnownHostsFile=" + file("hosts"), "-o", "ConnectTimeout=1",
		"root@127.0.0.1", "true",
	}}
}

// apply measures vmctl.
func (s *script) apply(b *testing.B) used {
	b.Helper()
	s.home.run(b, "one", "vmctl", "destroy", "--auto-approve")
	defer s.home.run(b, "one", "vmctl", "vm", "stop", "dev")
	return s.home.timed("vmctl", "apply", "--auto-approve")(b)
}

// A guest may take bootLimit until it lets the script in, which pauses after each failed attempt.
const (
	bootLimit = 5 * time.Minute
	sshPause  = 250 * time.Millisecond
)

// make measures the script: virsh makes the domain and starts it, and ssh is tried until it logs in.
func (s *script) make(b *testing.B) used {
	b.Helper()
	h := s.home
	began := time.Now()
	for _, name := range []string{"kernel", "initrd"} {
		file := filepath.Join(h.dir, "bare-"+name)
		info, err := os.Stat(file)
		check(b, err)
		h.run(b, "one", "virsh", "vol-create-as", bareName, name, fmt.Sprintf("%dB", info.Size()), "--allocation", "0")
		h.run(b, "one", "virsh", "vol-upload", "--pool", bareName, name, file)
	}
	h.run(b, "one", "virsh", "define", s.xml)
	h.run(b, "one", "virsh", "start", bareName)
	for h.process(b, "one", s.login).Run() != nil {
		if time.Since(began) > bootLimit {
			b.Fatal("the guest lets nobody in")
		}
		check(b, clock.Sleep(b.Context(), sshPause))
	}
	u := used{wall: time.Since(began)}
	h.run(b, "one", "virsh", "destroy", bareName)
	h.run(b, "one", "virsh", "undefine", bareName)
	for _, name := range []string{"kernel", "initrd"} {
		h.run(b, "one", "virsh", "vol-delete", "--pool", bareName, name)
	}
	return u
}

// start returns a function that measures a command that starts the VM of project one.
func (s *script) start(args ...string) func(*testing.B) used {
	return func(b *testing.B) used {
		b.Helper()
		u := s.home.timed(args...)(b)
		s.home.run(b, "one", "virsh", "destroy", "one.dev")
		return u
	}
}
