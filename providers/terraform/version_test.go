package terraform_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/terraform"
	"vmctl/spec"
)

// countedProgram stands for vmctl and Terraform: it notes which command begins, and plans to make nothing.
const countedProgram = `#!/bin/sh
echo "$1" >>%s
case $1 in
version) echo '{"terraform_version":"%s","terraform_outdated":false}' ;;
show) echo '{"format_version":"1.2"}' ;;
esac
`

// counted is a provider whose processes are counted.
type counted struct {
	t        *testing.T
	provider providers.Provider
	program  string
	calls    string // the file with the commands
}

func newCounted(t *testing.T) *counted {
	t.Helper()
	dir := t.TempDir()
	c := &counted{t: t, program: filepath.Join(dir, "program"), calls: filepath.Join(dir, "calls")}
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte("resource \"terraform_data\" \"vm\" {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.become("1.11.4")
	host := terraform.Host{Program: c.program, Temp: t.TempDir(), Dir: dir, Environ: []string{"PATH=" + os.Getenv("PATH")}}
	var err error
	c.provider, err = terraform.Type(host).Open(t.Context(), providers.Settings{
		Name: "cloud", Dir: filepath.Join(dir, "d"), Files: dir, Project: providers.Project{Name: "demo", ID: "k7m2qd9x4r"},
		Attrs: cty.ObjectVal(map[string]cty.Value{"dir": cty.StringVal(dir), "binary": cty.StringVal("./program")}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// become replaces the program by one of a version.
func (c *counted) become(version string) {
	c.t.Helper()
	if err := os.WriteFile(c.program+".new", fmt.Appendf(nil, countedProgram, c.calls, version), 0o700); err != nil { //nolint:gosec // it is run
		c.t.Fatal(err)
	}
	if err := os.Rename(c.program+".new", c.program); err != nil {
		c.t.Fatal(err)
	}
}

func (c *counted) observe(version string) {
	c.t.Helper()
	inv, err := c.provider.Observe(c.t.Context(), providers.Query{})
	if err != nil || inv.Missing[spec.VM] != nil || inv.Host["Terraform"] != version {
		c.t.Errorf("%+v, %v, want Terraform %s", inv, err, version)
	}
}

func (c *counted) began(want string) {
	c.t.Helper()
	text, err := os.ReadFile(c.calls)
	if err != nil {
		c.t.Fatal(err)
	}
	if diff := cmp.Diff(want, strings.Join(strings.Fields(string(text)), " ")); diff != "" {
		c.t.Errorf("processes (-want +got):\n%s", diff)
	}
}

// A program is asked for its version once, however often vmctl observes and however many VMs it plans; a program that takes its
// place is asked again.
func TestTheVersionIsAskedOnce(t *testing.T) {
	c := newCounted(t)
	want := "version"
	for range 3 {
		c.observe("1.11.4")
	}
	for range 3 {
		_, err := c.provider.(providers.Previewer).Preview(t.Context(), providers.Change{Action: providers.Create, Want: cty.EmptyObjectVal})
		if err != nil {
			t.Fatal(err)
		}
		want += " plan show"
	}
	c.began(want)
	c.become("1.12.0-beta1")
	c.observe("1.12.0-beta1")
	c.observe("1.12.0-beta1")
	c.began(want + " version")
}
