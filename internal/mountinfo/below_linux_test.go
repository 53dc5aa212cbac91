package mountinfo_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vmctl/internal/mountinfo"
)

// lister is the variable that makes a process of this test binary print what is mounted below a folder.
const lister = "MOUNTINFO_TEST_BELOW"

func TestMain(m *testing.M) {
	if dir := os.Getenv(lister); dir != "" {
		all, err := mountinfo.Below(dir)
		if err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n") //nolint:errcheck // it is for people
			os.Exit(1)
		}
		_, _ = os.Stdout.WriteString(strings.Join(all, "\n")) //nolint:errcheck // the test notices
		return
	}
	os.Exit(m.Run())
}

// A folder, a file and the folder itself over which something of the same device is mounted are found, by way of a symbolic link too,
// and what is mounted beside it is not.
func TestMountsBelowAFolder(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"in/a b", "in/c", "in-too", "from"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(top, name), 0o700))
	}
	err = errors.Join(err, os.WriteFile(filepath.Join(top, "in/file"), nil, 0o600), os.Symlink(".", filepath.Join(top, "here")))
	program, found := os.Executable()
	if err := errors.Join(err, found); err != nil {
		t.Fatal(err)
	}
	const twice = "mount -t tmpfs none in/c; mount -t tmpfs none in/c; mount --bind from 'in/a b'"
	for mounts, want := range map[string][]string{
		"true":                             nil,
		"mount --bind from 'in/a b'":       {"in/a b"},
		"mount --bind in-too/../from in/c": {"in/c"},
		twice:                              {"in/a b", "in/c"},
		"mount --bind /dev/null in/file":   {"in/file"},
		"mount --bind from in":             {"in"},
		"mount --bind from in-too":         nil,
		"mount --bind . . && mount -t tmpfs none from": nil,
	} {
		shell := []string{"unshare", "--mount"}
		if os.Getuid() != 0 {
			shell = append(shell, "--user", "--map-current-user", "--keep-caps")
		}
		cmd := exec.Command(shell[0], append(shell[1:], "sh", "-ec", mounts+"\nexec \"$0\"", program)...)
		cmd.Dir, cmd.Env = top, append(os.Environ(), lister+"="+filepath.Join(top, "here/in"))
		out, err := cmd.Output()
		for i, name := range want {
			want[i] = filepath.Join(top, name)
		}
		if got := strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q: %v", mounts, got, want, err)
		}
	}
	if all, err := mountinfo.Below(filepath.Join(top, "none/x")); err != nil || len(all) > 0 {
		t.Errorf("below no folder: %q, %v", all, err)
	}
}
