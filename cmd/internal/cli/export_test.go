package cli

import (
	"github.com/spf13/cobra"

	"vmctl/state"
)

// AfterLostLock returns what a command that ran in dir advises after its run lock was lost.
func AfterLostLock(dir string) []string {
	a := &app{}
	a.global.dir = dir
	return a.problemOf(&state.LostLockError{Cause: "lock was removed"}).Next
}

// Command is a command of the tree without subcommands.
type Command struct {
	Path    string // without vmctl
	Streams bool   // with --json a line per event
}

// Commands lists the commands of the whole tree that have no subcommands, hidden ones
// included.
func Commands() []Command {
	a := &app{}
	a.stdout, a.stderr = newSinks(a.env)
	var all []Command
	var visit func(string, *cobra.Command)
	visit = func(path string, cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			name := sub.Name()
			if path != "" {
				name = path + " " + name
			}
			if !sub.HasSubCommands() {
				_, streams := sub.Annotations[streaming]
				all = append(all, Command{Path: name, Streams: streams})
			}
			visit(name, sub)
		}
	}
	visit("", a.root())
	return all
}
