//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"vmctl/internal/sshx"
)

// standInQEMU serves a monitor and SSH, and says the port of that.
func standInQEMU(args []string) (any, error) {
	dir := filepath.Dir(args[1])
	socket := filepath.Join(dir, "qmp.sock")
	drop(socket)
	drop(filepath.Join(dir, "guest.state"))
	drop(filepath.Join(dir, bootDone))
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
	doc, err := definitionIn(dir)
	if err != nil {
		return nil, err
	}
	console, err := os.Create(filepath.Join(dir, "serial.log"))
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(console, "the guest boots")
	if params, _ := doc["param"].(map[string]any); params["script"] == "fails" {
		fmt.Fprint(console, "LIMA 2026-01-01T00:00:00+00:00| Executing /mnt/lima-cidata/provision.system/00000001\r\nno such package: nginx\r\n"+
			"LIMA 2026-01-01T00:00:01+00:00| WARNING: Failed to execute /mnt/lima-cidata/provision.system/00000001\r\n"+
			"LIMA 2026-01-01T00:00:01+00:00| Exiting with code 1\r\n")
	}
	if err := boot(dir, doc, console); err != nil {
		return nil, err
	}
	if params, _ := doc["param"].(map[string]any); params["kvm"] == "breaks" && onKVM() {
		if err := os.WriteFile(filepath.Join(dir, "guest.state"), []byte("internal-error"), 0o600); err != nil {
			return nil, err
		}
	}
	go serveSSH(guest, config, append(guestEnv(doc), "BOOT_DONE="+filepath.Join(dir, bootDone)))
	if err := os.WriteFile(args[1], []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, err
	}
	fmt.Println(guest.Addr().(*net.TCPAddr).Port)
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
	fmt.Fprintln(console, "the guest shuts down")
	drop(args[1])
	return nil, nil
}

// bootDone is a file of the guest by which Lima's boot script says that it has ended.
const bootDone = "boot-done"

// boot plays Lima's boot script, as far as the parameter "scripts" says: they run on, have ended, or have ended at an earlier
// boot of the same run.
func boot(dir string, doc map[string]any, console io.Writer) error {
	params, _ := doc["param"].(map[string]any)
	if params["scripts"] == nil {
		return nil
	}
	fmt.Fprint(console, "LIMA 2026-01-01T00:00:00+00:00| Executing /mnt/lima-cidata/boot.essential.Linux/00-reboot-if-required.sh\r\n")
	if params["scripts"] == "run" {
		return nil
	}
	fmt.Fprint(console, "LIMA 2026-01-01T00:00:01+00:00| Exiting with code 0\r\n")
	if params["scripts"] == "ended before" {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, bootDone), []byte("iid-1700000000\n"), 0o600)
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
			if !deaf && hears(filepath.Dir(args[1])) {
				defer func() {
					awaitNoFile(filepath.Join(filepath.Dir(args[1]), "busy"))
					powerOff()
				}()
			}
		}
		fmt.Fprintln(conn, `{"event":"SOME"}`)
		fmt.Fprintln(conn, encoded(map[string]any{"return": answer}))
		if c.Execute == "system_powerdown" {
			return
		}
	}
}

// hears reports whether the guest hears its power button: one that is still booting does not.
func hears(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, "deaf")); err == nil {
		return false
	}
	doc, err := definitionIn(dir)
	params, _ := doc["param"].(map[string]any)
	if err != nil || params["slow"] == nil {
		return err == nil
	}
	_, err = os.Stat(filepath.Join(dir, "booted"))
	return err == nil
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
	if given := hostKeyIn(doc); given != "" {
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

// guestEnv returns the environment that the definition gives its guest.
func guestEnv(doc map[string]any) []string {
	var all []string
	env, _ := doc["env"].(map[string]any)
	for name, value := range env {
		all = append(all, fmt.Sprintf("%s=%v", name, value))
	}
	return append(all, "MOUNTS="+mountsOf(doc))
}

// mountsOf returns what /proc/mounts has in the guest of a definition.
func mountsOf(doc map[string]any) string {
	if params, _ := doc["param"].(map[string]any); params["unmounted"] != nil {
		return "proc /proc proc rw 0 0\n"
	}
	all := "proc /proc proc rw 0 0\n"
	list, _ := doc["mounts"].([]any)
	for _, entry := range list {
		mount, _ := entry.(map[string]any)
		at, there := mount["mountPoint"]
		if !there {
			at = mount["location"]
		}
		all += ":" + fmt.Sprint(mount["location"]) + " " + strings.ReplaceAll(fmt.Sprint(at), " ", "\\040") + " fuse.sshfs rw 0 0\n"
	}
	return all
}

func serveSSH(guest net.Listener, config *ssh.ServerConfig, env []string) {
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
				go serveSession(c, env)
			}
		}()
	}
}

// serveSession runs one command of a session, with the guest's environment.
func serveSession(c ssh.NewChannel, env []string) {
	channel, requests, err := c.Accept()
	if err != nil {
		return
	}
	defer closed(channel)
	for r := range requests {
		must(r.Reply(r.Type == "exec", nil))
		var command struct{ Line string }
		if r.Type != "exec" || ssh.Unmarshal(r.Payload, &command) != nil {
			continue
		}
		if strings.HasSuffix(command.Line, "cat /proc/mounts") { // the guest's own, and not this machine's
			command.Line = strings.TrimSuffix(command.Line, "cat /proc/mounts") + "printf '%s' \"$MOUNTS\""
		}
		if command.Line == "cat /run/lima-boot-done" {
			command.Line = `cat "$BOOT_DONE"`
		}
		cmd := exec.Command("sh", "-c", command.Line)
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), channel, channel.Stderr()
		input, err := cmd.StdinPipe() // with Stdin, Run would wait for the end of the channel
		must(err)
		go func() {
			_, _ = io.Copy(input, channel) //nolint:errcheck // until either ends
			_ = input.Close()              //nolint:errcheck // the command may have ended
		}()
		status := uint32(0)
		if exit := (*exec.ExitError)(nil); errors.As(cmd.Run(), &exit) {
			status = uint32(exit.ExitCode())
		}
		_, err = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
		must(err)
		return
	}
}
