package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"vmctl/internal/real"
	language "vmctl/spec"
)

// canaryBlocks has a block of every kind that the sim provider knows, and a box in a VM, without the attributes that may
// be sensitive.
var canaryBlocks = map[string]string{
	"sim": `provider "sim" "here" {
  fault {
    op    = "start"
    kind  = "fail"
    times = 1
  }
  fault {
    op    = "start"
    kind  = "hang"
    times = 1
  }
`,
	"vm": `vm "dev" {
  provider = provider.sim.here
  memory   = "64MiB"
  boot { kernel = "kernel" }
`,
	"disk": "disk \"d\" {\n  provider = provider.sim.here\n  size     = \"1MiB\"\n",
	"box":  "box \"note\" {\n  in    = vm.dev\n  label = \"note\"\n",
}

// canary is a site whose spec has a secret in every attribute that may be sensitive.
type canary struct {
	*site
	secrets map[string]string // by the name of the variable
	given   map[string]bool   // all that was ever given
	paths   []string          // of the attributes of resources, with the kind
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	c := &canary{secrets: map[string]string{}, given: map[string]bool{}}
	text := spec
	for _, kind := range []string{"sim", "vm", "disk", "box"} {
		shape, paths := canaryShape(kind)
		text += canaryBlocks[kind]
		for _, path := range paths {
			variable := kind + "_" + strings.ReplaceAll(path, ".", "_")
			c.secrets[variable] = ""
			if kind != "sim" {
				c.paths = append(c.paths, kind+" "+path)
			}
		}
		text += canaryAttributes(t, shape, paths, kind)
		text += "}\n"
	}
	for _, variable := range slices.Sorted(maps.Keys(c.secrets)) {
		text += fmt.Sprintf("variable %q {\n  type      = string\n  sensitive = true\n}\noutput %q {\n  value     = var.%s\n  sensitive = true\n}\n", variable, variable, variable)
	}
	c.site = newSite(t, text)
	if err := os.WriteFile(filepath.Join(c.dir, "kernel"), []byte("kernel"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.change("one")
	return c
}

// canaryShape returns a shape with its paths that may be sensitive, without those of scripts: the script test
// provision.txtar places secrets there; and without the variables of Terraform's modules, which sim has not.
func canaryShape(kind string) (language.Block, []string) {
	if shape, ok := language.ProviderShape(kind); ok {
		return shape, language.SensitiveSettings(kind)
	}
	shape, _ := language.Shape(language.Kind(kind))
	return shape, slices.DeleteFunc(language.SensitivePaths(language.Kind(kind)), func(path string) bool {
		return strings.HasPrefix(path, "provision.") || path == "variables" || path == "variables_json"
	})
}

// canaryAttributes writes the attributes at paths of a block, each with the secret of the variable that prefix and path
// name. It fails if the type of an attribute is none that it knows.
func canaryAttributes(t *testing.T, shape language.Block, paths []string, prefix string) string {
	t.Helper()
	text := ""
	for _, a := range shape.Attrs {
		variable := prefix + "_" + a.Name
		switch name := a.Type.FriendlyName(); {
		case !slices.Contains(paths, a.Name):
		case name == "string":
			text += canaryText(a, a.Name, variable)
		case name == "map of string":
			text += fmt.Sprintf("%s = { secret = var.%s }\n", a.Name, variable)
		default:
			t.Fatalf("%s is %s: let this test place a secret in it", variable, name)
		}
	}
	for _, b := range shape.Blocks {
		var below []string
		for _, path := range paths {
			if rest, is := strings.CutPrefix(path, b.Name+"."); is {
				below = append(below, rest)
			}
		}
		if len(below) > 0 {
			text += b.Name + " {\n" + canaryAttributes(t, b, below, prefix+"_"+b.Name) + "}\n"
		}
	}
	return text
}

func canaryText(a language.Attr, path, variable string) string {
	if a.Form == language.OneLine {
		return fmt.Sprintf("%s = var.%s\n", path, variable)
	}
	return fmt.Sprintf("%s = \"#cloud-config\\n# ${var.%s}\\n\"\n", path, variable)
}

// change gives all secrets but provider settings another value.
func (c *canary) change(word string) {
	for variable := range c.secrets {
		if strings.HasPrefix(variable, "sim_") && c.secrets[variable] != "" {
			continue
		}
		c.set(variable, "canary-"+word+"-"+variable)
	}
}

func (c *canary) set(variable, value string) {
	c.secrets[variable] = value
	c.given[value] = true
}

func (c *canary) command(args ...string) *exec.Cmd {
	cmd := c.vmctl(append([]string{"--log-level=trace"}, args...)...)
	for variable, value := range c.secrets {
		cmd.Env = append(cmd.Env, "VMCTL_VAR_"+variable+"="+value)
	}
	return cmd
}

// run runs vmctl, demands an exit code, and searches for secrets in the output, in files and in processes.
func (c *canary) run(code int, args ...string) string {
	c.t.Helper()
	cmd := c.command(args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		c.t.Fatalf("vmctl %v: %v, want exit code %d:\n%s", args, err, code, out)
	}
	c.search(fmt.Sprintf("the output of vmctl %v", args), out)
	c.searchFiles(fmt.Sprintf("after vmctl %v", args))
	c.searchProcesses(fmt.Sprintf("after vmctl %v", args))
	return string(out)
}

// search fails if a text has a secret, in plain, base64 or hex, or a digest of it without a key.
func (c *canary) search(where string, text []byte) {
	c.t.Helper()
	for secret := range c.given {
		for name, form := range canaryForms(secret) {
			if at := bytes.Index(text, []byte(form)); at >= 0 {
				c.t.Errorf("%s has %q as %s: …%q…", where, secret, name, text[max(0, at-60):min(len(text), at+60)])
			}
		}
	}
}

func canaryForms(secret string) map[string]string {
	sum := sha256.Sum256([]byte(secret))
	all := map[string]string{"it is": secret, "hex": hex.EncodeToString([]byte(secret)), "its SHA-256": hex.EncodeToString(sum[:6])}
	for shift := range 3 { // it may stand anywhere in the encoded text
		encoded := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), secret...))
		all["base64 "+strconv.Itoa(shift)] = encoded[4 : len(encoded)-3]
	}
	return all
}

// isObject reports whether a file is a part of the objects of the simulated host, which have the secrets.
func (c *canary) isObject(path string) bool {
	in, err := filepath.Rel(filepath.Join(c.home, "d", "sim-here"), path)
	folder := filepath.Dir(in)
	return err == nil && (folder == "vms" || folder == "run" && strings.HasSuffix(in, ".pid") || strings.HasPrefix(in, "homes/") || in == "write.tmp")
}

// searchFiles searches every file of the data directory and of the working folder.
func (c *canary) searchFiles(when string) {
	c.t.Helper()
	for _, root := range []string{c.home, c.dir} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			if c.isObject(path) {
				if info.Mode().Perm() != 0o600 {
					c.t.Errorf("%s: %s has the mode %v", when, path, info.Mode())
				}
				return nil
			}
			text, err := os.ReadFile(path)
			c.search(when+": "+path, text)
			return err
		})
		if err != nil {
			c.t.Error(err)
		}
	}
}

// searchProcesses searches the arguments and the environment of every process that has to do with the site. The
// environment of vmctl itself has the variables.
func (c *canary) searchProcesses(when string, own ...int) {
	c.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, dir := range all {
		arguments, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !bytes.Contains(arguments, []byte(c.home)) && !slices.Contains(own, pidOf(dir)) {
			continue // it has ended, or is none of this test
		}
		c.search(when+": the arguments of a process", arguments)
		if environment, err := os.ReadFile(filepath.Join(dir, "environ")); err == nil && !slices.Contains(own, pidOf(dir)) {
			c.search(when+": the environment of a process", environment)
		}
	}
}

func pidOf(dir string) int {
	pid, err := strconv.Atoi(filepath.Base(dir))
	if err != nil {
		return 0
	}
	return pid
}

// killed kills an apply once it hangs.
func (c *canary) killed() {
	c.t.Helper()
	cmd := c.command("apply", "--auto-approve", "--verbose")
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	defer c.end(cmd)
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "starting") {
		c.search("the output of the killed apply", lines.Bytes())
	}
	for struck, end := 0, time.Now().Add(faultLimit); struck < 2; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(c.home, "d", "sim-here", "faults"))
		if err != nil {
			c.t.Fatal(err)
		}
		struck = bytes.Count(text, []byte("\n"))
		if time.Now().After(end) {
			c.t.Fatalf("waited in vain for two faults to strike: %d did", struck)
		}
	}
	c.searchProcesses("before the kill", cmd.Process.Pid)
	if err := cmd.Process.Kill(); err != nil {
		c.t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		c.t.Error("the apply ended well")
	}
	c.search("the errors of the killed apply", stderr.Bytes())
	c.searchFiles("after the kill")
}

// edits returns the edits in a plan as JSON, each as kind and path.
func edits(t *testing.T, plan string) []string {
	t.Helper()
	var doc struct {
		Changes []struct {
			Address string
			Edits   []struct{ Path, Before, After, Reason string }
		}
	}
	if err := json.Unmarshal([]byte(plan[strings.Index(plan, "\n{")+1:]), &doc); err != nil {
		t.Fatalf("%v:\n%s", err, plan)
	}
	var all []string
	for _, change := range doc.Changes {
		kind, _, _ := strings.Cut(change.Address, ".")
		for _, e := range change.Edits {
			if !strings.HasPrefix(e.Reason, "sensitive value changed") || e.Before != "(sensitive)" || e.After != "(sensitive)" {
				t.Errorf("an edit of a secret is %+v", e)
			}
			all = append(all, kind+" "+e.Path)
		}
	}
	return all
}

// The canary: a secret in every attribute that may be sensitive is in no file, output, argument list and environment
// but those of the objects that it was sent to.
//
// row J55, its general half
// row A48
func TestCanary(t *testing.T) {
	real.Long(t)
	c := newCanary(t)
	for _, args := range [][]string{{"validate"}, {"plan"}, {"plan", "--json"}, {"plan", "--verbose", "--out=p.vmplan"}, {"graph"}, {"output"}, {"output", "--json"}} {
		c.run(0, args...)
	}
	c.run(1, "apply", "--auto-approve", "p.vmplan")
	c.killed()
	for _, args := range [][]string{{"status"}, {"plan"}, {"state", "repair"}} {
		c.run(0, args...)
	}
	c.run(0, "apply", "--auto-approve", "--json")
	c.run(0, "plan", "--detailed-exitcode")
	if !c.objectsHaveSecrets() {
		t.Error("no object has the secrets: this test finds nothing")
	}

	c.change("two")
	c.run(2, "plan", "--detailed-exitcode")
	want := slices.Sorted(slices.Values(c.paths))
	if got := slices.Sorted(slices.Values(edits(t, c.run(0, "plan", "--json")))); !slices.Equal(got, want) {
		t.Errorf("all secrets changed, and the edits are %q, want %q", got, want)
	}
	c.run(0, "plan", "--out=q.vmplan")
	c.change("three")
	c.run(6, "apply", "--auto-approve", "q.vmplan")
	c.change("two")
	c.run(0, "apply", "--auto-approve", "q.vmplan")
	c.run(0, "plan", "--detailed-exitcode")

	for _, args := range [][]string{
		{"status"},
		{"status", "--json"},
		{"show", "vm.dev"},
		{"show", "--json", "vm.dev"},
		{"show", "box.note"},
		{"state", "list"},
		{"state", "show", "vm.dev"},
		{"state", "show", "--json", "vm.dev"},
		{"doctor"},
		{"lock", "list"},
		{"vm", "logs", "dev"},
		{"state", "repair"},
		{"vm", "restart", "dev"},
	} {
		c.any(args...)
	}

	token := c.secrets["sim_token"]
	c.set("sim_token", "canary-wrong-token")
	if out := c.run(6, "plan"); !strings.Contains(out, "refuses the token") || !strings.Contains(out, "(sensitive)") {
		t.Errorf("with a wrong token, the plan says:\n%s", out)
	}
	c.set("sim_token", token)

	if err := os.Rename(filepath.Join(c.home, "d", "digest.key"), filepath.Join(c.home, "lost")); err != nil {
		t.Fatal(err)
	}
	if out := c.run(0, "plan", "--detailed-exitcode"); strings.Contains(out, "is not known") { // sim shows the values
		t.Errorf("without the key, the plan says:\n%s", out)
	}
	if err := os.Rename(filepath.Join(c.home, "lost"), filepath.Join(c.home, "d", "digest.key")); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"state.json*", "journal-*"} {
		files, err := filepath.Glob(filepath.Join(c.home, "d", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.run(0, "state", "rebuild")
	c.run(0, "apply", "--auto-approve")
	c.run(0, "plan", "--detailed-exitcode")

	main := filepath.Join(c.dir, "main.vmctl.hcl")
	text, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(main, []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := c.run(6, "destroy", "--auto-approve"); !strings.Contains(out, "token is sensitive, so no record holds it") {
		t.Errorf("without the provider block, a destruction says:\n%s", out)
	}
	if err := os.WriteFile(main, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c.run(0, "destroy", "--auto-approve")
	if c.objectsHaveSecrets() {
		t.Error("a secret outlived its object")
	}
}

// any runs a command, and ignores its exit code.
func (c *canary) any(args ...string) {
	c.t.Helper()
	out, err := c.command(args...).CombinedOutput()
	if bytes.Contains(out, []byte("Usage")) || bytes.Contains(out, []byte("unknown ")) {
		c.t.Errorf("vmctl %v: %v\n%s", args, err, out)
	}
	c.search(fmt.Sprintf("the output of vmctl %v", args), out)
	c.searchFiles(fmt.Sprintf("after vmctl %v", args))
}

// objectsHaveSecrets reports whether the files of the objects have every present secret.
func (c *canary) objectsHaveSecrets() bool {
	var all []byte
	if err := filepath.WalkDir(filepath.Join(c.home, "d", "sim-here"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !c.isObject(path) || !e.Type().IsRegular() {
			return nil //nolint:nilerr // the folder is gone with its last object
		}
		text, err := os.ReadFile(path)
		all = append(all, text...)
		return err
	}); err != nil {
		c.t.Fatal(err)
	}
	for _, secret := range c.secrets {
		if !bytes.Contains(all, []byte(secret)) {
			return false
		}
	}
	return true
}
