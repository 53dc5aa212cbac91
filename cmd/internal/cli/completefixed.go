package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vmctl/cmd/internal/view"
	"vmctl/spec"
	"vmctl/state"
)

// offer is a function that lists completions of a word. Names come from the files and the
// state; which VMs run comes from the systems, if they answer at once. It writes nothing and
// reports no error: if the files have mistakes it offers no names.
type offer = cobra.CompletionFunc

// completes reports whether a shell asks for completions. Other runs do without the offers: cobra keeps those of flags until
// the process ends.
func (a *app) completes() bool {
	return len(a.env.Args) > 0 && slices.Contains([]string{cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}, a.env.Args[0])
}

// offers lets shells complete the names that commands and flags take.
func (a *app) offers(root *cobra.Command) {
	for _, o := range []struct {
		commands string
		offer    offer
	}{
		{"vm start, vm restart, vm rekey", several(a.wantedVMs)},
		{"vm stop", several(a.runningVMs)},
		{"vm shell, vm exec", first(a.runningVMs)},
		{"vm logs, vm edit, vm ssh-config", first(a.wantedVMs)},
		{"container start, container stop, container pause, container unpause, container restart", several(a.containers)},
		{"container exec, container logs", first(a.containers)},
		{"engine watch, engine exec", first(a.engineNames)},
		{"workspace open, workspace close, workspace shell, workspace exec, workspace push, workspace fetch, workspace status", first(a.workspaceNames)},
		{"workspace diff, workspace log, workspace merge, workspace save, workspace saves, workspace restore", first(a.workspaceNames)},
		{"job run", first(a.jobBlocks)},
		{"job status, job wait", several(a.jobNames)},
		{"job result, job logs, job cancel, job continue", first(a.jobNames)},
		{"disk unlock", first(a.knownDisks)},
		{"import", a.offerImports},
		{"show", first(a.allKnown)},
		{"output", first(a.outputNames)},
		{"state list, state rm", several(a.inState)},
		{"state show, state mv", first(a.inState)},
		{"help", a.offerCommands},
		{"completion", first(func(context.Context) []string { return []string{"bash", "fish", "powershell", "zsh"} })},
		{"lock release, apply, vm cp", nil}, // paths, as a shell completes them
	} {
		for name := range strings.SplitSeq(o.commands, ", ") {
			cmd, _, err := root.Find(strings.Fields(name))
			if err != nil || cmd == root {
				panic("no command " + name)
			}
			cmd.ValidArgsFunction = o.offer
			if o.offer == nil {
				cmd.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
			}
		}
	}
	a.offersBelow(root)
}

// flagOffers returns the offers for the values of flags, by flag. nil: the shell completes
// files.
func (a *app) flagOffers() map[string]offer {
	all := map[string]offer{
		"format":    fixed(graphFormats()...),
		"log-level": fixed(levelNames()...),
		"env":       byName(a.instances),
		"var":       a.offerVariables,
		"provider":  byName(a.providerNames),
		"engine":    byName(a.engineNames),
		"chdir":     cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		"data-dir":  cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		"var-file":  nil, "out": nil, "equivalent": nil, "compose": nil,
	}
	for _, flag := range []string{"target", "exclude", "replace", "adopt", "revert", "allow-replace", "allow-destroy", "allow-interrupt", "allow-dirty"} {
		all[flag] = byName(a.allKnown)
	}
	return all
}

// offersBelow sets the completions of the flags of a command and of all commands below it.
// Commands and flags without an offer complete no files either.
func (a *app) offersBelow(cmd *cobra.Command) {
	offers := a.flagOffers()
	switch cmd.Name() {
	case "plan", "show":
		offers["format"] = fixed(planFormats()...)
	case "drift":
		offers["format"] = fixed(view.DriftFormats()...)
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		offer, known := offers[f.Name]
		switch {
		case known && offer == nil, f.Value.Type() == "bool":
			return
		case !known:
			offer = cobra.NoFileCompletions
		}
		if err := cmd.RegisterFlagCompletionFunc(f.Name, offer); err != nil {
			panic(err.Error())
		}
	})
	if cmd.ValidArgsFunction == nil && !cmd.HasSubCommands() {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, sub := range cmd.Commands() {
		a.offersBelow(sub)
	}
}

func fixed(words ...string) offer {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// first offers names for the first argument. several offers them for all arguments, each
// once.
func first(names func(context.Context) []string) offer {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	}
}

func several(names func(context.Context) []string) offer {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		all := slices.DeleteFunc(names(cmd.Context()), func(name string) bool { return slices.Contains(args, name) })
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// byName offers names for the value of a flag, whatever the arguments are.
func byName(names func(context.Context) []string) offer {
	return func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return names(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	}
}

// offerCommands offers the commands below those that were typed.
func (a *app) offerCommands(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	found, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, sub := range found.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name()+"\t"+sub.Short)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// wantedVMs lists the VMs of the files.
func (a *app) wantedVMs(context.Context) []string { return a.wanted(spec.VM) }

// engineNames lists the engines of the files.
func (a *app) engineNames(context.Context) []string { return a.wanted(spec.Engine) }

// workspaceNames lists the workspaces of the files.
func (a *app) workspaceNames(context.Context) []string { return a.wanted(spec.Workspace) }

// jobBlocks lists the job blocks of the files.
func (a *app) jobBlocks(context.Context) []string { return a.wanted(spec.Job) }

// jobNames lists the job blocks of the files, and the jobs that have a record.
func (a *app) jobNames(ctx context.Context) []string {
	names := a.jobBlocks(ctx)
	p, _ := a.quietly(ctx)
	if p == nil {
		return names
	}
	all, _, err := a.jobs(p, "job list").List()
	if err != nil {
		return names
	}
	for _, r := range all {
		names = append(names, string(r.ID))
	}
	return names
}

// wanted lists the resources of a kind in the files.
func (a *app) wanted(kind spec.Kind) []string {
	config, diags := a.readSpec(nil)
	if diags.HasErrors() {
		return nil
	}
	var names []string
	for _, r := range config.Resources {
		if r.Address.Kind == kind {
			names = append(names, r.Address.String())
		}
	}
	return names
}

// allKnown lists the addresses of the files and the state.
func (a *app) allKnown(ctx context.Context) []string {
	p, s := a.quietly(ctx)
	if s == nil {
		return nil
	}
	return view.Addresses(known(p, s))
}

// inState lists the addresses of the state.
func (a *app) inState(ctx context.Context) []string {
	_, s := a.quietly(ctx)
	if s == nil {
		return nil
	}
	return view.Addresses(recorded(s))
}

// quietly reads the files and the state, and shows nothing. Both are nil if one of them
// cannot be read.
func (a *app) quietly(ctx context.Context) (*project, *state.Snapshot) {
	config, diags := a.readSpec(nil)
	if diags.HasErrors() || config.Settings.ID == "" {
		return nil, nil
	}
	p, err := a.projectOf(config)
	if err != nil {
		return nil, nil
	}
	s, err := p.store.Read(ctx)
	if err != nil {
		return nil, nil
	}
	return p, s
}
