package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vmctl/internal/real"
)

// canaryProgram notes the arguments and the environment of each program that runs Terraform.
const canaryProgram = `#!/bin/sh
tr '\0' '\n' </proc/$$/environ >>"$STANDIN/watched"
tr '\0' '\n' </proc/$$/cmdline >>"$STANDIN/watched"
exec "$PROGRAM" "$@"
`

// canaryModule copies its secrets to where Terraform does not know them as such. Its provisioner sees everything that a child of
// Terraform can, and fails with the secret in its output as long as there is a file.
const canaryModule = `variable "text" {
  type      = string
  sensitive = true
}
variable "list" {
  type      = list(string)
  sensitive = true
}
resource "terraform_data" "vm" {
  input            = nonsensitive(var.text)
  triggers_replace = nonsensitive(var.list)
  provisioner "local-exec" {
    command = "cat /proc/$PPID/environ /proc/$PPID/cmdline /proc/$$/environ | tr '\\0' '\\n' >>../watched"
  }
  provisioner "local-exec" {
    command = "echo said ${nonsensitive(var.text)}; test -e ../fails && exit 1; true"
  }
}
output "vm_ip" {
  value      = "192.0.2.7"
  depends_on = [terraform_data.vm]
}
`

const canarySpec = `vmctl {
  project = "demo"
  id      = "k7m2qd9x4r"
}
variable "text" {
  type      = string
  sensitive = true
}
variable "item" {
  type      = string
  sensitive = true
}
provider "terraform" "cloud" {
  dir    = "infra"
  binary = "./program"
}
vm "a" {
  provider       = provider.terraform.cloud
  variables      = { text = var.text }
  variables_json = jsonencode({ list = [var.item] })
  outputs        = { address = "vm_ip" }
  ssh {
    wait = false
  }
  lifecycle { on_change = { variables = "replace", variables_json = "replace" } }
}
`

// A secret that a module takes is in its state, which only its user reads, and nowhere else: in no argument or environment of
// Terraform and its children, no output, log, record or saved plan, and in no file that is left, also if an apply failed.
//
// row A51, of Terraform
func TestTerraformCanary(t *testing.T) {
	real.Long(t)
	withTerraforms(t, func(t *testing.T, program terraformProgram) {
		c := &terraformCanary{killed: newKilled(t, program), secrets: []string{"CANARY one \"text\"", "CANARY-one-item"}}
		c.write("program", canaryProgram)
		c.write("main.vmctl.hcl", canarySpec)
		if program.isReal {
			c.write(filepath.Join("infra", "main.tf"), canaryModule)
		}
		apply := []string{"apply", "--auto-approve", "--log-level=trace"}
		c.vmctl(0, "plan", "--log-level=trace", "--out=saved.plan")
		c.vmctl(0, "plan", "--json")
		if program.isReal { // the stand-in has no provisioner
			c.write("fails", "")
			if out := c.vmctl(1, apply...); !strings.Contains(out, "said (sensitive)") && !strings.Contains(out, "local-exec provisioner error") {
				t.Errorf("it fails with\n%s", out)
			}
			if err := os.Remove(filepath.Join(c.dir, "fails")); err != nil {
				t.Fatal(err)
			}
			c.vmctl(0, "plan")
			c.untaint()
		} else {
			c.vmctl(0, "apply", "--log-level=trace", "saved.plan")
		}
		c.vmctl(0, apply...)
		c.vmctl(0, "plan", "--detailed-exitcode")

		// Another secret, which replaces the VM; the first one stays a secret.
		c.secrets = append(c.secrets, "CANARY two $${x} %{y}", "CANARY-two-item")
		c.vmctl(2, "plan", "--detailed-exitcode", "--out=saved.plan")
		c.vmctl(0, "apply", "--log-level=trace", "saved.plan")
		c.vmctl(0, "status", "--json")
		c.vmctl(0, "plan", "--detailed-exitcode")
		if program.isReal { // its block is gone, and the secrets with it
			c.write("main.vmctl.hcl", canarySpec[:strings.Index(canarySpec, "vm \"a\"")])
			if out := c.vmctl(1, apply...); !strings.Contains(out, "put the block of vm.a back, with the variables that the module needs") {
				t.Errorf("the destroy of what is not in the spec says\n%s", out)
			}
			c.write("main.vmctl.hcl", canarySpec)
		}
		c.vmctl(0, "destroy", "--auto-approve", "--log-level=trace")
		if program.isReal {
			watched, err := os.ReadFile(filepath.Join(c.dir, "watched"))
			if err != nil || !strings.Contains(string(watched), "\napply\n") || strings.Count(string(watched), "TF_DATA_DIR=") < 5 {
				t.Errorf("%v: the programs and their children were\n%s", err, watched)
			}
		}
	})
}

// terraformCanary is a site whose module takes two secrets, the last ones of the list.
type terraformCanary struct {
	*killed
	secrets []string // all that were ever given
}

// vmctl runs vmctl with the secrets, demands an exit code, and looks for them everywhere.
func (c *terraformCanary) vmctl(code int, args ...string) string {
	c.t.Helper()
	cmd := c.command(args...)
	last := c.secrets[len(c.secrets)-2:]
	cmd.Env = append(cmd.Env, "VMCTL_VAR_text="+last[0], "VMCTL_VAR_item="+last[1])
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		c.t.Fatalf("vmctl %v: %v, want exit code %d:\n%s", args, err, code, out)
	}
	c.look("the output of vmctl "+strings.Join(args, " "), string(out))
	for _, root := range []string{c.dir, c.home} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			folder := filepath.Dir(path)
			isState := filepath.Base(filepath.Dir(folder)) == "states" && strings.HasPrefix(e.Name(), "terraform.tfstate")
			if isCopy := filepath.Base(folder) == "copies"; isState || isCopy {
				if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
					c.t.Errorf("%s: %v, %v, want mode 600", path, info.Mode(), err)
				}
				return nil
			}
			text, err := os.ReadFile(path)
			c.look(path, string(text))
			return err
		})
		if err != nil {
			c.t.Fatal(err)
		}
	}
	c.leavesNothing(strings.Join(args, " "))
	return string(out)
}

// look looks for the secrets in a text, as they are and as JSON and HCL write them.
func (c *terraformCanary) look(where, text string) {
	c.t.Helper()
	for _, secret := range c.secrets {
		forms := []string{secret, strings.ReplaceAll(secret, `"`, `\"`), strings.ReplaceAll(strings.ReplaceAll(secret, "${", "$${"), "%{", "%%{")}
		if slices.ContainsFunc(forms, func(form string) bool { return strings.Contains(text, form) }) {
			c.t.Errorf("%q is in %s:\n%s", secret, where, text)
		}
	}
}

// untaint types the command that keeps a VM whose creation failed at the end.
func (c *terraformCanary) untaint() {
	c.t.Helper()
	_, command, ok := strings.Cut(c.vmctl(0, "plan"), "if it is whole after all: ")
	command, _, _ = strings.Cut(command, ";")
	if !ok {
		c.t.Fatal("the plan has no command that keeps the VM")
	}
	cmd := exec.Command("sh", "-c", "umask 077; "+command) // the states are in a folder that only the user enters
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.home, "STANDIN=" + c.dir, "PROGRAM=" + c.terraform.path}
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("%s: %v\n%s", command, err, out)
	}
}
