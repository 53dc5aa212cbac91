//go:build unix

package libvirt_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vmctl/providers/libvirt"
)

// keyFolder names, in the environment of a process of this test binary, the folder
// in which it makes keys instead of testing.
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

// makeKeys makes the keys of each VM that a line of in names, and says what they are.
func makeKeys(folder string, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		digest, err := libvirt.MakeKeys(context.Background(), folder, lines.Text())
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

func (k keyMaker) begin(vm string) {
	k.t.Helper()
	if _, err := fmt.Fprintln(k.in, vm); err != nil {
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

// Two processes that make the keys of one VM at once make one pair, also where a
// third is killed while it does.
//
// row X04, of the keys of VMs
func TestKeysAreMadeOnce(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "keys")
	one, other := newKeyMaker(t, folder), newKeyMaker(t, folder)
	for round := range 24 {
		vm := fmt.Sprintf("lab.vm%d", round)
		victim := newKeyMaker(t, folder)
		for _, k := range []keyMaker{victim, one, other} {
			k.begin(vm)
		}
		victim.kill()
		a, b := one.made(), other.made()
		kept, err := libvirt.KnownKeys(folder, vm)
		if err != nil {
			t.Fatal(err)
		}
		if a != b || a != kept {
			t.Fatalf("round %d: one made %s, the other %s, and %s is there", round, a, b, kept)
		}
		left, err := filepath.Glob(filepath.Join(folder, vm, ".*"))
		if err != nil || len(left) > 0 {
			t.Errorf("round %d: left %s, %v", round, strings.Join(left, " "), err)
		}
	}
	one.kill()
	other.kill()
}
