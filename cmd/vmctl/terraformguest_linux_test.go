package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"vmctl/internal/real"
	"vmctl/internal/sshx"
	"vmctl/internal/sshx/sshtest"
)

// guestSpec is a spec whose VM comes from PROVIDER, of which alone VM speaks.
const guestSpec = `vmctl {
  project = "demo"
  id      = "k7m2qd9x4r"
}
variable "token" {
  type      = string
  sensitive = true
}
PROVIDER
vm "dev" {
VM
  provision "tools" {
    script = "echo installed by $TOKEN; echo tools >>ran"
    run    = "once"
    env    = { TOKEN = var.token }
  }
  provision "config" {
    script = "#!/bin/sh\necho configured >>ran"
    run    = "on_change"
  }
}
workspace "auth" {
  vm            = vm.dev
  repo          = "repo"
  branch        = "feature/auth"
  path          = "WORK/auth"
  create_branch = true
  env {
    set = { HELLO = "it's ~" }
  }
}
output "branch" { value = workspace.auth.branch }
`

// guestModule says where SSH answers.
const guestModule = `resource "terraform_data" "vm" {}
output "ip" {
  value      = "127.0.0.1"
  depends_on = [terraform_data.vm]
}
output "port" { value = %d }
output "key" { value = %q }
`

// What is inside of a VM of Terraform works as in a VM of another provider, by the same spec but for the provider: scripts,
// workspaces, commands, jobs, and the work that keeps them.
func TestTerraformGuest(t *testing.T) {
	real.Long(t)
	var want []string
	t.Run("sim", func(t *testing.T) {
		s := newSite(t, "")
		want = (&guestSite{site: s}).live("provider \"sim\" \"here\" {}", "  provider = provider.sim.here")
	})
	withReal(t, func(t *testing.T, program terraformProgram) {
		s := newSite(t, "")
		line, err := sshx.EnsureKey(filepath.Join(s.dir, "key"), "")
		if err != nil {
			t.Fatal(err)
		}
		server := sshtest.Server{HostKey: sshtest.NewKey(t), Home: filepath.Join(s.home, "guest")}
		if server.Authorized, _, _, _, err = ssh.ParseAuthorizedKey([]byte(line)); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{server.Home, filepath.Join(s.dir, "infra")} {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		module := fmt.Appendf(nil, guestModule, server.Start(t), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(server.HostKey.PublicKey()))))
		if err := os.WriteFile(filepath.Join(s.dir, "infra", "main.tf"), module, 0o600); err != nil {
			t.Fatal(err)
		}
		provider := fmt.Sprintf("provider \"terraform\" \"cloud\" {\n  dir    = \"infra\"\n  binary = %q\n}", program.path)
		got := (&guestSite{site: s}).live(provider, `  provider = provider.terraform.cloud
  outputs  = { address = "ip", ssh_port = "port", host_key = "key" }
  ssh { identity = "key" }`)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("what happened inside of the VM of sim and of %s (-sim +%[1]s):\n%s", program.tool, diff)
		}
	})
}

// guestSite is a site with a VM that people work in.
type guestSite struct {
	*site
	seen []string
}

// live goes through the life of a VM that people work in, and returns what was seen inside of it.
func (g *guestSite) live(provider, vm string) []string {
	g.t.Helper()
	g.git("init", "-q", "-b", "main", "repo")
	for _, args := range [][]string{{"config", "user.name", "Ann"}, {"config", "user.email", "ann@example.org"}} {
		g.git(append([]string{"-C", "repo"}, args...)...)
	}
	g.git("-C", "repo", "commit", "-q", "--allow-empty", "-m", "one")
	if err := os.Mkdir(filepath.Join(g.home, "ws"), 0o700); err != nil {
		g.t.Fatal(err)
	}
	spec := strings.NewReplacer("PROVIDER", provider, "VM\n", vm+"\n", "WORK", filepath.Join(g.home, "ws")).Replace(guestSpec)
	g.spec(spec)
	g.see(0, nil, "apply", "--auto-approve")
	g.see(0, nil, "plan", "--detailed-exitcode")
	g.see(0, g.all, "vm", "exec", "dev", "--", "cat", "ran")
	g.see(0, g.all, "vm", "logs", "dev", "--provision", "tools")
	g.see(7, g.all, "workspace", "exec", "auth", "--", "sh", "-c", `basename "$(pwd)"; git symbolic-ref HEAD; echo "$HELLO"; exit 7`)

	// An edit of a script runs that alone.
	g.spec(strings.Replace(spec, "configured", "configured anew", 1))
	g.see(0, nil, "apply", "--auto-approve")
	g.see(0, g.all, "vm", "exec", "dev", "--", "cat", "ran")

	// A job in the workspace, whose work keeps the VM until it is here.
	job := ""
	g.see(0, func(out string) string {
		if found := jobID.FindStringSubmatch(out); found != nil {
			job = found[1]
		}
		return ""
	}, "job", "run", "--in", "auth", "--json", "--", "sh", "-c", "echo two >file; git add file; git -c user.name=Bob -c user.email=bob@example.org commit -q -m two; echo done")
	g.see(0, nil, "job", "wait", job)
	g.see(0, g.all, "job", "logs", job)
	g.see(6, g.lines("commits that this host lacks", "is inside of it"), "destroy", "--auto-approve")
	g.see(0, nil, "workspace", "fetch", "auth")
	g.seen = append(g.seen, g.git("-C", "repo", "show", "feature/auth:file"))
	g.see(0, nil, "destroy", "--auto-approve")
	if left, err := os.ReadDir(filepath.Join(g.home, "ws")); err != nil || len(left) > 0 {
		g.t.Errorf("left is %v, %v", left, err)
	}
	return g.seen
}

func (g *guestSite) spec(text string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, "main.vmctl.hcl"), []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

func (g *guestSite) git(args ...string) string {
	g.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = g.dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + g.home}
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// see runs vmctl, demands an exit code, and keeps what part takes of the output; nil: nothing.
func (g *guestSite) see(code int, part func(string) string, args ...string) {
	g.t.Helper()
	cmd := g.vmctl(args...)
	cmd.Env = append(cmd.Env, "VMCTL_VAR_token=canary-token")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		g.t.Fatalf("vmctl %v: %v, want exit code %d:\n%s", args, err, code, out)
	}
	if part != nil {
		g.seen = append(g.seen, part(string(out)))
	}
}

func (g *guestSite) all(out string) string { return out }

// lines keeps which of some texts are in an output.
func (g *guestSite) lines(texts ...string) func(string) string {
	return func(out string) string {
		kept := ""
		for _, text := range texts {
			if strings.Contains(out, text) {
				kept += text + "\n"
			}
		}
		return kept
	}
}
