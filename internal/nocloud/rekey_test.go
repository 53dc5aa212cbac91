//go:build linux

package nocloud_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/nocloud"
)

// The command is run, with this user's home and /etc/ssh elsewhere: once and again,
// beside a key that was there.
func TestCommandForOtherKeys(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	a := access(me.Username)
	a.Again, a.Others, a.Former = true, []string{"ssh-ed25519 AAAAbob bob"}, []string{"ssh-ed25519 AAAAann ann", "ssh-ed25519 AAAAmine me"}
	text, _ := strings.CutPrefix(read(t, nocloud.Seed{InstanceID: "i", Hostname: "h", Access: a})["user-data"], "#cloud-config\n")
	var c struct {
		BootCmd [][]string `json:"bootcmd"`
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil || len(c.BootCmd) != 1 || len(c.BootCmd[0]) != 3 {
		t.Fatalf("%v: %s", err, text)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"etc/ssh/x": "", "home/.ssh/authorized_keys": "ssh-ed25519 AAAAold o\nssh-ed25519 AAAAann ann\n", "bin/getent": "#!/bin/sh\necho \"$2:x:0:0::" + dir + "/home:/bin/sh\"\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil { //nolint:gosec // one of them is a program
			t.Fatal(err)
		}
	}
	script := strings.ReplaceAll(c.BootCmd[0][2], "/etc/ssh/", dir+"/etc/ssh/")
	for range 2 {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Env = []string{"PATH=" + dir + "/bin:" + os.Getenv("PATH")}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for name, want := range map[string]string{
		"etc/ssh/ssh_host_ed25519_key": a.HostPrivate, "etc/ssh/ssh_host_ed25519_key.pub": a.HostPublic,
		"home/.ssh/authorized_keys": "ssh-ed25519 AAAAold o\nssh-ed25519 AAAAmine me\nssh-ed25519 AAAAbob bob\n",
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "etc/ssh/ssh_host_ed25519_key")); err != nil || info.Mode() != 0o600 {
		t.Errorf("the host key has the mode %v", info.Mode())
	}
}
