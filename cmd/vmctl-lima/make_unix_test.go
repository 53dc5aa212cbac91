//go:build unix

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// image makes an image of 16 MiB with content, and returns the paths of the image and of its
// compressed copy.
func image(t *testing.T, format string) (path, compressed string) {
	t.Helper()
	needs(t, "ssh-keygen") // of whoever makes an instance of it
	raw := filepath.Join(t.TempDir(), "raw")
	if err := os.WriteFile(raw, bytes.Repeat([]byte("content of an image. \n"), 760_000), 0o600); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "image")
	tool(t, "qemu-img", "convert", "-O", format, raw, path)
	tool(t, "gzip", "--keep", path)
	return path, path + ".gz"
}

// checkMade looks whether the root disk has the content of the image and the wanted size, and
// whether nothing unfinished was left.
func checkMade(t *testing.T, h home, image, format string) {
	t.Helper()
	disk := filepath.Join(h.dir, "a", "disk")
	contains(t, info(t, disk), `"virtual-size": 67108864`)
	tool(t, "qemu-img", "compare", "-f", format, "-F", format, image, disk)
	const want = "_config/user _config/user.pub a/cloud-config.yaml a/disk a/lima-version a/lima.yaml"
	if got := h.files(); got != want {
		t.Errorf("files are\n%s\nwant\n%s", got, want)
	}
}

func TestMake(t *testing.T) {
	for _, format := range []string{"raw", "qcow2"} {
		t.Run(format, func(t *testing.T) {
			h := newHome(t)
			path, compressed := image(t, format)
			h.instance("a", document(compressed))
			h.run("", "make", "a")
			checkMade(t, h, path, format)

			// A disk that is there stays, whatever the image is by now.
			disk := filepath.Join(h.dir, "a", "disk")
			tool(t, "qemu-io", "-f", format, "-c", "write -P 7 0 65536", disk)
			h.instance("a", document("/nowhere.qcow2"))
			h.run("", "make", "a")
			contains(t, tool(t, "qemu-io", "-f", format, "-c", "read -P 7 0 65536", disk), "read 65536/65536")
		})
	}
}

// A make that is killed while it copies the image, before the disk is there, or while the disk
// grows, is completed by the next one: nothing half-made is taken for complete.
//
// row L18
func TestMakeIsKilled(t *testing.T) {
	for _, c := range []struct{ name, program, does string }{
		{"while the image is copied", "gzip", `"$REAL" "$@" | head -c 100000; held`},
		{"when the image is copied", "qemu-img", `if [ "$1" = info ]; then held; fi; exec "$REAL" "$@"`},
		{"before the disk grows", "qemu-img", `if [ "$1" = resize ]; then held; fi; exec "$REAL" "$@"`},
		{"when the disk has grown", "qemu-img", `"$REAL" "$@" || exit; if [ "$1" = resize ]; then held; fi`},
		{"while the key is made", "ssh-keygen", `"$REAL" "$@" || exit; held`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHome(t)
			path, compressed := image(t, "qcow2")
			dir := h.instance("a", document(compressed))
			killAt(t, h, c.program, c.does, "make", "a")
			if _, err := os.Stat(filepath.Join(dir, "disk")); err == nil {
				t.Fatal("the disk is in place before it is complete")
			}
			h.run("", "make", "a")
			checkMade(t, h, path, "qcow2")
		})
	}
}

// killAt runs the program until a program that it calls is held, and kills both with SIGKILL. The
// called program is a shell script around the real one, whose path is REAL.
func killAt(t *testing.T, h home, called, does string, args ...string) {
	t.Helper()
	bin := t.TempDir()
	here, never := filepath.Join(bin, "here"), filepath.Join(bin, "never")
	for _, fifo := range []string{here, never} {
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := "#!/bin/sh\nREAL=" + strings.TrimSpace(tool(t, "which", called)) + "\n" +
		"held() { echo >" + here + "; read -r _ <" + never + "; }\n" + does + "\n"
	if err := os.WriteFile(filepath.Join(bin, called), []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	cmd := h.command("", args...)
	cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	held := make(chan error, 1)
	go func() {
		file, err := os.Open(here)
		if err == nil {
			_, err = io.ReadAll(file)
		}
		held <- err
	}()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-held:
		if err != nil {
			t.Error(err)
		}
	case err := <-ended:
		t.Fatalf("%v ended before %s was held: %v\n%s", args, called, err, stderr.String())
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := <-ended; !errors.As(err, &exit) {
		t.Fatal(err)
	}
}

// A private key without its public one, which Lima leaves when it is killed, is no obstacle.
func TestMakeCompletesTheKey(t *testing.T) {
	h := newHome(t)
	path, _ := image(t, "qcow2")
	h.instance("a", document(path))
	h.run("", "make", "a")
	public := filepath.Join(h.dir, "_config", "user.pub")
	want, err := os.ReadFile(public)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(public); err != nil {
		t.Fatal(err)
	}
	h.run("", "make", "a")
	got, err := os.ReadFile(public)
	if err != nil {
		t.Fatal(err)
	}
	if key := string(bytes.Join(bytes.Fields(want)[:2], []byte(" "))); !strings.HasPrefix(string(got), key) {
		t.Errorf("public key %s, want %s", got, key)
	}
}

// Instances that are made beside each other get one key, each its own disk, and two makes of one instance one disk.
//
// Trap 6: a driver of Lima v2.2.0 is one value per process (registry.Register): CreateConfiguredDriver sets the instance
// of that value, so that an earlier handle of another instance works in the directory of this one. Each make is a process.
//
// row L40, of Lima's keys
func TestMakesBesideEachOther(t *testing.T) {
	h := newHome(t)
	path, _ := image(t, "qcow2")
	names := []string{"a", "a", "b", "c"}
	failed := make(chan string, len(names))
	for _, name := range names {
		h.instance(name, document(path))
	}
	for _, name := range names {
		go func() {
			out, err := h.command("", "make", name).CombinedOutput()
			if err != nil {
				failed <- string(out)
			} else {
				failed <- ""
			}
		}()
	}
	for range names {
		if text := <-failed; text != "" {
			t.Error(text)
		}
	}
	const want = "_config/user _config/user.pub a/cloud-config.yaml a/disk a/lima-version a/lima.yaml" +
		" b/cloud-config.yaml b/disk b/lima-version b/lima.yaml c/cloud-config.yaml c/disk c/lima-version c/lima.yaml"
	if got := h.files(); got != want {
		t.Errorf("files are\n%s\nwant\n%s", got, want)
	}
}
