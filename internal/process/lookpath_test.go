//go:build unix

package process_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"vmctl/internal/process"
)

// LookPath finds the program that exec of a shell runs.
func TestLookPathFindsWhatAShellRuns(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	names := []string{"a", "b c", "*"}
	folders := []string{"x", "y", filepath.Join("x", "z")}
	for _, folder := range folders {
		must(t, os.MkdirAll(filepath.Join(root, folder), 0o700))
	}
	rapid.Check(t, func(t *rapid.T) {
		for _, folder := range folders {
			for _, name := range names {
				path := filepath.Join(root, folder, name)
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				mode := rapid.SampledFrom([]os.FileMode{0, 0o600, 0o700, os.ModeDir | 0o700}).Draw(t, path)
				switch {
				case mode == 0:
					err = nil
				case mode.IsDir():
					err = os.Mkdir(path, 0o700)
				default:
					err = os.WriteFile(path, []byte("#!/bin/sh\nprintf %s \"$0\"\n"), mode)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		dir := filepath.Join(root, rapid.SampledFrom(folders).Draw(t, "dir"))
		paths := ""
		for i, folder := range rapid.SliceOfN(rapid.SampledFrom([]string{"", ".", "..", "z", filepath.Join(root, "x"), filepath.Join(root, "y"), "/nowhere"}), 0, 4).Draw(t, "PATH") {
			if i > 0 {
				paths += ":"
			}
			paths += folder
		}
		if paths == "" { // means nothing to us, and this folder to some shells
			paths = "/nowhere"
		}
		name := rapid.SampledFrom(names).Draw(t, "name")
		if rapid.Bool().Draw(t, "with a slash") {
			name = rapid.SampledFrom([]string{"./", "../x/", root + "/y/"}).Draw(t, "before") + name
		}
		env := []string{"PATH=/wrong", "PATH=" + paths}
		found, err := process.LookPath(name, dir, env)

		cmd := exec.Command("/bin/sh", "-c", `exec "$0"`, name)
		cmd.Dir, cmd.Env = dir, env
		ran, failed := cmd.Output()
		var exit *exec.ExitError
		switch {
		case failed == nil:
			if err != nil || !sameFile(found, filepath.Join(dir, string(ran))) && !sameFile(found, string(ran)) {
				t.Fatalf("%s in %s with PATH=%s: found %s, %v; a shell runs %s", name, dir, paths, found, err, ran)
			}
		case !errors.As(failed, &exit):
			t.Fatal(failed)
		case errors.Is(err, fs.ErrNotExist) != (exit.ExitCode() == 127), err == nil:
			t.Fatalf("%s in %s with PATH=%s: found %q, %v; a shell: %v", name, dir, paths, found, err, failed)
		}
	})
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

func TestStatus(t *testing.T) {
	for script, want := range map[string]int{"true": 0, "exit 7": 7, "kill -TERM $$": 143, "kill -KILL $$": 137} {
		child := start(t, process.Command{Path: "/bin/sh", Args: []string{"-c", script}})
		if got, ok := process.Status(child.Wait(t.Context())); got != want || !ok {
			t.Errorf("%s: %d, %v, want %d", script, got, ok, want)
		}
	}
	if _, ok := process.Status(errors.New("it was not waited for")); ok {
		t.Error("an error that says nothing about the end is taken for a status")
	}
}
