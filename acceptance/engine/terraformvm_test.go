//go:build linux

package engine_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"vmctl/internal/sshx"
	"vmctl/internal/sshx/sshtest"
)

// terraformVM is a VM of a Terraform module. The server of the test is what SSH reaches in it.
const terraformVM = `
provider "terraform" "cloud" {
  dir    = "infra"
  binary = "TERRAFORM"
}

vm "dev" {
  provider = provider.terraform.cloud
  outputs  = { address = "ip", ssh_port = "port", host_key = "key" }

  ssh {
    identity = "key"
  }
}
`

// The client of this host talks to an engine in a VM that a module made elsewhere, by the outputs of that module.
//
// row E58, of an engine in a VM of Terraform
func TestExecInVMOfTerraform(t *testing.T) {
	terraform, err := exec.LookPath("terraform")
	if err != nil {
		t.Skipf("NOT TESTED with the real terraform: %v", err)
	}
	p := projectOf(t, sharedDaemon(t), strings.Replace(terraformVM, "TERRAFORM", terraform, 1)+strings.Replace(main, "host ", "vm   = vm.dev\n  host ", 1))
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	line, err := sshx.EnsureKey(filepath.Join(p.dir, "key"), "")
	if err != nil {
		t.Fatal(err)
	}
	server := sshtest.Server{HostKey: sshtest.NewKey(t), Home: t.TempDir()}
	if server.Authorized, _, _, _, err = ssh.ParseAuthorizedKey([]byte(line)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(p.dir, "infra"), 0o700); err != nil {
		t.Fatal(err)
	}
	module := `resource "terraform_data" "vm" {}
output "ip" {
  value      = "127.0.0.1"
  depends_on = [terraform_data.vm]
}
output "port" { value = %d }
output "key" { value = %q }
`
	key := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(server.HostKey.PublicKey())))
	p.write(filepath.Join("infra", "main.tf"), fmt.Appendf(nil, module, server.Start(t), key))
	p.applies()
	if out := p.run(0, "engine", "exec", "here", "--", "docker", "ps", "--format", "{{.Names}}"); strings.TrimSpace(out) != "demo.web" {
		t.Errorf("docker ps shows %q", out)
	}
	if out := p.run(3, "engine", "exec", "here", "--", "docker", "exec", "-i", "demo.web", "sh", "-c", "echo in; exit 3"); out != "in\n" {
		t.Errorf("a command in a container shows %q", out)
	}
	var doc struct{ Stdout string }
	out := p.run(0, "engine", "exec", "--json", "here", "--", "sh", "-c", "printf %s $DOCKER_HOST")
	if err := json.Unmarshal([]byte(out), &doc); err != nil || !strings.HasPrefix(doc.Stdout, "unix://") || strings.Contains(doc.Stdout, p.d.socket()) {
		t.Errorf("DOCKER_HOST is %q, want a socket of this host: %v", doc.Stdout, err)
	}
	p.run(0, "destroy", "--auto-approve")
}
