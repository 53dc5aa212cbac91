package sshx_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/sshx"
)

// row L38
func TestEnsureKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new folder", "id_ed25519")
	made := ensure(t, path)
	if !strings.HasPrefix(made, "ssh-ed25519 ") || !strings.HasSuffix(made, " me") {
		t.Errorf("public half %q", made)
	}
	private := read(t, path)
	if !strings.HasPrefix(private, "-----BEGIN OPENSSH PRIVATE KEY-----\n") {
		t.Errorf("private half %q", private)
	}
	for name, want := range map[string]os.FileMode{path: 0o600, path + ".pub": 0o644, filepath.Dir(path): os.ModeDir | 0o700} {
		info, err := os.Stat(name)
		if err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, want %v (%v)", name, info.Mode(), want, err)
		}
	}
	if diff := cmp.Diff(made+"\n", read(t, path+".pub")); diff != "" {
		t.Errorf(".pub (-want +got):\n%s", diff)
	}

	if again := ensure(t, path); again != made || read(t, path) != private {
		t.Error("a valid pair was not kept")
	}
	write(t, path+".pub", line(t)+" somebody else's\n")
	if again := ensure(t, path); again != made || read(t, path+".pub") != made+"\n" {
		t.Errorf("a foreign public half was kept: %q", again)
	}
	remove(t, path+".pub")
	if again := ensure(t, path); again != made || read(t, path) != private {
		t.Errorf("the public half was not derived: %q", again)
	}
	write(t, filepath.Join(filepath.Dir(path), ".id_ed25519.123.tmp"), "half")
	if again := ensure(t, path); again != made {
		t.Errorf("what a killed writer left counts: %q", again)
	}
	remove(t, path)
	if again := ensure(t, path); again == made {
		t.Error("a pair without its private half was kept")
	}
}

// No other program makes the keys.
//
// row L39
func TestEnsureKeyNeedsNoProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	path := filepath.Join(t.TempDir(), "id_ed25519")
	if made := ensure(t, path); !strings.HasPrefix(made, "ssh-ed25519 ") {
		t.Errorf("public half %q", made)
	}
}

// A guest may trust a key that is cut short: it is refused, and not replaced. What a writer that
// was killed left behind is no key.
//
// row L37
func TestEnsureKeyNeverReplacesABrokenOne(t *testing.T) {
	killed := filepath.Join(t.TempDir(), "id_ed25519")
	write(t, filepath.Join(filepath.Dir(killed), ".id_ed25519.1.tmp"), "-----BEGIN OPENSSH")
	ensure(t, killed)
	path := filepath.Join(t.TempDir(), "id_ed25519")
	ensure(t, path)
	whole := read(t, path)
	for name, content := range map[string]string{"truncated": whole[:len(whole)/2], "empty": "", "no key": "hello\n"} {
		t.Run(name, func(t *testing.T) {
			write(t, path, content)
			_, err := sshx.EnsureKey(path, "me")
			if err == nil {
				t.Fatal("no error")
			}
			if got := err.Error(); !strings.HasPrefix(got, "the private key "+path+" cannot be used: ") ||
				!strings.HasSuffix(got, "; put back an intact copy, or remove it and its .pub for a fresh pair") {
				t.Errorf("error %q", got)
			}
			if read(t, path) != content {
				t.Error("it was replaced")
			}
		})
	}
}

// As OpenSSH does, vmctl refuses a key that others may read.
func TestKeyThatOthersMayRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "id")
	ensure(t, path)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	want := "the private key " + path + " may be read by others (mode 0640): chmod 600 " + path
	if _, err := sshx.EnsureKey(path, "me"); err == nil || err.Error() != want {
		t.Errorf("making it: %v", err)
	}
	err := sshx.Probe(t.Context(), sshx.Target{Address: "127.0.0.1", Port: 1, IdentityFile: path})
	var identity *sshx.IdentityError
	if !errors.As(err, &identity) || err.Error() != want {
		t.Errorf("logging in: %v", err)
	}
}

func TestPublicKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "id")
	made := ensure(t, path)
	if got, err := sshx.PublicKey(path); got != made || err != nil {
		t.Errorf("beside the private half: %q, %v", got, err)
	}
	remove(t, path+".pub")
	if got, err := sshx.PublicKey(path); got != strings.TrimSuffix(made, " me") || err != nil {
		t.Errorf("derived: %q, %v", got, err)
	}
	write(t, path+".pub", "nonsense\n")
	if _, err := sshx.PublicKey(path); err == nil || !strings.HasPrefix(err.Error(), "read the public key "+path+".pub: it holds no key: ") {
		t.Errorf("nonsense: %v", err)
	}
}

// The public half of a key with a passphrase is readable without it.
func TestPublicKeyBehindAPassphrase(t *testing.T) {
	const want = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFW3DidxaOFcw/DP7UEyrUZK7EootroTQf2mI743ygzE"
	path := filepath.Join(t.TempDir(), "locked")
	write(t, path, read(t, filepath.Join("testdata", "locked")))
	if got, err := sshx.PublicKey(path); got != want || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func ensure(t *testing.T, path string) string {
	t.Helper()
	line, err := sshx.EnsureKey(path, "me")
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
