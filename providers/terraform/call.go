package terraform

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"vmctl/internal/process"
)

// CallVariable is the environment variable that tells vmctl to run Call in place of a command. Its value is the
// argument order of Call.
const CallVariable = "VMCTL_TERRAFORM_CALL"

// order tells Call how to run Terraform: what terraform-exec refuses to set.
type order struct {
	Program   string `json:"program"`             // absolute
	Workspace string `json:"workspace,omitempty"` // "": the default one
	Init      string `json:"init,omitempty"`      // a further argument of init
	Version   string `json:"version,omitempty"`   // what the program says about its version; "": it is not known
	// Held lets the process wait at its gate before it becomes Terraform, which then outlives vmctl. Else Terraform ends with vmctl,
	// and writes nothing that is missed.
	Held bool `json:"held,omitempty"`
}

// Call turns this process, which was started with the arguments of Terraform, into Terraform. It returns
// after an error, or if it could answer on out in place of Terraform: terraform-exec asks for the version before some commands.
func Call(ctx context.Context, text string, args, environ []string, out io.Writer) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fmt.Errorf("run Terraform: %s: %w", CallVariable, err)
	}
	if o.Version != "" && len(args) > 0 && args[0] == "version" {
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
	program := process.Program{Path: o.Program, Args: append([]string{o.Program}, args...), Env: env, Bound: !o.Held}
	if o.Held {
		if err := process.AwaitGate(); err != nil {
			return fmt.Errorf("run Terraform: %w", err)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return process.Become(program)
}
