package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module writes a Go module with one test file, and makes it the current folder.
func module(t *testing.T, test string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for file, text := range map[string]string{"go.mod": "module planted\n\ngo 1.26\n", "planted_test.go": "package planted\n" + test} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// gotest runs go test on the module in the current folder.
func gotest(t *testing.T, args ...string) (code int, out, list string) {
	t.Helper()
	var said strings.Builder
	file := filepath.Join(t.TempDir(), "tests")
	code, err := run(t.Context(), append(append([]string{"-list", file}, args...), "--", "-timeout", "0", "./..."), &said)
	if err != nil {
		t.Log(err)
	}
	tests, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return code, said.String(), string(tests)
}

// demand fails the test unless out has each of the texts, in this order.
func demand(t *testing.T, out string, texts ...string) {
	t.Helper()
	rest := out
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			t.Fatalf("no %q, or too early, in:\n%s", text, out)
		}
		rest = after
	}
}

func TestPassesAreQuiet(t *testing.T) {
	module(t, `
import "testing"

func TestGood(t *testing.T) { t.Log("spoken by the good"); t.Run("inner", func(t *testing.T) {}) }
func TestLeft(t *testing.T) { t.Skip("there is no moon") }
`)
	code, out, list := gotest(t)
	if code != 0 || strings.Contains(out, "spoken by the good") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	demand(t, out, "ok   planted", "TestGood/inner", "== skipped: planted TestLeft: planted_test.go:6: there is no moon")
	if want := "ok   planted TestGood\nok   planted TestGood/inner\nskip planted TestLeft\n"; list != want {
		t.Errorf("list = %q, want %q", list, want)
	}
}

func TestTheLastLinesSayWhatFailed(t *testing.T) {
	module(t, `
import "testing"

func TestBad(t *testing.T) { t.Run("in/side", func(t *testing.T) { t.Error("want 1, got 2") }) }
func TestGood(*testing.T)  {}
`)
	code, out, list := gotest(t)
	if code != 1 {
		t.Errorf("exit %d, want 1", code)
	}
	demand(t, out, "FAIL planted", "== 2 tests", "== FAIL: planted TestBad/in/side\n", "want 1, got 2")
	if strings.Contains(out, "== FAIL: planted TestGood") || !strings.Contains(list, "FAIL planted TestBad/in/side\n") {
		t.Errorf("list:\n%s\noutput:\n%s", list, out)
	}
}

func TestWhatHangsIsNamedAndEnded(t *testing.T) {
	module(t, `
import (
	"testing"
	"time"
)

func TestTurn(t *testing.T)  { t.Parallel() }
func TestStuck(t *testing.T) { t.Run("inner", func(*testing.T) { waitForNobody() }) }
func waitForNobody()         { time.Sleep(time.Hour) }
`)
	code, out, _ := gotest(t, "-silence", "2s")
	if code != 1 {
		t.Errorf("exit %d, want 1", code)
	}
	demand(t, out, "== no test said anything for", "running: planted TestStuck/inner (", "planted.test", "planted.waitForNobody", "TestStuck/inner")
}

func TestAPanicIsAFailure(t *testing.T) {
	module(t, `
import "testing"

func TestPanics(*testing.T) { panic("no way") }
`)
	code, out, _ := gotest(t)
	if code == 0 {
		t.Error("exit 0")
	}
	demand(t, out, "== FAIL: planted TestPanics\n")
}

func TestWhatDoesNotCompileIsAFailure(t *testing.T) {
	module(t, "func broken() { return 1 }\n")
	code, out, _ := gotest(t)
	if code == 0 {
		t.Error("exit 0")
	}
	demand(t, out, "too many return values", "== FAIL: planted")
}
