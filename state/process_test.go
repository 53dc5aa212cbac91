//go:build unix

package state_test

import (
	"bufio"
	"context"
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

	"vmctl/spec"
	"vmctl/state"
)

// childTask says what a process of this test binary does instead of testing.
const childTask = "STATE_TEST_CHILD"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(childTask) {
	case "write":
		err = writeForever(folderAt(os.Args[1]))
	case "small-disk":
		err = fillDisk(folderAt(os.Args[1]))
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(t *testing.T, task string, f state.Folder) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, f.Dir)
	cmd.Env = append(os.Environ(), childTask+"="+task)
	cmd.Stderr = os.Stderr
	return cmd
}

// writeForever counts up in vm.dev, and says so after each acknowledged entry.
func writeForever(f state.Folder) error {
	ctx := context.Background()
	for {
		j, err := f.Open(ctx, state.Owner{Command: "vmctl apply"})
		if err != nil {
			return err
		}
		for range 3 {
			r := j.Snapshot().Records[dev]
			r.Kind, r.Starts = spec.VM, r.Starts+1
			if err := j.Append(ctx, state.Entry{Run: "r", Kind: state.Done, Op: "start", Address: dev, Put: &r}); err != nil {
				return err
			}
			fmt.Println(r.Starts)
		}
		if err := j.Close(); err != nil {
			return err
		}
	}
}

// row X12
func TestKilledWriterLosesNothingAcknowledged(t *testing.T) {
	f := folder(t)
	crashed := 0
	for range 40 {
		writer := child(t, "write", f)
		out, err := writer.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := writer.Start(); err != nil {
			t.Fatal(err)
		}
		acknowledged := 0
		for lines, left := bufio.NewScanner(out), 1+rand.IntN(8); left > 0 && lines.Scan(); left-- {
			if _, err := fmt.Sscan(lines.Text(), &acknowledged); err != nil {
				t.Fatal(err)
			}
		}
		for range rand.IntN(10) {
			read(t, f)
		}
		if err := writer.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := writer.Wait(); err == nil {
			t.Fatal("the writer was not killed")
		}
		s := read(t, f)
		if got := s.Records[dev].Starts; got < acknowledged || acknowledged == 0 {
			t.Fatalf("read start %d, acknowledged was %d", got, acknowledged)
		}
		j := open(t, f) // at once: the lock died with its holder
		opened := j.Snapshot()
		if opened.Serial != s.Serial {
			crashed++
		}
		opened.Serial = s.Serial
		if d := diff(s, opened); d != "" {
			t.Fatalf("opened something else than was read (-read +opened):\n%s", d)
		}
		closeIt(t, j)
	}
	names, err := filepath.Glob(filepath.Join(f.Dir, ".*.tmp"))
	if err != nil || len(names) > 0 {
		t.Errorf("left behind: %v %v", names, err)
	}
	t.Logf("%d of 40 killed writers left a journal", crashed)
}

// fillDisk appends until nothing more fits, and says what it was told.
func fillDisk(f state.Folder) error {
	signal.Ignore(syscall.SIGXFSZ)
	ctx := context.Background()
	j, err := f.Open(ctx, state.Owner{Command: "vmctl apply"})
	if err != nil {
		return err
	}
	limit := syscall.Rlimit{Cur: 1500, Max: 1 << 20}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	written := 0
	for ; err == nil; written++ {
		err = j.Append(ctx, state.Entry{Run: "r", Kind: state.Begin, Step: written, Op: "start", Address: dev})
	}
	fmt.Println(err)
	fmt.Println("too large:", errors.Is(err, syscall.EFBIG))
	fmt.Println("lost one:", len(j.Snapshot().Interrupted) == written-1)
	_, err = folderAt(f.Dir).Read(ctx)
	fmt.Println("readable:", err == nil)

	// Close cannot write its snapshot either; then somebody makes room.
	if os.Getenv("ROOM") == "" {
		fmt.Println(j.Close())
		return nil
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	fmt.Println(j.Append(ctx, state.Entry{Run: "r", Kind: state.Failed, Step: 0, Op: "start", Address: dev}))
	fmt.Println(j.Close())
	return nil
}

func TestFullDisk(t *testing.T) {
	for _, room := range []string{"", "made"} {
		f := folder(t)
		cmd := child(t, "small-disk", f)
		cmd.Env = append(cmd.Env, "ROOM="+room)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		journal := filepath.Join(f.Dir, "journal-0.ndjson")
		want := "record what is being done: write " + journal + ": file too large\ntoo large: true\nlost one: true\nreadable: true\n"
		if room == "" {
			want += "close the state: write " + filepath.Join(f.Dir, "state.json") + ": file too large\n"
		} else {
			want += "<nil>\n<nil>\n"
		}
		if d := cmp.Diff(want, string(out)); d != "" {
			t.Errorf("said (-want +got):\n%s", d)
		}
		s := read(t, f)
		if room == "" {
			lines := strings.Count(file(t, f, "journal-0.ndjson"), "\n")
			if s.Serial != 0 || lines < 5 || len(s.Interrupted) != lines || len(s.Notes) > 0 {
				t.Errorf("serial %d, %d interrupted of %d lines, notes %v", s.Serial, len(s.Interrupted), lines, s.Notes)
			}
		} else if s.Serial != 1 || len(s.Interrupted) < 4 || s.Interrupted[0].Step != 1 {
			t.Errorf("serial %d, interrupted %s; want step 0 ended", s.Serial, interrupted(s))
		}
		if _, held, err := f.Holder(t.Context()); held || err != nil {
			t.Errorf("lock held %t, %v; want it free", held, err)
		}
	}
}
