package view

import (
	"slices"

	"vmctl/internal/shellword"
	"vmctl/providers"
)

// OwnFlags holds the flags of the user's own command line that the next command needs as well.
type OwnFlags struct {
	Global []string // for every command: -C, --env
	Plan   []string // for plan and apply: --target
}

// CommandLine returns a vmctl command as the user has to type it: its name, all own flags, and
// more arguments.
func (o OwnFlags) CommandLine(name []string, more ...string) string {
	return shellword.Join(slices.Concat([]string{"vmctl"}, name, o.Global, o.Plan, more))
}

// Advice returns each advice as a line. The commands `plan` and `apply` get all own flags, any
// other command the global ones.
func (o OwnFlags) Advice(all []providers.Advice) []string {
	var lines []string
	for _, a := range all {
		lines = append(lines, a.Text+o.command(a.Args))
	}
	return lines
}

func (o OwnFlags) command(args []string) string {
	switch {
	case len(args) == 0:
		return ""
	case len(args) == 1 && (args[0] == "plan" || args[0] == "apply"):
		return o.CommandLine(args)
	default:
		return shellword.Join(slices.Concat([]string{"vmctl"}, o.Global, args))
	}
}
