package providertest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/providers"
)

// shellWords returns generated words, of which many mean something to a shell.
func shellWords() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[ -~\n\t\r]{0,12}`), rapid.String(),
		rapid.SampledFrom([]string{
			"", "-n", "--", "-", "A=1", "=x", "%1", "!", "!!", "x;touch trap", "$(touch trap)", "`touch trap`", "a\ntouch trap\n", "\n", "\n\n", "'", "''", "\"", "\\", "\\\n", "\\0", "$", "$0", "${_vmctl_line}",
			"*", "~", "&", "|touch trap", "#", "{a,b}", "\xff\xfe", "\x81\x82", "ä", "\x01\x7f", "\r\n", "é\n\\'\"",
		}),
	).Filter(func(w string) bool { return !strings.ContainsRune(w, 0) })
}

// search checks a property of the guest.
func (s GuestScene) search(t *testing.T, check func(*rapid.T)) {
	t.Helper()
	const slow = 15
	tried := 0
	rapid.Check(t, func(rt *rapid.T) {
		if tried++; s.Slow && tried > slow {
			return
		}
		check(rt)
	})
}

// row A42
func guestArguments(t *testing.T, s GuestScene) {
	s.search(t, func(rt *rapid.T) {
		words := append([]string{"first"}, rapid.SliceOfN(shellWords(), 0, 6).Draw(rt, "words")...)
		got := s.output(t.Context(), rt, providers.Command{Args: append([]string{"printf", `%s\0`}, words...)})
		if d := cmp.Diff(words, strings.Split(strings.TrimSuffix(got, "\x00"), "\x00")); d != "" {
			rt.Fatalf("arguments (-want +got):\n%s", d)
		}
	})
	if o, err := s.Guest.Run(t.Context(), sh("test -e trap")); err != nil || o.Status != 1 {
		t.Errorf("a word ran as a command: status %d, %v", o.Status, err)
	}
	size := 30000
	if s.Slow { // a shell reads it byte by byte
		size /= 20
	}
	long := strings.Repeat("a'\n", size)
	if got := s.output(t.Context(), t, providers.Command{Args: []string{"printf", "%s", long}}); got != long {
		t.Errorf("of an argument of %d bytes came %d", len(long), len(got))
	}
}

func guestVariables(t *testing.T, s GuestScene) {
	s.search(t, func(rt *rapid.T) {
		name := rapid.StringMatching(`V_[A-Za-z0-9_]{0,5}`).Draw(rt, "name")
		value := shellWords().Draw(rt, "value")
		got := s.output(t.Context(), rt, providers.Command{
			Args: []string{"sh", "-c", `printf %s "$` + name + `|$OTHER"`}, Env: []string{name + "=not this one", "OTHER=other", name + "=" + value},
		})
		if got != value+"|other" {
			rt.Fatalf("%s is %q, want %q", name, got, value+"|other")
		}
	})
	plain := s.output(t.Context(), t, providers.Command{Args: []string{"env"}})
	added := s.output(t.Context(), t, providers.Command{Args: []string{"env"}, Env: []string{"ADDED=1"}})
	if d := cmp.Diff(append(lines(plain), "ADDED=1"), lines(added), sorted()); d != "" {
		t.Errorf("one more variable changes the environment (-want +got):\n%s", d)
	}
	// BusyBox runs its own programs whatever the PATH is.
	home := strings.TrimSpace(s.output(t.Context(), t, sh("printf '#!/bin/sh\nexit 5\n' >own && chmod 700 own && pwd")))
	for path, want := range map[string]string{home: "status 5", "/nowhere": "status 127"} {
		o, err := s.Guest.Run(t.Context(), providers.Command{Args: []string{"own"}, Env: []string{"PATH=" + path}})
		if got := ended(o, err); got != want {
			t.Errorf("with PATH=%s: %s, %v, want %s", path, got, err, want)
		}
	}
}

// lines returns the lines of an environment, but for those that a shell changes by itself.
func lines(env string) []string {
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(env), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "_=") || strings.HasPrefix(line, "SSH_CONNECTION=") || strings.HasPrefix(line, "SSH_CLIENT=")
	})
}

func sorted() cmp.Option {
	return cmp.Transformer("sorted", func(all []string) map[string]int {
		set := map[string]int{}
		for _, line := range all {
			set[line]++
		}
		return set
	})
}

func guestDirectory(t *testing.T, s GuestScene) {
	home := s.output(t.Context(), t, sh("cd && pwd -P"))
	if got := s.output(t.Context(), t, sh("pwd -P")); got != home {
		t.Errorf("without a directory, it ran in %q and not in the home %q", got, home)
	}
	for _, dir := range []string{"sub", "-P", "a b'$(id)\n", "~", "sub/.."} {
		s.output(t.Context(), t, providers.Command{Args: []string{"mkdir", "-p", "--", dir}})
		want := s.output(t.Context(), t, providers.Command{Args: []string{"sh", "-c", `cd "./$0" && pwd -P`, dir}})
		if got := s.output(t.Context(), t, providers.Command{Args: []string{"sh", "-c", "pwd -P"}, Dir: dir, Env: []string{"CDPATH=/:/tmp"}}); got != want {
			t.Errorf("in %q, it ran in %q, want %q", dir, got, want)
		}
	}
	if got := s.output(t.Context(), t, providers.Command{Args: []string{"pwd"}, Dir: "/"}); got != "/\n" {
		t.Errorf("in /, it ran in %q", got)
	}
	for _, dir := range []string{"none", "/no/where", "/etc/passwd"} {
		o, err := s.Guest.Run(t.Context(), providers.Command{Args: []string{"touch", "trap"}, Dir: dir})
		if got := ended(o, err); got != "did not begin" {
			t.Errorf("in %s, which is no directory: %s, %v", dir, got, err)
		}
		o, err = s.Guest.Run(t.Context(), providers.Command{Args: []string{"no-such-program"}, Dir: dir})
		if got := ended(o, err); got != "did not begin" {
			t.Errorf("a missing program in %s, which is no directory: %s, %v", dir, got, err)
		}
	}
}
