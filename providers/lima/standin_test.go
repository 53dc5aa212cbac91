//go:build unix

package lima_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"vmctl/internal/sshx"
	"vmctl/internal/yamltext"
	"vmctl/providers/lima"
)

// standIns maps the commands of vmctl-lima, and QEMU, to what this binary does in their place: the same
// files, processes, arguments, sockets and answers, without a guest. The real ones are in the tests of
// acceptance.
var standIns = map[string]func(args []string) (any, error){
	"check": standInCheck, "make": standInMake, "start": standInStart, "hostagent": standInAgent, "qemu": standInQEMU,
	"delete": func([]string) (any, error) { return nil, nil }, "disk": standInDisk,
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && standIns[os.Args[1]] != nil {
		answer, err := standIns[os.Args[1]](os.Args[2:])
		if err != nil {
			answer = map[string]string{"error": err.Error()}
			fmt.Fprintln(os.Stderr, err)
		}
		if err := errors.Join(err, json.NewEncoder(os.Stdout).Encode(answer)); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
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
	if _, refused := doc["refused"]; refused {
		err = errors.New("unknown field refused")
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
	disk := inHome(args[0], "disk")
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
	doc, err := definitionIn(dir)
	if err != nil {
		return nil, err
	}
	if text, ok := doc["disk"].(string); ok { // Lima grows it
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
	if params, _ := doc["param"].(map[string]any); params["dies"] != nil {
		return nil, errors.New("no such accelerator")
	}
	qemuArgs := []string{"qemu", "-pidfile", filepath.Join(dir, "qemu.pid"), "-smp", fmt.Sprint(doc["cpus"]) + ",sockets=1"}
	memory := sizeOf(fmt.Sprint(doc["memory"]))
	qemuArgs = append(qemuArgs, "-m", strconv.FormatUint(memory>>20, 10))
	disks := lima.NamesOf(doc)
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
	qemu := exec.Command(os.Args[0], qemuArgs...)
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
	event(map[string]any{"running": true})
	ended := make(chan error, 1)
	go func() { ended <- qemu.Wait() }()
	for {
		select {
		case <-requested:
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

func lock(disk, dir string) error {
	path := inHome("_disks", disk, "in_use_by")
	if now, err := os.Readlink(path); err == nil && now == dir {
		return nil
	}
	return os.Symlink(dir, path)
}

// standInQEMU serves a monitor and SSH, and says the port of that.
func standInQEMU(args []string) (any, error) {
	dir := filepath.Dir(args[1])
	socket := filepath.Join(dir, "qmp.sock")
	drop(socket)
	drop(filepath.Join(dir, "guest.state"))
	monitor, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	guest, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	config, err := serverConfig(dir)
	if err != nil {
		return nil, err
	}
	go serveSSH(guest, config)
	if err := os.WriteFile(args[1], []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, err
	}
	fmt.Println(guest.Addr().(*net.TCPAddr).Port)
	doc, err := definitionIn(dir)
	if err != nil {
		return nil, err
	}
	params, _ := doc["param"].(map[string]any)
	off := make(chan struct{})
	var once sync.Once
	go func() {
		for {
			conn, err := monitor.Accept()
			if err != nil {
				return
			}
			go serveMonitor(conn, args, params["deaf"] != nil, func() { once.Do(func() { close(off) }) })
		}
	}()
	<-off
	drop(args[1])
	return nil, nil
}

func serveMonitor(conn net.Conn, args []string, deaf bool, powerOff func()) {
	defer closed(conn)
	fmt.Fprintln(conn, `{"QMP":{"version":{}}}`)
	lines := json.NewDecoder(conn)
	for {
		var c struct {
			Execute   string
			Arguments struct {
				Device string
				Size   int64
			}
		}
		if lines.Decode(&c) != nil {
			return
		}
		var files []string
		for i, arg := range args {
			if arg == "-drive" {
				file, _, _ := strings.Cut(strings.TrimPrefix(args[i+1], "file="), ",")
				files = append(files, file)
			}
		}
		answer := any(map[string]any{})
		switch c.Execute {
		case "query-status":
			status := "running"
			if text, err := os.ReadFile(filepath.Join(filepath.Dir(args[1]), "guest.state")); err == nil {
				status = string(text)
			}
			answer = map[string]any{"status": status}
		case "query-block":
			var all []any
			for i, file := range files {
				all = append(all, map[string]any{"device": fmt.Sprint("virtio", i), "inserted": map[string]any{"file": file}})
			}
			answer = all
		case "block_resize":
			i := slices.IndexFunc(files, func(string) bool { return true })
			for n := range files {
				if fmt.Sprint("virtio", n) == c.Arguments.Device {
					i = n
				}
			}
			if out, err := exec.Command("qemu-img", "resize", "-q", files[i], strconv.FormatInt(c.Arguments.Size, 10)).CombinedOutput(); err != nil {
				fmt.Fprintf(conn, "{\"error\":{\"desc\":%q}}\n", out)
				continue
			}
		case "system_powerdown":
			if !deaf {
				defer powerOff()
			}
		}
		fmt.Fprintln(conn, `{"event":"SOME"}`)
		fmt.Fprintln(conn, encoded(map[string]any{"return": answer}))
		if c.Execute == "system_powerdown" {
			return
		}
	}
}

func serverConfig(dir string) (*ssh.ServerConfig, error) {
	key := filepath.Join(dir, "host_key")
	if _, err := sshx.EnsureKey(key, "guest"); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(key)
	if err != nil {
		return nil, err
	}
	doc, err := definitionIn(dir)
	if err != nil {
		return nil, err
	}
	if given := lima.HostKeyIn(doc); given != "" {
		text = []byte(given)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, err
	}
	c := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}
	c.AddHostKey(signer)
	return c, nil
}

func serveSSH(guest net.Listener, config *ssh.ServerConfig) {
	for {
		conn, err := guest.Accept()
		if err != nil {
			return
		}
		go func() {
			defer closed(conn)
			_, channels, requests, err := ssh.NewServerConn(conn, config)
			if err != nil {
				return
			}
			go ssh.DiscardRequests(requests)
			for c := range channels {
				must(c.Reject(ssh.Prohibited, "no shell here"))
			}
		}()
	}
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

func sizeOf(text string) uint64 {
	n, ok := lima.ParseSize(text)
	if !ok {
		panic("no size: " + text)
	}
	return n
}

func powerDown(dir string) {
	must(lima.PowerDown(context.Background(), filepath.Join(dir, "qmp.sock")))
}
