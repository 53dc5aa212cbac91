//go:build linux

package engine_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"vmctl/internal/process"
)

// whole is a spec with every kind of resource: in an engine of this host, in VMs, and on this host itself.
const whole = main + `
network "back" {
  engine = engine.here
}

container "client" {
  engine  = engine.here
  image   = image.box
  command = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"]

  network {
    network = network.back
    aliases = ["client"]
  }

  port {
    container = 80
    host      = PORT
  }
}

provider "sim" "there" {}

network "agents" {
  provider = provider.sim.there
  cidr     = "192.168.123.0/24"
  shared   = true

  allocation {
    first = "192.168.123.10"
    last  = "192.168.123.254"
  }
}

disk "cache" {
  provider = provider.sim.there
  size     = "8MiB"
  format   = "qcow2"
}

vm "dev" {
  provider = provider.sim.there

  additional_disk {
    disk = disk.cache
  }

  network_interface {
    network = network.agents
  }
}

workspace "auth" {
  vm            = vm.dev
  repo          = "repo"
  branch        = "feature/auth"
  path          = "HOME/ws/auth"
  create_branch = true

  mount {
    mount_path = "~/mounts/auth"
    required   = true
  }
}

workspace "saved" {
  vm            = vm.dev
  repo          = "repo"
  branch        = "saved"
  path          = "HOME/ws/saved"
  create_branch = true

  mount {
    mount_path = "~/mounts/saved"
    required   = true
  }
}

workspace "here" {
  repo          = "repo"
  branch        = "here"
  path          = "HOME/worktrees/here"
  create_branch = true
}

job "inside" {
  workspace = workspace.auth
  command   = ["sh", "-c", "git symbolic-ref HEAD"]
  run       = "once"
}

job "here" {
  workspace = workspace.here
  command   = ["sh", "-c", "git symbolic-ref HEAD"]
  run       = "once"
}
`

// A full apply, and a destroy: nothing is left, by what leaks says and by what this host and the engine say.
//
// row A53
func TestNothingIsLeft(t *testing.T) {
	d := sharedDaemon(t)
	p := projectOf(t, d, whole)
	p.edit("PORT", strconv.Itoa(d.port(0)), "HOME", p.home)
	p.repository()
	engine, files := p.inEngine(), p.tree()

	p.run(0, "apply", "--auto-approve")
	p.run(0, "job", "wait", "job.inside", "job.here")
	p.run(0, "plan", "--detailed-exitcode")
	if out := p.run(0, "leaks"); !strings.Contains(out, "Leaks of demo: none") {
		t.Errorf("leaks of what is wanted: %s", out)
	}
	for what, all := range map[string][]string{"mounts": p.mounts(), "processes": p.processes(), "addresses": p.addresses()} {
		if len(all) == 0 {
			t.Errorf("the apply made no %s", what)
		}
	}
	if now := p.inEngine(); len(now) <= len(engine) {
		t.Errorf("the apply made nothing in the engine: %v", now)
	}

	p.run(0, "destroy", "--auto-approve")
	if out := p.run(0, "leaks"); !strings.Contains(out, "Leaks of demo: none") {
		t.Errorf("leaks: %s", out)
	}
	if out := p.run(0, "state", "list"); strings.Contains(out, ".") {
		t.Errorf("records: %s", out)
	}
	_, locks, _ := strings.Cut(p.run(0, "lock", "list"), "\n")
	for line := range strings.Lines(locks) {
		if f := strings.Fields(line); len(f) < 2 || f[1] != "free" {
			t.Errorf("a lock is left: %s", line)
		}
	}
	for what, all := range map[string][]string{"mounts": p.mounts(), "processes": p.processes(), "addresses": p.addresses()} {
		if len(all) > 0 {
			t.Errorf("%s are left: %q", what, all)
		}
	}
	if now := p.inEngine(); !slices.Equal(now, engine) {
		t.Errorf("in the engine are %q, and were %q", now, engine)
	}
	if out := p.git("for-each-ref", "refs/vmctl*"); out != "" {
		t.Errorf("references of vmctl are left: %s", out)
	}
	if out := p.git("worktree", "list"); strings.Count(out, "\n") != 1 {
		t.Errorf("worktrees are left: %s", out)
	}
	for _, file := range p.tree() {
		if !slices.Contains(files, file) && !p.isHistory(file) {
			t.Errorf("left: %s", file)
		}
	}
}

// isHistory reports whether a line of tree is about the memory of a project that stands without any object, or about a folder on the
// way to the path of a workspace.
func (p *project) isHistory(line string) bool {
	kind, path, _ := strings.Cut(line, " ")
	if kind == "folder" && slices.Contains([]string{filepath.Join(p.home, "ws"), filepath.Join(p.home, "worktrees")}, path) {
		return true
	}
	data := filepath.Join(p.home, "vmctl", "demo-k7m2qd9x4r")
	name, err := filepath.Rel(data, path)
	if err != nil || !filepath.IsLocal(name) {
		return kind == "folder" && path == filepath.Dir(data)
	}
	first, _, _ := strings.Cut(name, string(filepath.Separator))
	return slices.Contains([]string{
		".", "seat.json", "digest.key", "lock", "reserve", "last-apply.json", "state.json", "state.json.backup", "journal.ndjson.backup",
		"busy", // of locks that nobody has
		"jobs", // what jobs said
	}, first)
}

// git runs git in the repository of the workspaces.
func (p *project) git(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = filepath.Join(p.dir, "repo")
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// repository makes the repository of the workspaces.
func (p *project) repository() {
	p.t.Helper()
	if err := os.Mkdir(filepath.Join(p.dir, "repo"), 0o700); err != nil {
		p.t.Fatal(err)
	}
	p.git("init", "-q", "-b", "main")
	p.git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-q", "--allow-empty", "-m", "one")
}

// inEngine lists what is in the engine.
func (p *project) inEngine() []string {
	p.t.Helper()
	var all []string
	for _, n := range listed[struct{ Name string }](p.d, "/networks") {
		all = append(all, "network "+n.Name)
	}
	for _, i := range listed[struct{ ID string }](p.d, "/images/json?all=1") {
		all = append(all, "image "+i.ID)
	}
	for _, c := range listed[struct{ ID string }](p.d, "/containers/json?all=1") {
		all = append(all, "container "+c.ID)
	}
	for _, v := range read[struct{ Volumes []struct{ Name string } }](p.d, "/volumes").Volumes {
		all = append(all, "volume "+v.Name)
	}
	slices.Sort(all)
	return all
}

// mounts lists what is mounted in the project's folders.
func (p *project) mounts() []string {
	p.t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		p.t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool {
		return !strings.Contains(line, " "+p.home+"/") && !strings.Contains(line, " "+p.dir+"/")
	})
}

// processes lists the commands that name the project's folders.
func (p *project) processes() []string {
	p.t.Helper()
	var all []string
	_, err := process.Host{}.Find(p.t.Context(), func(argv []string) bool {
		if line := strings.Join(argv, " "); strings.Contains(line, p.home+"/") || strings.Contains(line, p.dir+"/") {
			all = append(all, line)
		}
		return false
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

// addresses lists the files of the data directory that have an address of the network.
func (p *project) addresses() []string {
	p.t.Helper()
	var all []string
	for _, file := range p.tree() {
		if name, isFile := strings.CutPrefix(file, "file "); isFile && !strings.HasPrefix(name, p.dir) && !strings.HasSuffix(name, ".backup") {
			text, err := os.ReadFile(name)
			if err != nil {
				p.t.Fatal(err)
			}
			if strings.Contains(string(text), "192.168.123.10") {
				all = append(all, name)
			}
		}
	}
	return all
}

// tree lists the files and folders of the project and of its user, but for the inside of the git directory.
func (p *project) tree() []string {
	p.t.Helper()
	var all []string
	for _, top := range []string{p.dir, p.home} {
		err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			kind := "file"
			switch {
			case path == filepath.Join(p.dir, "repo", ".git"), strings.HasPrefix(path, filepath.Join(p.home, "mounts")+"/"):
				return fs.SkipDir
			case e.Type()&fs.ModeSocket != 0:
				kind = "socket"
			case e.IsDir():
				kind = "folder"
			case e.Type() != 0:
				kind = fmt.Sprint(e.Type())
			}
			all = append(all, kind+" "+path)
			return nil
		})
		if err != nil {
			p.t.Fatal(err)
		}
	}
	return all
}
