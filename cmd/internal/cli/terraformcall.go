package cli

import (
	"context"

	"vmctl/cmd/internal/view"
	"vmctl/providers/terraform"
)

// becomeTerraform turns vmctl into Terraform if terraform-exec started it in its place, with the arguments of Terraform. false: it
// did not. It comes before everything else: each command of Terraform begins so.
func becomeTerraform(ctx context.Context, env Env) (code int, is bool) {
	call := env.Getenv(terraform.CallVariable)
	if call == "" {
		return 0, false
	}
	if err := terraform.Call(ctx, call, env.Args, env.Environ, env.Stdout); err != nil {
		view.Failed(view.Screen{W: env.Stderr}, view.ProblemDocument{Message: err.Error()})
		return ExitCode(err), true
	}
	return 0, true
}
