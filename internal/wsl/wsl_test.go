//go:build unix

package wsl_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/internal/process"
	"vmctl/internal/wsl"
	"vmctl/internal/wsl/wsltest"
)

// soon is the limit of a call that never ends: long enough for most stand-ins to begin. Nothing depends on
// it.
const soon = 100 * time.Millisecond

// belowKey identifies the processes that a stand-in of a World starts.
func belowKey(dir string) string { return fmt.Sprint(crc32.ChecksumIEEE([]byte(dir))) }

type fataler interface {
	Helper()
	Fatal(args ...any)
}

// newWorld returns a stand-in for WSL in a folder, and a Host that runs it. Calls that are told to hang have a
// short limit.
func newWorld(t fataler, dir string) (wsltest.World, wsl.Host) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := wsltest.World{Dir: dir}
	return w, wsl.Host{
		Program: self, Env: []string{worldKey + "=" + dir, "PATH=/usr/bin:/bin"}, Registrations: w.Registrations,
		Limit: func([]string) time.Duration {
			if hangs(w.Next()) {
				return soon
			}
			return time.Minute
		},
	}
}

func hangs(kind wsltest.Kind) bool { return kind == wsltest.Hang || kind == wsltest.HangAfter }

// distribution makes a distribution with a folder of its own and a root disk.
func distribution(t fataler, w wsltest.World, name, state string) wsltest.Distribution {
	t.Helper()
	d := wsltest.Distribution{Name: name, Folder: filepath.Join(w.Dir, name), State: state}
	if err := errors.Join(os.MkdirAll(d.Folder, 0o700), os.WriteFile(filepath.Join(d.Folder, "ext4.vhdx"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	return d
}

// shown returns distributions in short.
func shown(all []wsl.Distribution) []string {
	lines := []string{}
	for _, d := range all {
		lines = append(lines, d.Name+" "+string(d.State))
	}
	return lines
}

// truth returns the distributions as they really are, in short.
func truth(w wsltest.World) []string {
	lines := []string{}
	for _, d := range w.Read() {
		state := map[string]wsl.State{"Running": wsl.Running, "Stopped": wsl.Stopped}[d.State]
		if state == "" {
			state = wsl.Busy
		}
		lines = append(lines, d.Name+" "+string(state))
	}
	return lines
}

var german = map[string]string{"Running": "Wird ausgeführt", "Stopped": "Beendet", "Installing": "Wird installiert"}

// A listing is read in each encoding, and in other languages than English.
func TestList(t *testing.T) {
	for _, e := range []wsltest.Encoding{wsltest.UTF8, wsltest.UTF16, wsltest.UTF16Order} {
		for _, words := range []map[string]string{nil, german} {
			for _, states := range [][]string{{}, {"Stopped"}, {"Running"}, {"Running", "Stopped", "Installing", "Stopped"}} {
				t.Run(fmt.Sprint(e, len(words), states), func(t *testing.T) {
					w, host := newWorld(t, t.TempDir())
					w.Speak(e, words)
					var all []wsltest.Distribution
					for i, state := range states {
						all = append(all, distribution(t, w, fmt.Sprintf("lima-vm.%d", i), state))
					}
					w.Set(all...)
					got, err := host.List(t.Context())
					if words != nil && slices.Contains(states, "Installing") {
						if err == nil || !strings.Contains(err.Error(), `does not tell whether lima-vm.2 runs: it is "Wird installiert"`) {
							t.Errorf("listed %q, %v", shown(got), err)
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(truth(w), shown(got)); diff != "" {
						t.Errorf("distributions (-want +got):\n%s", diff)
					}
				})
			}
		}
	}
}

// A listing that failed, was cut, is garbage or does not agree with the registrations says nothing.
//
// row L26, of WSL2
func TestUnknown(t *testing.T) {
	for _, test := range []struct {
		name   string
		faults []wsltest.Fault
		hidden bool // the registrations lack one
		words  map[string]string
		want   string
	}{
		{name: "hangs", faults: []wsltest.Fault{{Kind: wsltest.Hang}}, want: "wsl.exe --list --verbose: it gave no answer within 100ms"},
		{name: "fails", faults: []wsltest.Fault{{Kind: wsltest.Fail}}, want: "exit status 255; it said: Catastrophic failure Error code: Wsl/Service/E_UNEXPECTED"},
		{name: "fails after its work", faults: []wsltest.Fault{{Kind: wsltest.FailAfter}}, want: "exit status 255"},
		{name: "says nothing", faults: []wsltest.Fault{{Kind: wsltest.Lie}}, want: "it is cut: its last line has no end"},
		{name: "is cut", faults: []wsltest.Fault{{Kind: wsltest.Cut, Part: 60}}, want: "it is cut: its last line has no end"},
		{name: "is cut to its header", faults: []wsltest.Fault{{Kind: wsltest.Cut, Part: 38}}, want: "it has no distribution"},
		{name: "is garbage", faults: []wsltest.Fault{{Kind: wsltest.Garble, Part: 60}}, want: "its output: it is"},
		{name: "shows one more", hidden: true, want: "wsl.exe --list shows lima-b, which is not registered"},
		{
			name: "lies about those that run", faults: []wsltest.Fault{{Kind: wsltest.None}, {Kind: wsltest.Lie}}, words: german,
			want: "wsl.exe --list --running is not the same twice",
		},
		{
			name: "lies twice about those that run", faults: []wsltest.Fault{{Kind: wsltest.None}, {Kind: wsltest.Lie}, {Kind: wsltest.Fail}}, words: german,
			want: "Wsl/Service/E_UNEXPECTED",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, host := newWorld(t, t.TempDir())
			w.Speak(wsltest.UTF8, test.words)
			w.Set(distribution(t, w, "lima-a", "Running"), distribution(t, w, "lima-b", "Running"))
			if test.hidden {
				host.Registrations = func() ([]wsl.Registration, error) {
					all, err := w.Registrations()
					return all[:1], err
				}
			}
			w.Break(test.faults...)
			got, err := host.List(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("listed %v, %v; want %q", shown(got), err, test.want)
			}
			if late := errors.Is(err, context.DeadlineExceeded); late != (test.name == "hangs") {
				t.Errorf("it is late: %t", late)
			}
		})
	}
}

// A listing that is cut at any row is not believed, since the registrations have more.
func TestCutRow(t *testing.T) {
	w, host := newWorld(t, t.TempDir())
	w.Speak(wsltest.UTF16, nil)
	w.Set(distribution(t, w, "lima-a", "Running"), distribution(t, w, "lima-b", "Running"))
	for part := range 100 {
		w.Break(wsltest.Fault{Kind: wsltest.Cut, Part: part})
		if got, err := host.List(t.Context()); err == nil {
			t.Errorf("cut to %d %%, it lists %v", part, shown(got))
		}
	}
}

// At its limit a call ends wsl.exe together with the processes that it has started, and keeps its output.
//
// row L28, of wsl.exe
func TestDeadlineEndsTree(t *testing.T) {
	w, host := newWorld(t, t.TempDir())
	host.Limit = func([]string) time.Duration { return time.Hour }
	w.Set(distribution(t, w, "lima-a", "Running"))
	w.Break(wsltest.Fault{Kind: wsltest.HangAfter})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := host.List(ctx)
		ended <- err
	}()
	for len(processes(t, w)) < 2 { // wsl.exe and the one below
		select {
		case err := <-ended:
			t.Fatalf("it ended before its limit: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || !strings.HasSuffix(err.Error(), "it said: NAME STATE VERSION * lima-a Running 2") {
		t.Errorf("listed: %v", err)
	}
	if left := processes(t, w); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

// processes returns the wsl.exe of a World that hangs, and the process below it.
func processes(t *testing.T, w wsltest.World) []process.Identity {
	t.Helper()
	isBelow := process.HasArgument("0." + belowKey(w.Dir))
	found, err := process.Host{}.Search(t.Context(), func(argv []string) bool {
		return isBelow(argv) || len(argv) == 3 && argv[1] == "--list"
	})
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		t.Fatal(err)
	}
	var all []process.Identity
	for _, f := range found {
		if isBelow(f.Argv) || f.Parent == os.Getpid() {
			all = append(all, f.Identity)
		}
	}
	return all
}

// A distribution is terminated before it is unregistered, and nothing is reported that was not seen.
//
// row L29, of WSL2
func TestUnregister(t *testing.T) {
	const done = "terminate lima-a; unregister lima-a, which is Stopped and has its disk"
	kinds := func(kinds ...wsltest.Kind) []wsltest.Fault {
		var all []wsltest.Fault
		for _, k := range kinds {
			all = append(all, wsltest.Fault{Kind: k})
		}
		return all
	}
	for _, test := range []struct {
		name   string
		faults []wsltest.Fault // of: list, terminate, list, unregister, list
		acts   string
		want   string
	}{
		{name: "works", acts: done},
		{name: "cannot be listed", faults: kinds("fail"), want: "wsl.exe --list --verbose: exit status 255"},
		{name: "terminate hangs", faults: kinds("none", "hang"), want: "wsl.exe --terminate lima-a: it gave no answer within 100ms"},
		{name: "terminate lies", faults: kinds("none", "lie"), want: "unregister lima-a: it still runs: it is running after wsl.exe --terminate"},
		{name: "cannot be listed once it is terminated", faults: kinds("none", "none", "hang"), acts: "terminate lima-a", want: "wsl.exe --list --verbose"},
		{name: "unregister lies", faults: kinds("none", "none", "none", "lie"), acts: "terminate lima-a", want: "unregister lima-a: it is still registered"},
		{name: "unregister fails", faults: kinds("none", "none", "none", "fail"), acts: "terminate lima-a", want: "it is still registered\nwsl.exe --unregister lima-a: exit status 255"},
		{name: "unregister hangs", faults: kinds("none", "none", "none", "hang"), acts: "terminate lima-a", want: "wsl.exe --unregister lima-a: it gave no answer"},
		{name: "unregister fails after its work", faults: kinds("none", "none", "none", "fail after"), acts: done},
		{name: "it cannot be confirmed", faults: kinds("none", "none", "none", "none", "lie"), acts: done, want: "unregister lima-a: could not confirm it"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, host := newWorld(t, t.TempDir())
			w.Set(distribution(t, w, "Ubuntu", "Running"), distribution(t, w, "lima-a", "Running"))
			w.Break(test.faults...)
			r, err := w.Registrations()
			if err != nil {
				t.Fatal(err)
			}
			did, err := host.Unregister(t.Context(), r[1])
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("it did %q, %v; want %q", did, err, test.want)
			}
			if acts := strings.Join(w.Acts(), "; "); acts != test.acts {
				t.Errorf("acts: %q, want %q", acts, test.acts)
			}
		})
	}
}

// A name that has another folder by now is another distribution: it is left alone.
func TestUnregisterAnother(t *testing.T) {
	w, host := newWorld(t, t.TempDir())
	w.Set(distribution(t, w, "lima-a", "Running"))
	_, err := host.Unregister(t.Context(), wsl.Registration{Name: "LIMA-A", Folder: filepath.Join(w.Dir, "other")})
	if err == nil || !strings.Contains(err.Error(), "the distribution LIMA-A is in "+filepath.Join(w.Dir, "lima-a")+" by now, and was in") || len(w.Acts()) > 0 {
		t.Errorf("unregistered: %v, %q", err, w.Acts())
	}
	if did, err := host.Unregister(t.Context(), wsl.Registration{Name: "lima-b"}); err != nil || len(did) > 0 || len(w.Acts()) > 0 {
		t.Errorf("unregistered what is gone: %q, %v, %q", did, err, w.Acts())
	}
}

// A machine without WSL, and a wsl.exe that is missing, say so.
func TestNoWSL(t *testing.T) {
	none := func() ([]wsl.Registration, error) { return nil, nil }
	if _, err := (wsl.Host{Registrations: none}).List(t.Context()); err == nil || err.Error() != "wsl.exe --list --verbose: this machine has no WSL" {
		t.Errorf("listed: %v", err)
	}
	if _, err := (wsl.Host{Registrations: none, Program: "/nowhere/wsl.exe"}).List(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("listed: %v", err)
	}
	if _, err := (wsl.Host{}).Registered(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("registered: %v", err)
	}
}

// Whatever faults wsl.exe has and whatever others do between its calls: a listing is true or none; what runs,
// and what another folder has, is never unregistered; what is reported to be gone is gone; and once the faults
// end, one more attempt succeeds. The same laws hold where each call is a process, in fewer cases.
//
// row L26, of WSL2
// row L29, of WSL2
func TestSearch(t *testing.T) {
	t.Run("played", func(t *testing.T) {
		search(t, 40, func(w wsltest.World, host wsl.Host) wsl.Host {
			host.Played = w.Answer
			return host
		})
	})
	t.Run("as processes", func(t *testing.T) {
		search(t, 1, func(_ wsltest.World, host wsl.Host) wsl.Host { return host })
	})
}

func search(t *testing.T, steps int, called func(wsltest.World, wsl.Host) wsl.Host) {
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "") //nolint:usetesting // one for each case
		if err != nil {
			t.Fatal(err)
		}
		w, host := newWorld(t, dir)
		c := &searched{T: t, w: w, host: called(w, host), target: wsl.Registration{Name: "lima-a", Folder: filepath.Join(dir, "lima-a")}}
		w.Speak(
			rapid.SampledFrom([]wsltest.Encoding{wsltest.UTF8, wsltest.UTF16, wsltest.UTF16Order}).Draw(t, "encoding"),
			rapid.SampledFrom([]map[string]string{nil, german}).Draw(t, "words"),
		)
		for range steps {
			c.step()
		}
		w.Break()
		w.Set(distribution(t, w, "lima-a", rapid.SampledFrom([]string{"Running", "Stopped"}).Draw(t, "in the end")))
		if err := c.unregister(); err != nil {
			t.Fatalf("without faults: %v", err)
		}
	})
}

// searched is a case of the search.
type searched struct {
	*rapid.T
	w      wsltest.World
	host   wsl.Host
	target wsl.Registration
}

func (c *searched) state(label string) string {
	return rapid.SampledFrom([]string{"Running", "Stopped", "Installing"}).Draw(c.T, label)
}

// others lets others install, start, stop, move and unregister distributions.
func (c *searched) others() {
	all := []wsltest.Distribution{distribution(c, c.w, "Ubuntu", c.state("of another"))}
	switch rapid.SampledFrom([]string{"there", "elsewhere", "gone"}).Draw(c.T, "registration") {
	case "there":
		all = append(all, distribution(c, c.w, "lima-a", c.state("state")))
	case "elsewhere":
		d := distribution(c, c.w, "elsewhere", c.state("state"))
		d.Name = "Lima-A"
		all = append(all, d)
	}
	c.w.Set(all...)
}

// faults returns the faults of the next calls, at most two of which do not work: else hardly any attempt comes to
// its end.
func (c *searched) faults() []wsltest.Fault {
	all := slices.Repeat([]wsltest.Fault{{Kind: wsltest.None}}, 12)
	for range rapid.IntRange(0, 2).Draw(c.T, "faults") {
		all[rapid.IntRange(0, len(all)-1).Draw(c.T, "of call")] = wsltest.Fault{
			Kind: rapid.SampledFrom(wsltest.Kinds()).Draw(c.T, "kind"), Part: rapid.IntRange(0, 99).Draw(c.T, "part"),
		}
	}
	return all
}

// step does one thing with the distributions, and checks the laws.
func (c *searched) step() {
	c.others()
	c.w.Break(c.faults()...)
	if rapid.Bool().Draw(c.T, "list") {
		if got, err := c.host.List(c.Context()); err == nil && !slices.Equal(shown(got), truth(c.w)) {
			c.Fatalf("listed %q, and there are %q", shown(got), truth(c.w))
		}
		return
	}
	_ = c.unregister() //nolint:errcheck // it may fail
}

// unregister tries to unregister the target, and checks the laws.
func (c *searched) unregister() error {
	_, err := c.host.Unregister(c.Context(), c.target)
	for _, act := range c.w.Acts() {
		if !strings.HasPrefix(act, "unregister lima-a, which is Stopped") && act != "terminate lima-a" {
			c.Fatalf("it did: %s", act)
		}
	}
	if err == nil && slices.ContainsFunc(c.w.Read(), func(d wsltest.Distribution) bool { return d.Name == "lima-a" }) {
		c.Fatal("it was reported to be gone")
	}
	return err
}
