package shellword_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/internal/shellword"
)

func TestJoin(t *testing.T) {
	for _, test := range []struct {
		words []string
		want  string
	}{
		{nil, ""},
		{[]string{"git", "fetch", "origin"}, "git fetch origin"},
		{[]string{"vmctl", "apply", "--target=vm.dev", "-C", "/a/b-c_d.e"}, "vmctl apply --target=vm.dev -C /a/b-c_d.e"},
		{[]string{"vmctl", `--target=vm.web["a"]`}, `vmctl '--target=vm.web["a"]'`},
		{[]string{"", "a b", "it's"}, `'' 'a b' 'it'\''s'`},
		{[]string{"$(id)", "x;y", "~", "*", "a\nb", "#", "{a,b}", "!!"}, "'$(id)' 'x;y' '~' '*' 'a\nb' '#' '{a,b}' '!!'"},
		{[]string{"A=1", "env", "B=2", "+=", "a+=b"}, "'A=1' env 'B=2' '+=' 'a+=b'"},
		{[]string{"=ls", "%1", "a%1"}, "'=ls' '%1' a%1"},
		{[]string{"time", "time"}, "'time' time"},
		{[]string{"-s", "-s"}, "'-s' -s"},
		{[]string{"+x", "+x"}, "'+x' +x"},
		{[]string{"ünïcode"}, "'ünïcode'"},
	} {
		if got := shellword.Join(test.words); got != test.want {
			t.Errorf("Join(%q) = %s, want %s", test.words, got, test.want)
		}
	}
}

// What a real shell reads is what was written, and it runs nothing else.
// row A42
func TestARealShellReadsTheSameWords(t *testing.T) {
	dir := t.TempDir()
	any := rapid.OneOf(
		rapid.StringMatching(`[ -~\n\t]{0,12}`), rapid.String(),
		rapid.SampledFrom([]string{"", "-n", "--", "A=1", "=x", "%1", "!", "x;touch p", "$(touch p)", "`touch p`", "a\ntouch p\n", "'", "\\", "*", "~", "&", "|touch p"}),
	).Filter(func(s string) bool { return !strings.ContainsRune(s, 0) })
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(any, 0, 6).Draw(t, "words")
		cmd := exec.Command("sh", "-c", shellword.Join(append([]string{"printf", `%s\0`, "first"}, words...)))
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Join(append([]string{"first"}, words...), "\x00") + "\x00"
		if d := cmp.Diff(want, string(out)); d != "" {
			t.Fatalf("words (-want +got):\n%s", d)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Fatalf("something ran: %v, %v", left, err)
		}
	})
}

// Whatever a program is called, that program is what runs.
func TestTheFirstWordIsAProgram(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"time", "if", "A=1", "a b", "$x", "*", "-n", "+x", "%1", "=x", "!", "{", "case"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho ran \"$1\"\n"), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", shellword.Join([]string{name, "it"}))
		cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if got := fmt.Sprintf("%s%v", out, err); got != "ran it\n<nil>" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestSplit(t *testing.T) {
	for _, test := range []struct {
		line string
		want []string
	}{
		{"", nil},
		{"  vim  ", []string{"vim"}},
		{`"/opt/my editor/ed" -w --title='a b' c\ d "e\"f\g" '\' ''`, []string{"/opt/my editor/ed", "-w", "--title=a b", "c d", `e"f\g`, `\`, ""}},
		{"a$HOME ~ *", []string{"a$HOME", "~", "*"}},
	} {
		got, err := shellword.Split(test.line)
		if d := cmp.Diff(test.want, got); d != "" || err != nil {
			t.Errorf("Split(%q) (-want +got, %v):\n%s", test.line, err, d)
		}
	}
	for _, line := range []string{`vim "`, "it's"} {
		if _, err := shellword.Split(line); err == nil || err.Error() != "a quotation in it is not closed" {
			t.Errorf("Split(%q): %v", line, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.String(), 1, 6).Draw(t, "words")
		got, err := shellword.Split(shellword.Join(words))
		if d := cmp.Diff(words, got); d != "" || err != nil {
			t.Fatalf("words (-want +got, %v):\n%s", err, d)
		}
	})
}
