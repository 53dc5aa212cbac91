package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asProgram is the variable that makes the test binary the program itself.
const asProgram = "VMCTL_LIMA_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	main()
}

// home is a LIMA_HOME of a test.
type home struct {
	t   *testing.T
	dir string
	env []string // more variables of the program
}

func newHome(t *testing.T) home {
	t.Helper()
	dir, err := os.MkdirTemp("", "l") //nolint:usetesting // the path of a test's folder is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return home{t: t, dir: dir}
}

// command is the program with some arguments, not started yet.
func (h home) command(stdin string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(h.t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "LIMA_HOME="+h.dir)
	cmd.Env = append(cmd.Env, h.env...)
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}

// run runs the program and returns its result.
func (h home) run(stdin string, args ...string) map[string]any {
	h.t.Helper()
	result, err := h.try(stdin, args...)
	if err != "" {
		h.t.Fatalf("%v: %s", args, err)
	}
	return result
}

// try runs the program and returns its result or its error.
func (h home) try(stdin string, args ...string) (result map[string]any, failed string) {
	h.t.Helper()
	cmd := h.command(stdin, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		h.t.Fatalf("%v: %v\n%s", args, err, stderr.String())
	}
	if wrong := json.Unmarshal(out, &result); wrong != nil {
		h.t.Fatalf("%v printed %q: %v", args, out, wrong)
	}
	failed, _ = result["error"].(string)
	if (err != nil) != (failed != "") {
		h.t.Fatalf("%v printed %s and ended with %v", args, out, err)
	}
	return result, failed
}

// instance writes the YAML of an instance and returns its folder.
func (h home) instance(name, text string) string {
	h.t.Helper()
	dir := filepath.Join(h.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		h.t.Fatal(err)
	}
	h.write(filepath.Join(dir, "lima.yaml"), text)
	return dir
}

func (h home) write(path, text string) {
	h.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// files lists the files below LIMA_HOME.
func (h home) files() string {
	h.t.Helper()
	var all []string
	err := filepath.WalkDir(h.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			all = append(all, strings.TrimPrefix(path, h.dir+"/"))
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// document is the YAML of an instance with an image, and more lines.
func document(image string, lines ...string) string {
	return "vmType: qemu\narch: x86_64\nplain: true\nmounts: []\ndisk: 64MiB\nuser: {name: lima, uid: 1000}\n" +
		"ssh: {loadDotSSHPubKeys: false}\nimages:\n- {location: " + image + ", arch: x86_64}\n" +
		strings.Join(lines, "\n") + "\n"
}

// needs leaves a short test out where a program is missing: short tests need nothing installed.
func needs(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil && testing.Short() {
		t.Skipf("short: %v", err)
	}
}

// tool runs another program and returns what it printed.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	needs(t, name)
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func contains(t *testing.T, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("got %q, want it to contain %q", text, want)
	}
}
