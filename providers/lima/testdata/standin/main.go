//go:build unix

// Standin plays vmctl-lima, QEMU and wsl.exe for the tests of the provider: the same files, processes, arguments, sockets
// and answers, without a guest. The real ones are in the tests of acceptance. It is a small program of its own, since the
// tests start it some thousand times.
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"vmctl/internal/wsl/wsltest"
	"vmctl/internal/yamltext"
)

// standIns maps the commands of vmctl-lima, and QEMU, to what is done in their place.
var standIns = map[string]func(args []string) (any, error){
	"check": standInCheck, "make": standInMake, "start": standInStart, "hostagent": standInAgent, "qemu": standInQEMU,
	"delete": func([]string) (any, error) { return nil, nil }, "disk": standInDisk,
	"held": func([]string) (any, error) { return io.Copy(io.Discard, os.Stdin) }, // a process that does nothing, until its input ends
}

func main() {
	if world := os.Getenv(worldKey); world != "" {
		os.Exit(wsltest.World{Dir: world}.Run(os.Args[1:], os.Stdout, func() error { return nil }))
	}
	if len(os.Args) < 2 || standIns[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "no such command:", os.Args)
		os.Exit(2)
	}
	answer, err := standIns[os.Args[1]](os.Args[2:])
	if err != nil {
		answer = map[string]string{"error": err.Error()}
		fmt.Fprintln(os.Stderr, err)
	}
	if err := errors.Join(err, json.NewEncoder(os.Stdout).Encode(answer)); err != nil {
		os.Exit(1)
	}
}

// inHome returns a path in the home as Lima does: without links in the path of the home.
func inHome(parts ...string) string {
	home, err := filepath.EvalSymlinks(os.Getenv("LIMA_HOME"))
	if err != nil {
		panic(err)
	}
	return filepath.Join(append([]string{home}, parts...)...)
}

func standInCheck([]string) (any, error) {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return nil, err
	}
	doc, err := yamltext.Parse(string(text))
	if doc["mountType"] == "refused" {
		err = errors.New("field `mountType` is refused")
	}
	return map[string]any{"warnings": []string{}}, err
}

func standInMake(args []string) (any, error) {
	doc, err := definitionIn(inHome(args[0]))
	if err != nil {
		return nil, err
	}
	size := uint64(1 << 20)
	if text, ok := doc["disk"].(string); ok {
		size = sizeOf(text)
	}
	if params, _ := doc["param"].(map[string]any); params["held"] != nil { // its image never comes
		select {}
	}
	disk := inHome(args[0], "disk")
	if isInWSL(doc) { // WSL makes it
		return nil, image(inHome(args[0]), doc)
	}
	if _, err := os.Stat(disk); err == nil {
		return nil, nil
	}
	if err := image(inHome(args[0]), doc); err != nil {
		return nil, err
	}
	return nil, errors.Join(os.WriteFile(disk, nil, 0o600), os.Truncate(disk, int64(size)))
}

// image reads the image, checks its digest, and notes it.
func image(dir string, doc map[string]any) error {
	list, _ := doc["images"].([]any)
	if len(list) == 0 {
		return errors.New("no images")
	}
	entry, _ := list[0].(map[string]any)
	text, err := os.ReadFile(fmt.Sprint(entry["location"]))
	if err != nil {
		return err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(text))
	if want, ok := entry["digest"].(string); ok && want != "sha256:"+sum {
		return fmt.Errorf("expected digest %s, got sha256:%s", want, sum)
	}
	return os.WriteFile(filepath.Join(dir, "image.sha256"), []byte(sum), 0o600)
}

func definitionIn(dir string) (map[string]any, error) {
	text, err := os.ReadFile(filepath.Join(dir, "lima.yaml"))
	if err != nil {
		return nil, err
	}
	return yamltext.Parse(string(text))
}

func standInStart(args []string) (any, error) {
	dir := inHome(args[0])
	if race := inHome("race"); os.Remove(race) == nil { // somebody else was quicker
		if _, err := standInStart(args); err != nil {
			return nil, err
		}
		for {
			if text, err := os.ReadFile(filepath.Join(dir, "ha.stdout.log")); err != nil || strings.Contains(string(text), `"running":true`) {
				return nil, errors.Join(errors.New("a hostagent runs"), err)
			}
			time.Sleep(time.Millisecond)
		}
	}
	requested := make(chan os.Signal, 1) // it says what it has started, whoever asks it to end
	signal.Notify(requested, syscall.SIGTERM, syscall.SIGINT)
	doc, err := definitionIn(dir)
	if err != nil {
		return nil, err
	}
	if text, ok := doc["disk"].(string); ok && !isInWSL(doc) { // Lima grows it
		if size := sizeOf(text); size > 0 {
			if err := os.Truncate(filepath.Join(dir, "disk"), int64(size)); err != nil {
				return nil, err
			}
		}
	}
	out, err := os.Create(filepath.Join(dir, "ha.stdout.log"))
	if err != nil {
		return nil, err
	}
	said, err := os.Create(filepath.Join(dir, "ha.stderr.log"))
	if err != nil {
		return nil, err
	}
	pidFile := filepath.Join(dir, "ha.pid")
	agent := exec.Command(os.Args[0], "hostagent", "--pidfile", pidFile, "--socket", filepath.Join(dir, "ha.sock"), args[0])
	agent.SysProcAttr, agent.Stdout, agent.Stderr = &syscall.SysProcAttr{Setsid: true}, out, said
	if err := agent.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- agent.Wait() }()
	for {
		if _, err := os.Stat(pidFile); err == nil {
			if params, _ := doc["param"].(map[string]any); params["stuck"] != nil {
				<-requested
			}
			return map[string]any{"pid": agent.Process.Pid}, nil
		}
		select {
		case err := <-ended:
			return nil, fmt.Errorf("the host agent ended: %w", err)
		case <-time.After(time.Millisecond):
		}
	}
}

// standInAgent starts QEMU, reports it running, and ends with it. A request makes it ask QEMU to power
// down.
func standInAgent(args []string) (any, error) {
	requested := make(chan os.Signal, 1)
	signal.Notify(requested, syscall.SIGTERM, syscall.SIGINT)
	dir := inHome(args[len(args)-1])
	if err := os.WriteFile(args[1], []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, err
	}
	doc, err := definitionIn(dir)
	if err != nil {
		return nil, err
	}
	params, _ := doc["param"].(map[string]any)
	if params["dies"] != nil {
		return nil, errors.New("no such accelerator")
	}
	if params["kvm"] == "refuses" && onKVM() {
		return nil, failed("Could not access KVM kernel module: Permission denied")
	}
	if params["kvm"] == "aborts" && onKVM() { // as QEMU 7.2 does where KVM lacks a register
		return nil, failed("qemu-system-x86_64: error: failed to set MSR 0x10a to 0x69",
			"qemu-system-x86_64: ../../target/i386/kvm/kvm.c:3183: kvm_buf_set_msrs: Assertion `ret == cpu->kvm_msr_buf->nmsrs' failed.")
	}
	if params["kvm"] != nil && !onKVM() && doc["vmOpts"] == nil {
		return nil, failed("CPU model 'host' requires KVM or HVF")
	}
	if params["qemu"] == "fails" {
		fmt.Fprintln(os.Stderr, encoded(map[string]string{"level": "info", "msg": "Starting QEMU (hint: to watch the boot progress, see `" + dir + "/serial*.log`)"}))
		return nil, failed("qemu-system-x86_64: "+filepath.Join(dir, "disk")+": is in use", "warning: host doesn't support requested feature: MSR(48FH).vmx-exit-load-perf-global-ctrl [bit 12]", "Could not set up host forwarding rule")
	}
	if params["stuck"] != nil { // QEMU never starts
		<-requested
		return nil, errors.New("ended before QEMU ran")
	}
	if isInWSL(doc) {
		return nil, runInWSL(args[len(args)-1], args[1], doc, requested)
	}
	qemuArgs := []string{"qemu", "-pidfile", filepath.Join(dir, "qemu.pid"), "-smp", fmt.Sprint(doc["cpus"]) + ",sockets=1"}
	memory := sizeOf(fmt.Sprint(doc["memory"]))
	qemuArgs = append(qemuArgs, "-m", strconv.FormatUint(memory>>20, 10))
	disks := disksOf(doc)
	for _, disk := range disks {
		qemuArgs = append(qemuArgs, "-drive", "file="+inHome("_disks", disk, "datadisk")+",if=virtio")
		if err := lock(disk, dir); err != nil {
			return nil, err
		}
	}
	free := func() {
		for _, disk := range disks {
			drop(inHome("_disks", disk, "in_use_by"))
		}
		drop(args[1])
	}
	qemu := exec.Command(filepath.Join(filepath.Dir(os.Args[0]), "qemu-stand-in"), qemuArgs...)
	qemu.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as Lima's driver does
	port, err := qemu.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := qemu.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(port).ReadString('\n')
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return nil, err
	}
	event := func(status map[string]any) {
		status["sshLocalPort"] = n
		fmt.Println(encoded(map[string]any{"status": status}))
	}
	event(map[string]any{})
	ended := make(chan error, 1)
	go func() { ended <- qemu.Wait() }()
	up := make(chan struct{}, 1)
	if params["slow"] != nil { // a guest that is still booting does not hear its power button
		go func() {
			awaitFile(filepath.Join(dir, "booted"))
			up <- struct{}{}
		}()
	} else {
		up <- struct{}{}
	}
	for booted := false; ; {
		select {
		case <-up:
			event(map[string]any{"running": true})
			booted = true
		case <-requested:
			if !booted {
				continue
			}
			fmt.Fprintln(os.Stderr, `{"level":"info","msg":"Received terminated, shutting down the host agent"}`)
			powerDown(dir)
		case err := <-ended:
			fmt.Fprintln(os.Stderr, "QEMU ended:", err)
			free()
			event(map[string]any{"exiting": true})
			return nil, nil
		}
	}
}

// failed logs what QEMU said before it ended, as Lima does, and returns the error.
func failed(said ...string) error {
	log := func(level, msg string) {
		fmt.Fprintln(os.Stderr, encoded(map[string]string{"level": level, "msg": msg}))
	}
	for _, line := range said {
		log("debug", "qemu[stderr]: "+line)
	}
	for _, line := range []string{"Driver stopped due to error", "QEMU has already exited", "shutting down the host agent"} {
		log("info", line)
	}
	return errors.New("exit status 1")
}

// onKVM reports whether QEMU is asked for the CPUs of the machine.
func onKVM() bool { return !strings.Contains(os.Getenv("QEMU_SYSTEM_X86_64"), "-accel tcg") }

// awaitFile returns once there is a file. awaitNoFile returns once there is none.
func awaitFile(path string)   { awaitPath(path, true) }
func awaitNoFile(path string) { awaitPath(path, false) }

func awaitPath(path string, there bool) {
	for {
		if _, err := os.Stat(path); (err == nil) == there {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func lock(disk, dir string) error {
	path := inHome("_disks", disk, "in_use_by")
	if now, err := os.Readlink(path); err == nil && now == dir {
		return nil
	}
	return os.Symlink(dir, path)
}

// standInDisk makes or grows a disk: raw for both formats, with the beginning of a qcow2 image where that
// was asked for.
func standInDisk(args []string) (any, error) {
	path, format := args[1], args[2]
	size, err := strconv.ParseInt(args[3], 10, 64)
	if err != nil {
		return nil, err
	}
	if err := winRace(path); err != nil {
		return nil, err
	}
	if format == "qcow2" {
		verb := []string{"create", "-q", "-f", "qcow2", path, args[3]}
		if args[0] == "grow" {
			verb = []string{"resize", "-q", path, args[3]}
		}
		out, err := exec.Command("qemu-img", verb...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("qemu-img: %w: %s", err, out)
		}
		return nil, err
	}
	if args[0] == "make" {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return nil, err
		}
	}
	return nil, os.Truncate(path, size)
}

// winRace makes the disk first, as another data directory would, if the home has a file that tells how the mark
// of that disk differs; "": it has none.
func winRace(path string) error {
	text, err := os.ReadFile(inHome("race"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	own, err := os.ReadFile(filepath.Join(filepath.Dir(path), "vmctl.json"))
	if err != nil {
		return err
	}
	first := inHome("_disks", "lab.cache")
	err = os.MkdirAll(first, 0o700)
	if old, with, marked := strings.Cut(string(text), " "); marked {
		err = errors.Join(err, os.WriteFile(filepath.Join(first, "vmctl.json"), []byte(strings.ReplaceAll(string(own), old, with)), 0o600))
	}
	return errors.Join(err, os.WriteFile(filepath.Join(first, "datadisk"), make([]byte, 4096), 0o600), os.Symlink("/nowhere", filepath.Join(first, "in_use_by")))
}

// drop removes a file that may be gone.
func drop(path string) { must(os.RemoveAll(path)) }

func closed(c io.Closer) {
	if err := c.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func encoded(document any) string {
	text, err := json.Marshal(document)
	must(err)
	return string(text)
}
