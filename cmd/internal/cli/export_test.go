package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// AfterLostLock returns what a command that ran in dir advises after its run lock was lost.
func AfterLostLock(dir string) []string {
	a := &app{}
	a.global.dir = dir
	return a.problemOf(&state.LostLockError{Cause: "lock was removed"}).Next
}

// OtherNames lists the names that other tools have for commands, with what does it here.
func OtherNames() map[string][]string { return otherNames }

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

// MaskedParts returns what is shown of an output after each of its parts, of which the last one is the end.
func MaskedParts(mask func(string) string, parts ...string) (shown []string) {
	m := maskedLines{secret: mask != nil, mask: mask}
	for i, part := range parts {
		shown = append(shown, string(m.take([]byte(part), i == len(parts)-1)))
	}
	return shown
}

// FetchMore expands a want as often as a command would that reads texts elsewhere, and returns the reasons where it failed.
func FetchMore(ctx context.Context, types providers.Types, now func() time.Time, want cty.Value, times int) (reasons []string) {
	a := &app{env: Env{Now: now}, types: types}
	a.fetchElsewhere(ctx)
	for range times {
		reason := ""
		if _, unread := a.expand("libvirt", spec.VM, want, "/specs"); unread != nil {
			reason = unread.Error()
		}
		reasons = append(reasons, reason)
	}
	return reasons
}

// Visitor returns the user as whom people enter a VM that is there, and the folder in which they begin, from its block
// (nil: it has no sound one), the recorded values and its provider.
func Visitor(block *spec.Resource, recorded cty.Value, p providers.Provider) (user, folder string, next []string, err error) {
	a := &app{env: Env{Dir: "/here"}}
	values, folder, err := a.visitor(observedAddress{
		address: spec.Address{Kind: spec.VM, Name: "dev"}, resource: block, record: &state.Record{Values: recorded},
		object: &providers.Object{Name: "demo.dev"}, system: &planner.System{Provider: p},
	})
	if err != nil {
		next = a.problemOf(err).Next
	}
	return ctyread.Text(ctyread.Attr(values, "ssh"), "user"), folder, next, err
}
