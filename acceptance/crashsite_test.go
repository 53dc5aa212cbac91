//go:build linux

package acceptance_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vmctl/internal/process"
	"vmctl/state"
)

// crashSite is a home with a project in which vmctl is killed.
type crashSite struct {
	t      *testing.T
	name   string // for messages
	binary string // the path of vmctl
	home   string
	dir    string // of the spec
	data   string
	said   bytes.Buffer // by every vmctl so far
	failed bool
	before []int // the processes of VMs when the operation began
	after  []int // and when it had ended, or was killed
	broken bool  // after the kill, vmctl could not tell whether a process is the VM
}

func newCrashSite(t *testing.T, o operation, name string) *crashSite {
	t.Helper()
	home, err := os.MkdirTemp("", "vm") //nolint:usetesting // the path of t.TempDir is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	s := &crashSite{t: t, name: name, binary: o.program(), home: home, dir: filepath.Join(home, "p"), data: filepath.Join(home, "d")}
	t.Cleanup(s.close)
	for _, dir := range []string{"p", "d", "c", "s", "r"} {
		if err := os.Mkdir(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	image := os.WriteFile(filepath.Join(s.dir, "base.img"), []byte(strings.Repeat("an image\n", 1<<13)), 0o600)
	dataDir := state.Folder{Dir: s.data}.SetDataDirID("site") // the same IDs with and without a kill
	guests := errors.Join(os.Symlink(shared.guest, filepath.Join(s.dir, "guest")), os.Symlink(shared.image, filepath.Join(s.dir, "debian.qcow2")))
	if err := errors.Join(image, dataDir, guests, ownTree(home)); err != nil {
		t.Fatal(err)
	}
	if o.repo {
		s.repository()
	}
	if o.engine {
		s.engine()
	}
	return s
}

// close ends the processes that are left, also after a failure. It may be called twice.
func (s *crashSite) close() {
	for _, pid := range processesWith(s.home) {
		syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended by itself
	}
	removeAll(s.home)
}

func (s *crashSite) errorf(format string, args ...any) {
	s.t.Helper()
	s.failed = true
	s.t.Errorf("%s: "+format+"\n%s", append(append([]any{s.name}, args...), s.said.String())...)
}

// run brings the world to where the operation begins, and then runs it under the
// tracer.
func (s *crashSite) run(o operation, at *mutation) execution {
	s.t.Helper()
	if o.before != "" {
		s.write(o.before)
		s.must("apply", "--auto-approve")
	}
	if o.damage != nil {
		o.damage(s)
	}
	s.write(o.spec)
	s.before = s.machines()
	out, err := os.Create(filepath.Join(s.home, "out"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer out.Close() //nolint:errcheck // what it holds is for messages
	x := trace(s.t, tracee{
		path: s.binary, args: o.command(), env: s.environ(), dir: s.dir, out: out, uid: number(s.t, shared.user.Uid), gid: number(s.t, shared.user.Gid),
		repeats: o.repeats(),
	}, at)
	s.after = s.machines()
	text, err := os.ReadFile(out.Name())
	if err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintf(&s.said, "$ vmctl %s (killed: %t)\n%s", strings.Join(o.command(), " "), x.Killed, text)
	if err := os.Remove(out.Name()); err != nil {
		s.t.Fatal(err)
	}
	if !x.Killed && x.Code != 0 {
		s.errorf("vmctl %s: exit code %d", strings.Join(o.command(), " "), x.Code)
	}
	return x
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *crashSite) environ() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "XDG_CONFIG_HOME=" + s.home + "/c", "XDG_CACHE_HOME=" + shared.cache,
		"XDG_STATE_HOME=" + s.home + "/s", "XDG_RUNTIME_DIR=" + s.home + "/r", "LIBVIRT_DEFAULT_URI=qemu:///session",
		"VMCTL_DATA_DIR=" + s.data, "TERM=dumb",
	}
}

// vmctl runs vmctl to its end.
func (s *crashSite) vmctl(args ...string) (stdout string, code int) {
	s.t.Helper()
	return s.program(s.binary, args...)
}

func (s *crashSite) program(path string, args ...string) (stdout string, code int) {
	s.t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = s.dir, s.environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential(tracee{uid: number(s.t, shared.user.Uid), gid: number(s.t, shared.user.Gid)})}
	out, errs, code, err := bounded(cmd, runLimit)
	if err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintf(&s.said, "$ %s %s (exit code %d)\n%s%s", filepath.Base(path), strings.Join(args, " "), code, out, errs)
	return string(out), code
}

// must runs vmctl, which has to succeed, and returns its output.
func (s *crashSite) must(args ...string) string {
	s.t.Helper()
	stdout, code := s.vmctl(args...)
	if code != 0 {
		s.errorf("vmctl %s: exit code %d, want 0", strings.Join(args, " "), code)
	}
	return stdout
}

// interrupted demands that a plan tells of every step that was begun and did not
// end, and reports whether there was any.
func (s *crashSite) interrupted() bool {
	s.t.Helper()
	begun := s.begun()
	var plan struct {
		Findings []struct{ Kind, Address string }
	}
	text, code := s.vmctl("plan", "--json")
	if err := json.Unmarshal([]byte(text), &plan); err != nil || code != 0 {
		s.errorf("plan after the kill: exit code %d, %v", code, err)
		return len(begun) > 0
	}
	s.broken = slices.ContainsFunc(plan.Findings, func(f struct{ Kind, Address string }) bool { return f.Kind == "broken" })
	status, _ := s.vmctl("status")
	for _, address := range begun { // row L45
		if !strings.Contains(status, "an earlier run was cut short") {
			s.errorf("the status does not say that something was cut short for %s", address)
		}
		if !slices.ContainsFunc(plan.Findings, func(f struct{ Kind, Address string }) bool {
			return f.Kind == "interrupted" && f.Address == address
		}) {
			s.errorf("the plan does not say that something was interrupted for %s", address)
		}
	}
	return len(begun) > 0
}

// begun lists the addresses of which the journal holds a begin without an end.
func (s *crashSite) begun() []string {
	paths, err := filepath.Glob(filepath.Join(s.data, "journal-*.ndjson"))
	if err != nil {
		s.t.Fatal(err)
	}
	var state struct{ Serial int }
	if text, err := os.ReadFile(filepath.Join(s.data, "state.json")); err == nil {
		if err := json.Unmarshal(text, &state); err != nil {
			s.errorf("read the state: %v", err)
		}
	}
	open := map[int]string{}
	for _, path := range paths {
		if filepath.Base(path) != fmt.Sprintf("journal-%d.ndjson", state.Serial) {
			continue // the state holds what it says
		}
		text, err := os.ReadFile(path)
		if err != nil {
			s.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var l struct {
				E struct {
					Kind, Address string
					Step          int
				}
			}
			if json.Unmarshal([]byte(line), &l) != nil {
				continue // torn
			}
			switch l.E.Kind {
			case "begin":
				open[l.E.Step] = l.E.Address
			case "done", "failed":
				delete(open, l.E.Step)
			}
		}
	}
	var all []string
	for _, address := range open {
		all = append(all, address)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// converge goes on as a user would, until a plan has nothing to do, and returns
// the world then.
func (s *crashSite) converge(o operation) map[string]int {
	s.t.Helper()
	for range 2 {
		if _, code := s.vmctl(o.recovery()...); code != 0 {
			s.errorf("vmctl %s: exit code %d", strings.Join(o.recovery(), " "), code)
			return s.world(o)
		}
		if o.again != nil || s.idle() {
			break
		}
	}
	if o.again == nil && !s.idle() {
		s.errorf("after two applies the plan still has something to do")
	}
	return s.world(o)
}

func (s *crashSite) idle() bool {
	s.t.Helper()
	_, code := s.vmctl("plan", "--detailed-exitcode")
	return code == 0
}

// world counts everything that is there: files, processes, domains, records.
func (s *crashSite) world(o operation) map[string]int {
	s.t.Helper()
	all := map[string]int{}
	s.settle()
	s.files(all)
	s.processes(all)
	s.domains(all)
	s.records(all)
	if o.repo {
		s.work(all)
	}
	if !o.renews && !o.engine {
		return all
	}
	renamed := map[string]int{}
	for what, n := range all {
		renamed[engineID.ReplaceAllString(objectID.ReplaceAllString(what, "ID"), "ID")] += n
	}
	return renamed
}

var engineID = regexp.MustCompile(`\b[0-9a-f]{12}\b`) // of an engine, which depends on the path of its socket

var objectID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-([0-9a-f]{12}|N)`) // N: as name has it

// settle waits until each QEMU of Lima has made its files, the socket of its monitor last.
func (s *crashSite) settle() {
	for _, pid := range processesWith(s.home) {
		for line := commandLine(pid); line != ""; line = commandLine(pid) {
			m := limaProcess.FindStringSubmatch(line)
			if m == nil || m[2] != "qemu" {
				break
			}
			folder := filepath.Join(s.data, "lima-here", m[1])
			_, unready := os.Stat(filepath.Join(folder, "qmp.sock"))
			_, unnamed := os.Stat(filepath.Join(folder, "qemu.pid"))
			if unready == nil && unnamed == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// passing matches files that are there or not: the logs of the runs of an instance of Lima, the socket of its shared
// connection, a record of its run that was not written to its end, which its next stop removes; and the logs of what
// failed.
var passing = regexp.MustCompile(`^lima-here/[^/]+/([^/]+\.log(\.1)?|ssh\.sock[^/]*|\.vmctl\.run\.json\.\d+\.tmp)$|^logs/`)

// files counts the files of the data directory, without the backup, the reserved room, what passes, and
// the locks. The locks stay for good: the records beside them name their holders.
func (s *crashSite) files(all map[string]int) {
	err := filepath.WalkDir(s.data, func(path string, d os.DirEntry, err error) error {
		isLock := filepath.Base(path) == "keys.lock" || filepath.Base(path) == ".vmctl.lock" || filepath.Base(filepath.Dir(path)) == "busy" && !strings.Contains(filepath.Base(path), ".owner")
		if errors.Is(err, os.ErrNotExist) { // a file of a process that runs
			return nil
		}
		if err == nil && !d.IsDir() && filepath.Base(path) != "state.json.backup" && filepath.Base(path) != "reserve" && !isLock {
			relative, err := filepath.Rel(s.data, path)
			if err != nil {
				return err
			}
			if passing.MatchString(relative) {
				return nil
			}
			all["file "+filepath.Join(filepath.Dir(relative), name(relative))]++
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

var (
	engineServed = regexp.MustCompile(`\x00serve-engine\x00([^\x00]+)\x00`)
	simFile      = regexp.MustCompile(`\x00--file\x00[^\x00]*/([^/\x00]+)\.json\x00`)
	qemuGuest    = regexp.MustCompile(`\x00guest=([^,\x00]+)`)
	// limaProcess matches QEMU and the host agent of an instance, which name their pid file.
	limaProcess = regexp.MustCompile(`\x00--?pidfile\x00[^\x00]*/([^/\x00]+)/(qemu|ha)\.pid\x00`)
)

// machines lists the processes of VMs, sorted.
func (s *crashSite) machines() []int {
	var pids []int
	for _, pid := range processesWith(s.home) {
		if line := commandLine(pid); simFile.MatchString(line) || qemuGuest.MatchString(line) || limaProcess.MatchString(line) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// startedOnce demands that a start or a restart that was cut short happened after
// all, and only once: the process that the killed run had started still runs, unless
// vmctl could not tell after the kill that it was the VM.
//
// row L18
// row L24
func (s *crashSite) startedOnce() {
	s.t.Helper()
	now := s.machines()
	// What ran before the kill and has not ended yet, such as the agent of a VM that is going down, was not started.
	started := slices.DeleteFunc(slices.Clone(s.after), func(pid int) bool { return slices.Contains(s.before, pid) })
	switch {
	case slices.Equal(now, s.before):
		s.errorf("it was not started: processes %v", now)
	case !s.broken && len(started) > 0 && !slices.Equal(now, s.after):
		s.errorf("it was started twice: processes %v, %v after the kill, %v now", s.before, s.after, now)
	}
}

func (s *crashSite) processes(all map[string]int) {
	for _, pid := range processesWith(s.home) {
		line := commandLine(pid)
		for _, pattern := range []*regexp.Regexp{simFile, qemuGuest, limaProcess, engineServed} {
			if m := pattern.FindStringSubmatch(line); m != nil {
				all["process of "+strings.Join(m[1:], ", ")]++
			}
		}
	}
}

// domains asks libvirt, if this home has one.
func (s *crashSite) domains(all map[string]int) {
	if _, err := os.Stat(filepath.Join(s.home, "c", "libvirt")); err != nil {
		return
	}
	virsh, err := exec.LookPath("virsh")
	if err != nil {
		s.t.Fatal(err)
	}
	names, code := s.program(virsh, "list", "--all", "--name")
	if code != 0 {
		s.errorf("virsh list: exit code %d", code)
	}
	for _, domain := range strings.Fields(names) {
		state, _ := s.program(virsh, "domstate", domain)
		memory, _ := s.program(virsh, "dumpxml", "--xpath", "/domain/memory", domain)
		all[fmt.Sprintf("domain %s %s %s", domain, strings.TrimSpace(state), strings.TrimSpace(memory))]++
	}
}

// records counts the records of the state and its interruptions. It leaves out counters
// and values that were chosen by chance.
func (s *crashSite) records(all map[string]int) {
	text, err := os.ReadFile(filepath.Join(s.data, "state.json"))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil {
		s.t.Fatal(err)
	}
	var state struct {
		Records map[string]struct {
			ID, Name   string
			Reserved   bool
			Conditions map[string]struct{ Status string }
			Values     struct{ Value map[string]any }
		}
		Interrupted []any
	}
	if err := json.Unmarshal(text, &state); err != nil {
		s.errorf("read the state: %v", err)
	}
	for address, r := range state.Records {
		all[fmt.Sprintf("record %s %s %s ready=%t reserved=%t running=%v memory=%v cpus=%v", address, r.ID, r.Name, r.Conditions["ssh.ready"].Status == "true", r.Reserved,
			r.Values.Value["running"], r.Values.Value["memory"], r.Values.Value["cpus"])]++
	}
	if len(state.Interrupted) > 0 {
		all["interruption"]++
	}
}

// simProcess finds the process of a simulated VM.
func (s *crashSite) simProcess(vm string) process.Identity {
	s.t.Helper()
	found, err := process.Host{}.Find(s.t.Context(), process.HasArgument(filepath.Join(s.data, "sim-here", "vms", vm+".json")))
	if err != nil || len(found) != 1 {
		s.t.Fatalf("processes of %s: %v, %v", vm, found, err)
	}
	return found[0]
}

// put makes a file of the data directory, as somebody else would.
func (s *crashSite) put(name, content string) {
	s.t.Helper()
	path := filepath.Join(s.data, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(content), 0o600)
	}
	if err = errors.Join(err, ownTree(s.data)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *crashSite) remove(pattern string) {
	s.t.Helper()
	paths, err := filepath.Glob(filepath.Join(s.data, pattern))
	if err != nil || len(paths) == 0 {
		s.t.Fatalf("nothing matches %s: %v", pattern, err)
	}
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			s.t.Fatal(err)
		}
	}
}
