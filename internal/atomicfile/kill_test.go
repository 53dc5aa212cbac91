//go:build unix

package atomicfile_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/atomicfile"
)

// childTask says what a process of this test binary does instead of testing.
const childTask = "ATOMICFILE_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childTask) {
	case "write":
		writeForever(os.Args[1])
	case "small-disk":
		writeTooMuch(os.Args[1])
	default:
		os.Exit(m.Run())
	}
}

func child(t *testing.T, task, path string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, path)
	cmd.Env = append(os.Environ(), childTask+"="+task)
	cmd.Stderr = os.Stderr
	return cmd
}

// content is long enough to take several pages, and says of itself whether it is
// whole.
func content(n int) []byte {
	line := fmt.Sprintf("content %d\n", n)
	return []byte(strings.Repeat(line, 4000+n%500) + "end of " + line)
}

func isWhole(data []byte) error {
	first, _, _ := bytes.Cut(data, []byte("\n"))
	var n int
	if _, err := fmt.Sscanf(string(first), "content %d", &n); err != nil {
		return fmt.Errorf("first line %q: %w", first, err)
	}
	if !bytes.Equal(data, content(n)) {
		return fmt.Errorf("content %d is not whole: %d bytes", n, len(data))
	}
	return nil
}

// writeForever says on stdout that it is about to write, over and over.
func writeForever(path string) {
	for n := 1; ; n++ {
		fmt.Println(n)
		if err := atomicfile.Write(path, content(n), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// row X12
func TestKilledWriterLeavesOldOrNew(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	if err := atomicfile.Write(path, content(0), 0o600); err != nil {
		t.Fatal(err)
	}
	left := 0
	for range 60 {
		writer := child(t, "write", path)
		out, err := writer.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := writer.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 1 + rand.IntN(5) {
			if !lines.Scan() {
				t.Fatal("the writer ended by itself")
			}
			readWhole(t, path)
		}
		// Some reads later it is somewhere within a write.
		for range rand.IntN(20) {
			readWhole(t, path)
		}
		if err := writer.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := writer.Wait(); err == nil {
			t.Fatal("the writer was not killed")
		}
		readWhole(t, path)
		left += len(names(t, dir)) - 1
		if err := atomicfile.Clean(path); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"state.json"}, names(t, dir)); d != "" {
			t.Fatalf("folder after Clean (-want +got):\n%s", d)
		}
	}
	t.Logf("%d of 60 killed writers left a temporary file", left)
}

func readWhole(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = isWhole(data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// writeTooMuch finds that no more than a page fits on the disk, and prints what
// Write said.
func writeTooMuch(path string) {
	signal.Ignore(syscall.SIGXFSZ)
	limit := syscall.Rlimit{Cur: 4096, Max: 4096}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		fmt.Println(err)
		return
	}
	err := atomicfile.Write(path, content(1), 0o600)
	fmt.Printf("%v; too large: %t", err, errors.Is(err, syscall.EFBIG))
}

func TestWriteThatDoesNotFitKeepsTheOldContent(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	put(t, path, "old")
	out, err := child(t, "small-disk", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff("write "+path+": file too large; too large: true", string(out)); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"state.json"}, names(t, dir)); d != "" {
		t.Errorf("folder (-want +got):\n%s", d)
	}
	if got := text(t, path); got != "old" {
		t.Errorf("content %q, want the old one", got)
	}
}
