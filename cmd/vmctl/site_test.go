package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// site is a folder with a spec and a home of its own.
type site struct {
	t         *testing.T
	dir, home string
}

func newSite(t *testing.T, spec string) *site {
	t.Helper()
	home, err := os.MkdirTemp("", "h") //nolint:usetesting // the path of t.TempDir is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		endAll(t, home)
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	s := &site{t: t, dir: t.TempDir(), home: home}
	if err := os.WriteFile(filepath.Join(s.dir, "main.vmctl.hcl"), []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// vmctl returns a command that runs vmctl in that folder.
func (s *site) vmctl(args ...string) *exec.Cmd {
	s.t.Helper()
	path, err := exec.LookPath("vmctl") // testscript.Main put it there
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "VMCTL_DATA_DIR=" + s.home + "/d"}
	return cmd
}

// end ends a command that a failed test has left.
func (s *site) end(cmd *exec.Cmd) {
	if cmd.ProcessState != nil {
		return
	}
	if err := cmd.Process.Kill(); err != nil {
		s.t.Error(err)
	}
}

// exits runs vmctl to its end, demands an exit code, and returns the output.
func (s *site) exits(code int, args ...string) string {
	s.t.Helper()
	cmd := s.vmctl(args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		s.t.Fatalf("vmctl %v: %v, want exit code %d:\n%s", args, err, code, out)
	}
	return string(out)
}

// leaks fails if a text, from somewhere, has a secret of a test.
func (s *site) leaks(where, text string) {
	s.t.Helper()
	for _, secret := range []string{"CANARYACCESS", "CANARY SECRET"} {
		if strings.Contains(text, secret) {
			s.t.Errorf("%s is in %s:\n%s", secret, where, text)
		}
	}
}

// leaksNowhere checks all files of the site and of vmctl.
func (s *site) leaksNowhere() {
	s.t.Helper()
	for _, root := range []string{s.dir, s.home} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			s.leaks(path, string(text))
			return err
		})
		if err != nil {
			s.t.Error(err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(s.dir, "temp")); err != nil || len(left) > 0 {
		s.t.Errorf("left: %v, %v", left, err)
	}
}
