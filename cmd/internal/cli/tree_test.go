package cli_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/cmd/internal/cli"
	"vmctl/internal/real"
)

// simulated is a project on a simulated host whose VMs have no processes.
const simulated = withID + `
provider "sim" "here" {
  weightless = true
}

vm "dev" {
  provider = provider.sim.here
  cpus     = 1
  memory   = "256MiB"
}

disk "cache" {
  provider = provider.sim.here
  size     = "1MiB"
}

output "name" {
  value = vm.dev.name
}
`

// usage holds the arguments with which the tests call a command.
type usage struct {
	good  [][]string // arguments that are right
	bad   [][]string // wrong arguments; the tests add a flag that no command has
	reads bool       // it changes nothing, however it is called
}

func args(all ...string) [][]string {
	var lists [][]string
	for _, text := range all {
		lists = append(lists, strings.Fields(text))
	}
	return lists
}

// usages lists every command of the tree with its usage.
func usages() map[string]usage {
	return map[string]usage{
		"validate":      {good: args(""), bad: args("surplus"), reads: true},
		"plan":          {good: args("", "--detailed-exitcode", "--target=dev", "--exclude=dev", "--format=markdown", "--replace=dev"), bad: args("surplus", "--target=nothing", "--var=x", "--format=csv", "--max-bytes=7", "--destroy --replace=dev"), reads: true},
		"drift":         {good: args(""), bad: args("surplus", "--format=nothing", "--ignore-file=nothing", "--adopt=vm.dev --revert=vm.dev", "--revert=vm.dev", "--out=x", "--adopt=vm.nothing"), reads: true},
		"schema":        {good: args(""), bad: args("surplus"), reads: true},
		"explain":       {good: args("vm", "vm.stop.grace", "provider.libvirt.uri", "vm.provision.timeout"), bad: args("", "vm.nothing", "nothing", "provider.nothing"), reads: true},
		"status":        {good: args(""), bad: args("surplus"), reads: true},
		"show":          {good: args("vm.dev", "disk.cache"), bad: args("", "nothing", "nothing.vmplan"), reads: true},
		"output":        {good: args("", "name"), bad: args("nothing"), reads: true},
		"graph":         {good: args("", "--plan", "--format=svg"), bad: args("surplus", "--format=nothing"), reads: true},
		"doctor":        {good: args(""), bad: args("surplus"), reads: true},
		"version":       {good: args(""), bad: args("surplus"), reads: true},
		"completion":    {good: args("bash", "zsh", "fish", "powershell"), bad: args("", "tcsh"), reads: true},
		"help":          {good: args("", "plan", "vm start"), bad: args("nothing"), reads: true},
		"state list":    {good: args("", "vm.dev"), bad: args("not-an-address"), reads: true},
		"state show":    {good: args("vm.dev"), bad: args("", "vm.nothing"), reads: true},
		"lock list":     {good: args(""), bad: args("surplus"), reads: true},
		"cache list":    {good: args(""), bad: args("surplus"), reads: true},
		"disk list":     {good: args(""), bad: args("surplus"), reads: true},
		"vm logs":       {good: args("dev"), bad: args("", "nothing"), reads: true},
		"job list":      {good: args("", "--all"), bad: args("surplus"), reads: true},
		"job status":    {good: args(""), bad: args("j-0", "../x", "j-0 j-1"), reads: true},
		"job result":    {bad: args("", "j-0", "../x"), reads: true},
		"job logs":      {bad: args("", "j-0", "../x"), reads: true},
		"job wait":      {bad: args("", "j-0", "../x"), reads: true},
		"vm ssh-config": {good: args("dev"), bad: args("", "nothing"), reads: true},

		"leaks":             {good: args(""), bad: args("surplus"), reads: true},
		"cleanup":           {good: args("--auto-approve", "--stopped --auto-approve"), bad: args("nothing", "vm.dev", "vm.dev --stopped", "engine.none/container/x", "engine.none/pod/x", "engine.none/container/x vm.dev")},
		"container start":   {bad: args("", "nothing", "dev")},
		"container stop":    {bad: args("", "nothing", "dev")},
		"container pause":   {bad: args("", "nothing", "dev")},
		"container unpause": {bad: args("", "nothing", "dev")},
		"container restart": {bad: args("", "nothing", "dev")},
		"container exec":    {bad: args("", "dev", "nothing -- true", "dev -- true")},
		"container logs":    {bad: args("", "nothing", "dev"), reads: true},
		"engine watch":      {bad: args("nothing"), reads: true},
		"engine exec":       {bad: args("", "dev", "nothing -- true", "dev -- true")},

		"workspace status":    {good: args("auth"), bad: args("", "nothing", "dev"), reads: true},
		"workspace conflicts": {good: args("", "auth", "auth main"), bad: args("nothing", "dev"), reads: true},
		"workspace diff":      {good: args("auth"), bad: args("", "nothing", "dev"), reads: true},
		"workspace log":       {good: args("auth"), bad: args("", "nothing", "dev"), reads: true},
		"workspace fetch":     {good: args("auth"), bad: args("", "nothing", "dev")},
		"workspace save":      {good: args("auth", "auth --ignored"), bad: args("", "nothing", "dev")},
		"workspace saves":     {good: args("auth"), bad: args("", "nothing", "dev")},
		"workspace restore":   {good: args("auth"), bad: args("", "nothing", "dev")},
		"workspace push":      {good: args("auth"), bad: args("", "nothing", "dev")},
		"workspace merge":     {good: args("auth", "auth --squash"), bad: args("", "nothing", "dev", "auth --trust-spec=HEAD")},
		"workspace open":      {good: args("auth --auto-approve -- true"), bad: args("", "auth", "auth true", "auth --in=dev --on-host -- true", "auth --in=nothing -- true")},
		"workspace close":     {good: args("auth"), bad: args("", "nothing", "dev")},
		"workspace shell":     {good: args("auth"), bad: args("", "nothing", "dev")},
		"workspace exec":      {good: args("auth -- true"), bad: args("", "auth", "nothing -- true")},

		"init":          {good: args(""), bad: args("surplus")},
		"fmt":           {good: args("", "--check"), bad: args("surplus")},
		"apply":         {good: args("--auto-approve"), bad: args("", "nothing.vmplan", "--parallelism=0")},
		"destroy":       {good: args("--auto-approve"), bad: args("", "surplus")},
		"import":        {good: args("vm.dev nothing --auto-approve"), bad: args("", "vm.dev", "nothing nothing")},
		"cache prune":   {good: args("", "--older-than=720h"), bad: args("nothing", "--older-than=x")},
		"state rm":      {good: args("vm.dev"), bad: args("", "vm.nothing")},
		"state mv":      {good: args("vm.dev vm.other"), bad: args("", "vm.dev", "vm.nothing vm.other")},
		"state rebuild": {good: args("--auto-approve"), bad: args("surplus")},
		"state repair":  {good: args("--auto-approve"), bad: args("surplus")},
		"lock release":  {good: args("nothing"), bad: args("")},
		"disk unlock":   {good: args("cache --auto-approve"), bad: args("", "nothing")},
		"vm start":      {good: args("dev"), bad: args("", "nothing")},
		"vm stop":       {good: args("dev"), bad: args("", "nothing")},
		"vm restart":    {good: args("dev"), bad: args("", "nothing")},
		"vm rekey":      {good: args("dev"), bad: args("", "nothing")},
		"vm edit":       {good: args("dev"), bad: args("", "nothing")},
		"job run":       {bad: args("", "job.none", "--timeout=1s job.none", "-- true", "--in-dir=nothing -- true", "--in-dir=. --set-env=x -- true", "--in=nothing -- true", "--in=auth --in-dir=. -- true")},
		"job cancel":    {bad: args("", "j-0", "../x")},
		"job continue":  {bad: args("", "j-0", "../x")},
		"vm exec":       {good: args("dev -- true"), bad: args("", "nothing -- true")},
		"vm cp":         {good: args("main.vmctl.hcl dev:copied"), bad: args("", "a", "a b", "dev:a nothing:b", "a nothing:b")},
		"vm shell":      {good: args("dev"), bad: args("", "nothing")},
	}
}

// builtIn returns a house with vmctl's own systems.
func builtIn(t *testing.T) *house {
	t.Helper()
	h := newHouse(t, simulated)
	h.builtIn = true
	h.environ = append(h.environ, "EDITOR=true", "PATH="+os.Getenv("PATH"))
	return h
}

// worlds lists states of a project in which the tests call every command.
func worlds(t *testing.T) map[string]func() *house {
	return map[string]func() *house{
		"nothing is there": func() *house { return builtIn(t) },
		"all is there": func() *house {
			h := builtIn(t)
			h.run("apply", "--auto-approve").exits(0)
			return h
		},
		"an edit waits": func() *house {
			h := builtIn(t)
			h.run("apply", "--auto-approve").exits(0)
			h.replace("256MiB", "512MiB")
			return h
		},
		"the spec has mistakes": func() *house {
			h := builtIn(t)
			h.run("apply", "--auto-approve").exits(0)
			h.replace(`"256MiB"`, `"8G"`)
			return h
		},
		"the state is corrupt": func() *house {
			h := builtIn(t)
			h.run("apply", "--auto-approve").exits(0)
			h.corrupt(`{"e":`)
			return h
		},
	}
}

// commands returns the commands of the tree, each with its usage, except those that only vmctl
// itself calls.
func commands(t *testing.T) map[cli.Command]usage {
	t.Helper()
	all, known := map[cli.Command]usage{}, usages()
	for _, c := range cli.Commands() {
		if slices.Contains([]string{"sim-vm", "job-worker", "mount-transport", "serve-engine"}, c.Path) {
			continue
		}
		u, ok := known[c.Path]
		if !ok {
			t.Errorf("vmctl %s has no line in usages", c.Path)
			continue
		}
		all[c] = u
		delete(known, c.Path)
	}
	for path := range known {
		t.Errorf("there is no vmctl %s", path)
	}
	return all
}

// row X16
func TestEveryCommandOfTheTreeWritesJSON(t *testing.T) {
	real.Long(t)
	for name, world := range worlds(t) {
		t.Run(name, func(t *testing.T) {
			shared := world()
			for c, u := range commands(t) {
				for _, line := range slices.Concat(u.good, u.bad, [][]string{{"--nonsense"}, {"--log-level=loud"}}) {
					h := shared
					if !u.reads && slices.ContainsFunc(u.good, func(good []string) bool { return slices.Equal(good, line) }) {
						h = world() // it may change it
					}
					h.t = t
					e := h.run(slices.Concat([]string{"--json"}, strings.Fields(c.Path), line)...)
					documents, err := decode(e.stdout)
					if err != nil || len(documents) == 0 || !c.Streams && len(documents) > 1 {
						t.Errorf("vmctl %s: %d documents, %v:\n%s", e.args, len(documents), err, e.stdout)
						continue
					}
					last := documents[len(documents)-1]
					problem := last["error"] != nil
					if failed := e.code != 0 && e.code != 2; failed != problem && c.Path != "doctor" {
						t.Errorf("vmctl %s: exit code %d, and an error %t:\n%s", e.args, e.code, problem, e.stdout)
					}
					if problem && e.stderr == "" {
						t.Errorf("vmctl %s: nothing for people on standard error:\n%s", e.args, e.stdout)
					}
				}
			}
		})
	}
}

// decode reads JSON documents, and fails on anything else.
func decode(text string) ([]map[string]any, error) {
	var all []map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	for {
		var doc map[string]any
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, doc)
	}
}

// A command that only reads changes nothing, however it is called and ends. A command that
// acts changes nothing if it is called wrongly.
func TestLookingChangesNothing(t *testing.T) {
	real.Long(t)
	for name, world := range worlds(t) {
		t.Run(name, func(t *testing.T) {
			h := world()
			h.t = t
			before := h.bytes()
			look := func(c cli.Command, u usage, line []string) {
				t.Helper()
				for _, flags := range [][]string{nil, {"--json"}} {
					e := h.run(slices.Concat(flags, strings.Fields(c.Path), line)...)
					after := h.bytes()
					if _, held := before[h.lock()]; !u.reads && !held { // a command that acts may take the run lock before it looks
						for path := h.lock(); path != h.home; path = filepath.Dir(path) {
							if _, there := before[path]; !there {
								delete(after, path)
							}
						}
					}
					if diff := cmp.Diff(before, after); diff != "" {
						t.Errorf("vmctl %s (exit code %d) changed (-before +after):\n%s", e.args, e.code, diff)
						before = after
					}
				}
			}
			all := commands(t)
			order := slices.SortedFunc(maps.Keys(all), func(one, two cli.Command) int {
				if reads := all[one].reads; reads != all[two].reads { // first, as long as nothing at all is there
					return map[bool]int{true: -1, false: 1}[reads]
				}
				return strings.Compare(one.Path, two.Path)
			})
			for _, c := range order {
				u := all[c]
				lines := slices.Concat(u.bad, [][]string{{"--nonsense"}})
				if u.reads {
					lines = slices.Concat(lines, u.good)
				}
				for _, line := range lines {
					look(c, u, line)
				}
			}
		})
	}
}

// lock returns the path of the run lock.
func (h *house) lock() string { return filepath.Join(h.data(), "lock") }

// bytes returns all files of a house: those of the project, of the data directory and of the
// simulated host. A file that is written anew has another time.
func (h *house) bytes() map[string]string {
	h.t.Helper()
	all := map[string]string{}
	for _, root := range []string{h.home, h.dir} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			line := info.Mode().String()
			if info.Mode().IsRegular() {
				content, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				line = fmt.Sprintf("%s %s %x", line, info.ModTime(), sha256.Sum256(content))
			}
			all[path] = line
			return nil
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
	return all
}
