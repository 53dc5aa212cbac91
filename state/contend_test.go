//go:build unix

package state_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/spec"
	"vmctl/state"
)

// bump adds one to a record, so many times, each in a run of its own, and prints
// what it found.
func bump(f dataDir, times string) error {
	n, err := strconv.Atoi(times)
	if err != nil {
		return err
	}
	for range n {
		if err := bumpOnce(f); err != nil {
			return err
		}
	}
	return nil
}

func bumpOnce(f dataDir) (err error) {
	ctx := context.Background()
	j, err := f.Open(ctx, state.Owner{Command: "vmctl apply", Wait: time.Hour})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	r := j.Snapshot().Records[dev]
	if _, err := fmt.Println(r.Starts); err != nil {
		return err
	}
	r.Kind, r.Starts = spec.VM, r.Starts+1
	return j.Append(ctx, state.Entry{Run: "r", Kind: state.Done, Op: "start", Address: dev, Put: &r})
}

// bumping runs processes that all bump one record, and returns what they found,
// sorted.
func bumping(t *testing.T, f dataDir, processes, times int) []int {
	t.Helper()
	var found []int
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range processes {
		cmd := child(t, "bump", f)
		cmd.Args = append(cmd.Args, strconv.Itoa(times))
		wait.Go(func() {
			out, err := cmd.Output()
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for line := range strings.Lines(string(out)) {
				n, err := strconv.Atoi(strings.TrimSpace(line))
				if err != nil {
					t.Error(err)
				}
				found = append(found, n)
			}
		})
	}
	wait.Wait()
	slices.Sort(found)
	return found
}

// Two writers of one record, a hundred times each: no update is lost, and each
// began with the one before it.
//
// row E23
func TestTwoWritersOfOneRecord(t *testing.T) {
	f := folder(t)
	if d := cmp.Diff(upTo(200), bumping(t, f, 2, 100)); d != "" {
		t.Errorf("what each found (-want +got):\n%s", d)
	}
	if got := read(t, f).Records[dev].Starts; got != 200 {
		t.Errorf("%d updates are there, want 200", got)
	}
}

// Eight committers of one record: each accepted commit saw what the one before it
// left, with its serial.
//
// row X05
func TestEightCommitters(t *testing.T) {
	f := folder(t)
	if d := cmp.Diff(upTo(48), bumping(t, f, 8, 6)); d != "" {
		t.Errorf("what each found (-want +got):\n%s", d)
	}
	if s := read(t, f); s.Records[dev].Starts != 48 || s.Serial != 48 {
		t.Errorf("%d updates, serial %d; want 48 of each", s.Records[dev].Starts, s.Serial)
	}
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// beginAndWait begins a start, says so, and is killed then.
func beginAndWait(f dataDir) error {
	ctx := context.Background()
	j, err := f.Open(ctx, state.Owner{Command: "vmctl apply"})
	if err != nil {
		return err
	}
	entry := state.Entry{Run: "r1", Kind: state.Begin, Op: "start", Address: dev, ID: "an-id", Name: "example-dev", Leaves: []string{"a running guest"}}
	if err := j.Append(ctx, entry); err != nil {
		return err
	}
	if _, err := fmt.Println("begun"); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// row L45
func TestKilledWhileItStarts(t *testing.T) {
	f := folder(t)
	cmd := child(t, "begin", f)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if said, err := bufio.NewReader(out).ReadString('\n'); said != "begun\n" {
		t.Fatalf("the child said %q, %v", said, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child was not killed")
	}
	s := read(t, f)
	if len(s.Interrupted) != 1 {
		t.Fatalf("interrupted %s, want one", interrupted(s))
	}
	want := state.Entry{
		Seq: 1, Run: "r1", At: f.Now(), Kind: state.Begin, Op: "start", Address: dev, ID: "an-id", Name: "example-dev", Leaves: []string{"a running guest"},
	}
	if d := diff(want, s.Interrupted[0]); d != "" {
		t.Errorf("what was under way (-want +got):\n%s", d)
	}
}
