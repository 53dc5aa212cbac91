//go:build unix

package libvirt_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"vmctl/providers/libvirt"
)

// keyFolder is an environment variable. A process of this test binary that has it makes keys
// in the folder that it names, instead of testing.
const keyFolder = "LIBVIRT_TEST_KEYS"

func TestMain(m *testing.M) {
	folder := os.Getenv(keyFolder)
	if folder == "" {
		os.Exit(m.Run())
	}
	if err := makeKeys(folder, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// makeKeys makes the keys of VMs and writes their digests. Each line of in has the ID and the
// name of a VM.
func makeKeys(folder string, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		id, name, _ := strings.Cut(lines.Text(), " ")
		digest, err := libvirt.MakeKeys(context.Background(), folder, id, name)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, digest); err != nil {
			return err
		}
	}
	return lines.Err()
}

// keyMaker is a process that makes keys.
type keyMaker struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

func newKeyMaker(t *testing.T, folder string) keyMaker {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env, cmd.Stderr = append(os.Environ(), keyFolder+"="+folder), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return keyMaker{t: t, cmd: cmd, in: in, out: bufio.NewScanner(out)}
}

func (k keyMaker) begin(id, name string) {
	k.t.Helper()
	if _, err := fmt.Fprintln(k.in, id, name); err != nil {
		k.t.Fatal(err)
	}
}

func (k keyMaker) made() string {
	k.t.Helper()
	if !k.out.Scan() {
		k.t.Fatal("it ended by itself")
	}
	return k.out.Text()
}

func (k keyMaker) kill() {
	k.t.Helper()
	if err := k.cmd.Process.Kill(); err != nil {
		k.t.Fatal(err)
	}
	_ = k.cmd.Wait() //nolint:errcheck // it was killed
}

// Two processes that make the keys of one VM at once make one pair, also if a third is killed
// meanwhile. Every second VM has keys of an older vmctl, and keeps them.
//
// row X04, of the keys of VMs
// row L40
func TestKeysAreMadeOnce(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "keys")
	one, other := newKeyMaker(t, folder), newKeyMaker(t, folder)
	for round := range 24 {
		id, name := fmt.Sprintf("id%d", round), fmt.Sprintf("lab.vm%d", round)
		older := ""
		if round%2 == 1 {
			var err error
			if older, err = libvirt.MakeKeys(t.Context(), folder, name, name); err != nil {
				t.Fatal(err)
			}
		}
		victim := newKeyMaker(t, folder)
		for _, k := range []keyMaker{victim, one, other} {
			k.begin(id, name)
		}
		victim.kill()
		a, b := one.made(), other.made()
		kept, err := libvirt.KnownKeys(folder, id, name)
		if err != nil {
			t.Fatal(err)
		}
		if a != b || a != kept || older != "" && a != older {
			t.Fatalf("round %d: one made %s, the other %s, and %s is there; an older vmctl made %q", round, a, b, kept, older)
		}
		for _, key := range []string{"id_ed25519", "ssh_host_ed25519_key"} {
			checkPair(t, filepath.Join(folder, id, key))
		}
		left, err := filepath.Glob(filepath.Join(folder, "*"+strings.TrimPrefix(id, "id"), ".*"))
		if err != nil || len(left) > 0 {
			t.Errorf("round %d: left %s, %v", round, strings.Join(left, " "), err)
		}
	}
	one.kill()
	other.kill()
}

// checkPair checks that a private key is whole, and that its public half is beside it.
func checkPair(t *testing.T, path string) {
	t.Helper()
	private, err := ssh.ParsePrivateKey([]byte(readFile(t, path)))
	if err != nil {
		t.Fatalf("%s is no private key: %v", path, err)
	}
	public := publicKey(t, []byte(readFile(t, path+".pub")))
	if !bytes.Equal(private.PublicKey().Marshal(), public.Marshal()) {
		t.Errorf("%s.pub is not the public half of %s", path, path)
	}
}
