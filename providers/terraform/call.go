package terraform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"vmctl/internal/process"
)

// CallVariable is the environment variable that tells vmctl to run Call in place of a command. Its value is the
// argument order of Call.
const CallVariable = "VMCTL_TERRAFORM_CALL"

// stdinPath is the standard input as a file, which Terraform reads the values of variables from.
const stdinPath = "/dev/stdin"

// order tells Call how to run Terraform: what terraform-exec refuses to set.
type order struct {
	Program   string `json:"program"`             // absolute
	Workspace string `json:"workspace,omitempty"` // "": the default one
	Variables string `json:"variables,omitempty"` // a named pipe with the values of variables, which become the standard input
	Init      string `json:"init,omitempty"`      // a further argument of init
	Version   string `json:"version,omitempty"`   // what the program says about its version; "": it is not known
	// Lasting lets Terraform outlive vmctl. nil: it ends with vmctl, and writes nothing that is missed.
	Lasting *lasting `json:"lasting,omitempty"`
}

// Call turns this process, which terraform-exec started with the arguments of Terraform, into Terraform. It returns
// after an error, or if it could answer on out in place of Terraform: terraform-exec asks for the version before some commands.
func Call(ctx context.Context, text string, args, environ []string, out io.Writer) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fmt.Errorf("run Terraform: %s: %w", CallVariable, err)
	}
	asksVersion := len(args) > 0 && args[0] == "version"
	if asksVersion && o.Version != "" {
		_, err := io.WriteString(out, o.Version)
		return err
	}
	if o.Init != "" && len(args) > 0 && args[0] == "init" {
		args = append(args[:1:1], append([]string{o.Init}, args[1:]...)...)
	}
	env := slices.DeleteFunc(slices.Clone(environ), func(entry string) bool { return strings.HasPrefix(entry, CallVariable+"=") })
	if o.Workspace != "" {
		env = append(env, "TF_WORKSPACE="+o.Workspace)
	}
	program := process.Program{Path: o.Program, Args: append([]string{o.Program}, args...), Env: env, Bound: true}
	if o.Variables != "" && slices.Contains(args, "-var-file="+stdinPath) {
		variables, err := os.ReadFile(o.Variables)
		if err != nil {
			return errors.New("run Terraform: the values of its variables could not be read")
		}
		program.Stdin = variables
	}
	if o.Lasting != nil && !asksVersion {
		program.Bound = false
		if err := o.Lasting.begin(ctx, &program); err != nil {
			return fmt.Errorf("run Terraform: %w", err)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return process.Become(program)
}
