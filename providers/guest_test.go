package providers_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"vmctl/providers"
)

func TestCommandsThatNoGuestCanRun(t *testing.T) {
	for _, test := range []struct {
		command providers.Command
		want    string
	}{
		{providers.Command{}, "there is no program to run"},
		{providers.Command{Args: []string{"", "x"}}, "there is no program to run"},
		{providers.Command{Args: []string{"git", "a\x00b"}}, `run "git": an argument, a variable or the directory has a zero byte in it`},
		{providers.Command{Args: []string{"git"}, Dir: "\x00"}, `run "git": an argument, a variable or the directory has a zero byte in it`},
		{providers.Command{Args: []string{"git"}, Env: []string{"A=\x00"}}, `run "git": an argument, a variable or the directory has a zero byte in it`},
		{providers.Command{Args: []string{"git"}, Env: []string{"a b=secret"}}, `run "git": "a b" is not the name of a variable`},
		{providers.Command{Args: []string{"git"}, Env: []string{"A"}}, `run "git": "A" is not the name of a variable`},
		{providers.Command{Args: []string{"git"}, Env: []string{"=A"}}, `run "git": "" is not the name of a variable`},
		{providers.Command{Args: []string{"-n", "", "\n"}, Env: []string{"_a1=", "A=b=c\n"}, Dir: "-"}, ""},
	} {
		got := ""
		if err := test.command.Valid(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%q: %q, want %q", test.command.Args, got, test.want)
		}
	}
}

// Arguments may be secret, and are in no error.
func TestFateErrorNamesTheProgramAlone(t *testing.T) {
	err := &providers.FateError{Program: "git", Err: io.ErrUnexpectedEOF}
	if want := `run "git": it is unknown what it did: unexpected EOF`; err.Error() != want || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v, want %s", err, want)
	}
}

type plain struct{ providers.Provider }

type wrapper struct{ providers.Provider }

func (w wrapper) Unwrap() providers.Provider { return w.Provider }

type able struct {
	providers.Provider
	providers.ConsoleReader
	name string
}

type ableWrapper struct{ able }

func (w ableWrapper) Unwrap() providers.Provider { return w.Provider }

func TestAbility(t *testing.T) {
	inner := able{name: "inner"}
	for _, test := range []struct {
		name string
		p    providers.Provider
		want string
	}{
		{"none", nil, ""},
		{"a provider without it", plain{}, ""},
		{"its own", inner, "inner"},
		{"of the inner one", wrapper{wrapper{inner}}, "inner"},
		{"of the first wrapper that has it", wrapper{ableWrapper{able{Provider: inner, name: "outer"}}}, "outer"},
		{"not through what is no wrapper", plain{inner}, ""},
	} {
		var got strings.Builder
		if found, ok := providers.Ability[providers.ConsoleReader](test.p); ok {
			switch found := found.(type) {
			case able:
				got.WriteString(found.name)
			case ableWrapper:
				got.WriteString(found.name)
			}
		}
		if got.String() != test.want {
			t.Errorf("%s: %q, want %q", test.name, &got, test.want)
		}
	}
}
