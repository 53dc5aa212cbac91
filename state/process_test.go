//go:build unix

package state_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
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
	case "bump":
		err = bump(folderAt(os.Args[1]), os.Args[2])
	case "begin":
		err = beginAndWait(folderAt(os.Args[1]))
	case "small-disk":
		err = fillDisk(folderAt(os.Args[1]), os.Args[2])
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(t *testing.T, task string, f dataDir) *exec.Cmd {
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
func writeForever(f dataDir) error {
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
	if d := cmp.Diff([]string{"journal.ndjson.backup", "lock", "state.json", "state.json.backup"}, names(t, f)); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
	t.Logf("%d of 40 killed writers left a journal", crashed)
}

// A reader that has read the old snapshot finds the folder of the new one: its
// journal is gone, or there is one that it cannot know.
func TestReadAcrossAClose(t *testing.T) {
	old, _ := whole(t)
	now := altered(t, old, `"serial":1`, `"serial":2`)
	f := folder(t)
	place(t, f, "state.json", old)
	begun := state.Entry{Serial: 2, Seq: 1, Run: "r3", Kind: state.Begin, Op: "start", Address: dev}
	f.list = sync.OnceFunc(func() {
		place(t, f, "new", now)
		if err := os.Rename(filepath.Join(f.Dir, "new"), filepath.Join(f.Dir, "state.json")); err != nil {
			t.Error(err)
		}
		place(t, f, "journal-2.ndjson", lineOf(t, begun))
	})
	s := read(t, f)
	got := fmt.Sprintf("serial %d, interrupted %s", s.Serial, interrupted(s))
	if want := "serial 2, interrupted r3/0 start vm.dev"; got != want {
		t.Errorf("read %s, want %s", got, want)
	}
}

// lineOf is an entry as a line of a journal.
func lineOf(t *testing.T, e state.Entry) string {
	t.Helper()
	body, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
	return fmt.Sprintf(`{"e":%s,"sum":"%08x"}`+"\n", body, sum)
}

// fillDisk appends until nothing more fits, and says what it was told.
func fillDisk(f dataDir, scenario string) error {
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
	entry := state.Entry{Run: "r", Kind: state.Begin, Op: "start", Address: dev}
	if scenario == "at first" {
		entry.Evidence = []string{strings.Repeat("long ", 1000)}
	}
	for ; err == nil; entry.Step++ {
		err = j.Append(ctx, entry)
	}
	fmt.Println(err)
	fmt.Println("too large:", errors.Is(err, syscall.EFBIG))
	fmt.Println("lost one:", len(j.Snapshot().Interrupted) == entry.Step-1)
	_, err = f.Read(ctx)
	fmt.Println("readable:", err == nil)
	if scenario == "later" { // there is less room even for the snapshot
		limit.Cur = 300
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
	}
	if scenario == "until there is room" {
		limit.Cur = limit.Max
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		fmt.Println(j.Append(ctx, state.Entry{Run: "r", Kind: state.Failed, Step: 0, Op: "start", Address: dev}))
	}
	fmt.Println(j.Close())
	return nil
}

func TestFullDisk(t *testing.T) {
	for _, test := range []struct {
		name, ends string
		files      []string
		check      func(*testing.T, dataDir, *state.Snapshot)
	}{
		{
			name: "at first", ends: "<nil>\n", files: []string{"lock", "state.json"},
			check: func(t *testing.T, _ dataDir, s *state.Snapshot) {
				if s.Serial != 0 || len(s.Interrupted) > 0 {
					t.Errorf("serial %d, interrupted %s; want nothing", s.Serial, interrupted(s))
				}
			},
		},
		{
			name: "later", ends: "close the state: write DIR/state.json: file too large\n", files: []string{"journal-0.ndjson", "lock", "state.json", "state.json.backup"},
			check: func(t *testing.T, f dataDir, s *state.Snapshot) {
				lines := strings.Count(file(t, f, "journal-0.ndjson"), "\n")
				if s.Serial != 0 || lines < 5 || len(s.Interrupted) != lines || len(s.Notes) > 0 {
					t.Errorf("serial %d, %d interrupted of %d lines, notes %v", s.Serial, len(s.Interrupted), lines, s.Notes)
				}
			},
		},
		{
			name: "until there is room", ends: "<nil>\n<nil>\n", files: []string{"journal.ndjson.backup", "lock", "state.json", "state.json.backup"},
			check: func(t *testing.T, _ dataDir, s *state.Snapshot) {
				if s.Serial != 1 || len(s.Interrupted) < 4 || s.Interrupted[0].Step != 1 {
					t.Errorf("serial %d, interrupted %s; want step 0 ended", s.Serial, interrupted(s))
				}
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := folder(t)
			cmd := child(t, "small-disk", f)
			cmd.Args = append(cmd.Args, test.name)
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			want := "write the journal: write DIR/journal-0.ndjson: file too large\ntoo large: true\nlost one: true\nreadable: true\n" + test.ends
			if d := cmp.Diff(strings.ReplaceAll(want, "DIR", f.Dir), string(out)); d != "" {
				t.Errorf("said (-want +got):\n%s", d)
			}
			if d := cmp.Diff(test.files, names(t, f)); d != "" {
				t.Errorf("files (-want +got):\n%s", d)
			}
			test.check(t, f, read(t, f))
			if holder, err := f.Holder(t.Context()); holder != nil || err != nil {
				t.Errorf("lock held by %v, %v; want it free", holder, err)
			}
		})
	}
}
