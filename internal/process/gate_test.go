//go:build unix

package process_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vmctl/internal/process"
)

// A program whose starter is killed before it began never begins. A dropped one neither.
func TestNothingBeginsWithoutItsStarter(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(*exec.Cmd, func() error) error
	}{
		{"it is killed", func(starter *exec.Cmd, _ func() error) error { return starter.Process.Kill() }},
		{"it drops the program", func(_ *exec.Cmd, letGo func() error) error { return letGo() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			made := filepath.Join(t.TempDir(), "made")
			starter := exec.Command(self(t), made)
			starter.Env = append(os.Environ(), role+"=starter")
			in, err := starter.StdinPipe()
			must(t, err)
			out, err := starter.StdoutPipe()
			must(t, err)
			must(t, starter.Start())
			var held process.Identity
			must(t, json.NewDecoder(out).Decode(&held))
			if verdict, reason := (process.Host{}).Verify(held); verdict == process.Gone || verdict == process.Reused {
				t.Errorf("it ended before its starter: %s", reason)
			}
			must(t, test.end(starter, in.Close))
			_ = starter.Wait() //nolint:errcheck // it may be killed
			must(t, process.Host{}.Wait(t.Context(), held))
			if _, err := os.Stat(made); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the program has begun: %v", err)
			}
		})
	}
}

// The shell is left out where it may lose a variable, or obey one.
func TestVariablesOfShells(t *testing.T) {
	for entry, want := range map[string]bool{
		"NAME=value": true, "_n1=a=b": true, "EMPTY=": true, "TF_TOKEN_example_com=x": true,
		"TF_TOKEN_my-host_com=x": false, "BASH_FUNC_f%%=() { :; }": false, "1=x": false, "=C:=x": false, "é=x": false,
		"SHELLOPTS=noexec": false, "BASHOPTS=x": false, "IFS=r": false, "ENV=/x": false,
	} {
		if _, got := process.ShellGate("/bin/true", nil, []string{"A=1", entry}); got != want {
			t.Errorf("%s: a shell is used: %t, want %t", entry, got, want)
		}
	}
	command, _ := process.ShellGate("/bin/true", []string{"a b", "$(c)"}, nil)
	if got := strings.Join(command[3:], "|"); got != "/bin/true|a b|$(c)" {
		t.Errorf("the arguments are %s", got)
	}
}
