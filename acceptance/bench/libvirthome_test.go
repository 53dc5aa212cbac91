//go:build cgo && libvirt_dlopen && linux

package bench_test

import (
	"context"
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

	virt "libvirt.org/go/libvirt"

	"vmctl/internal/clock"
	"vmctl/internal/sshx"
)

// home is the home of an ordinary user with a libvirt of their own.
type home struct {
	dir      string
	uri      string // of that libvirt, for this process
	uid, gid int
	programs map[string]string
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
	program := filepath.Join(dir, "vmctl")
	build := exec.CommandContext(b.Context(), "go", "build", "-tags", "libvirt_dlopen", "-o", program, "vmctl/cmd/vmctl")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build vmctl: %v\n%s", err, out)
	}
	virsh, err := exec.LookPath("virsh")
	check(b, err)
	h.programs = map[string]string{"vmctl": program, "virsh": virsh}
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
	cmd.Env = []string{
		"HOME=" + h.dir, "XDG_CONFIG_HOME=" + h.dir + "/c", "XDG_CACHE_HOME=" + h.dir + "/k", "XDG_STATE_HOME=" + h.dir + "/s",
		"XDG_RUNTIME_DIR=" + h.dir + "/r", "PATH=" + os.Getenv("PATH"), "LIBVIRT_DEFAULT_URI=qemu:///session",
	}
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

// script makes the VM of project one by bare calls: a copy of vmctl's, with the same files.
type script struct {
	home           *home
	kernel, initrd []byte
	xml            string
	target         sshx.Target
}

// bareName and bareID are the name and the ID of the script's domain.
const (
	bareName = "bare"
	bareID   = "00000000-0000-8000-8000-00000000000b"
)

// script reads the VM that vmctl has made.
func (h *home) script(b *testing.B) *script {
	b.Helper()
	s := &script{home: h, xml: h.run(b, "one", "virsh", "dumpxml", "--inactive", "one.dev")}
	between := func(from, to string) string {
		_, rest, _ := strings.Cut(s.xml, from)
		value, _, _ := strings.Cut(rest, to)
		return value
	}
	uuid, kernel, initrd := between("<uuid>", "<"), between("<kernel>", "<"), between("<initrd>", "<")
	var err error
	s.kernel, err = os.ReadFile(kernel)
	check(b, err)
	s.initrd, err = os.ReadFile(initrd)
	check(b, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(b, err)
	port := listener.Addr().(*net.TCPAddr).Port
	check(b, listener.Close())
	folder := filepath.Join(h.dir, "bare")
	check(b, os.Mkdir(folder, 0o700))
	h.own(b)
	h.run(b, "one", "virsh", "pool-create-as", "bare", "dir", "--target", folder)
	hostKey := between(`host_key="`, `"`)
	s.target = sshx.Target{
		Address: "127.0.0.1", Port: port, User: "root", IdentityFile: filepath.Join(h.dir, "k/identity"), Alias: bareName, HostKey: hostKey,
	}
	h.copy(b, filepath.Join(h.dir, "s/vmctl/one-k7m2qd9x4r/keys", uuid, "id_ed25519"), s.target.IdentityFile, nil)
	before, after, _ := strings.Cut(s.xml, "<metadata>")
	_, after, _ = strings.Cut(after, "</metadata>")
	s.xml = strings.NewReplacer(
		uuid, bareID, "one.dev", bareName, kernel, folder+"/kernel", initrd, folder+"/initrd",
		"127.0.0.1:"+between("hostfwd=tcp:127.0.0.1:", "-"), fmt.Sprintf("127.0.0.1:%d", port),
	).Replace(before + after)
	return s
}

// apply measures vmctl.
func (s *script) apply(b *testing.B) used {
	b.Helper()
	s.home.run(b, "one", "vmctl", "destroy", "--auto-approve")
	defer s.home.run(b, "one", "vmctl", "vm", "stop", "dev")
	return s.home.timed("vmctl", "apply", "--auto-approve")(b)
}

// bootLimit is the longest time that a guest may take until it lets the script in.
const bootLimit = 5 * time.Minute

// make measures the script.
func (s *script) make(b *testing.B) used {
	b.Helper()
	c, err := virt.NewConnect(s.home.uri)
	check(b, err)
	defer c.Close() //nolint:errcheck // it ends with the process
	u := spent(b, func() {
		own, err := virt.NewConnect(s.home.uri)
		check(b, err)
		pool, err := own.LookupStoragePoolByName(bareName)
		check(b, err)
		for name, content := range map[string][]byte{"kernel": s.kernel, "initrd": s.initrd} {
			upload(b, own, pool, name, content)
		}
		domain, err := own.DomainDefineXML(s.xml)
		check(b, err)
		check(b, domain.Create())
		ctx, cancel := context.WithTimeout(b.Context(), bootLimit)
		defer cancel()
		check(b, sshx.Wait(ctx, s.target, sshx.WaitOptions{Every: 250 * time.Millisecond, Sleep: clock.Sleep}))
		_, err = own.Close()
		check(b, err)
	})
	domain, err := c.LookupDomainByName(bareName)
	check(b, err)
	check(b, domain.Destroy())
	check(b, domain.Undefine())
	pool, err := c.LookupStoragePoolByName(bareName)
	check(b, err)
	for _, name := range []string{"kernel", "initrd"} {
		v, err := pool.LookupStorageVolByName(name)
		check(b, err)
		check(b, v.Delete(0))
	}
	return u
}

func upload(b *testing.B, c *virt.Connect, pool *virt.StoragePool, name string, content []byte) {
	b.Helper()
	v, err := pool.StorageVolCreateXML(fmt.Sprintf("<volume><name>%s</name><capacity>%d</capacity><allocation>0</allocation></volume>", name, len(content)), 0)
	check(b, err)
	s, err := c.NewStream(0)
	check(b, err)
	check(b, v.Upload(s, 0, uint64(len(content)), 0))
	check(b, s.SendAll(func(_ *virt.Stream, n int) ([]byte, error) {
		part := content[:min(n, len(content))]
		content = content[len(part):]
		return part, nil
	}))
	check(b, s.Finish())
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
