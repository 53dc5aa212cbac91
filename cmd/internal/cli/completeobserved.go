package cli

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/planner"
	"vmctl/spec"
)

// offerLimit is the longest time that a shell waits for the systems: the user goes on typing.
const offerLimit = 600 * time.Millisecond

// observeQuickly observes for a shell's completion. It returns nil if that fails or takes too long.
// An observation that is still waiting then is left alone: the process is about to end.
func (a *app) observeQuickly(ctx context.Context) *observation {
	p, s := a.quietly(ctx)
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, offerLimit)
	defer cancel()
	seen := make(chan *observation, 1)
	go func() {
		world, err := planner.Observe(ctx, a.opener(p), p.config, s, planner.Options{Types: a.types, Project: p.owner})
		if err := errors.Join(err, world.Close()); err != nil {
			seen <- nil
			return
		}
		seen <- &observation{project: p, snapshot: s, world: world, observations: world.Observations(s, p.owner)}
	}()
	select {
	case s := <-seen:
		return s
	case <-ctx.Done():
		return nil
	}
}

// runningVMs lists the VMs of the files that are not known to be missing or stopped.
func (a *app) runningVMs(ctx context.Context) []string {
	all := a.wantedVMs(ctx)
	s := a.observeQuickly(ctx)
	if s == nil {
		return all
	}
	return slices.DeleteFunc(all, func(name string) bool {
		addr, err := spec.ParseAddress(name)
		if err != nil {
			return true
		}
		state := s.at(addr).status().State
		return state == "missing" || state == "stopped"
	})
}

// knownDisks lists the disks of the files and the state.
func (a *app) knownDisks(ctx context.Context) []string {
	p, s := a.quietly(ctx)
	if s == nil {
		return nil
	}
	return view.Addresses(slices.DeleteFunc(known(p, s), func(addr spec.Address) bool { return addr.Kind != spec.Disk }))
}

// offerImports offers addresses of the files that have no record for the first argument, and
// unmarked objects of the same kind for the second.
func (a *app) offerImports(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		p, s := a.quietly(cmd.Context())
		if s == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		free := slices.DeleteFunc(known(p, s), func(addr spec.Address) bool {
			_, recorded := s.Records[addr]
			return recorded
		})
		return view.Addresses(free), cobra.ShellCompDirectiveNoFileComp
	case 1:
		return a.unmanaged(cmd.Context(), args[0]), cobra.ShellCompDirectiveNoFileComp
	default:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// unmanaged lists the names of unmarked objects of the kind of an address.
func (a *app) unmanaged(ctx context.Context, address string) []string {
	addr, err := spec.ParseAddress(address)
	if err != nil {
		return nil
	}
	s := a.observeQuickly(ctx)
	if s == nil {
		return nil
	}
	names := map[string]bool{}
	for _, system := range s.world.Systems() {
		for _, o := range system.Inventory.Objects {
			if o.Kind == addr.Kind && o.Owner == nil && !strings.ContainsFunc(o.Name, unprintable) {
				names[o.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// unprintable reports whether a shell should not be offered a name with r in it.
func unprintable(r rune) bool { return view.Text(string(r)) != string(r) }

// instances lists the values of --env that have a data directory.
func (a *app) instances(context.Context) []string {
	config, diags := a.readSpec(nil)
	if diags.HasErrors() || config.Settings.ID == "" || a.global.dataDir != "" || a.getenv("VMCTL_DATA_DIR") != "" {
		return nil
	}
	a.global.env = ""
	p, err := a.projectOf(config)
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir(filepath.Dir(p.dir))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name(), filepath.Base(p.dir)+"-"); ok && checkEnvName(name) == nil {
			names = append(names, name)
		}
	}
	return names
}

// providerNames lists the providers of the files.
func (a *app) providerNames(context.Context) []string {
	config, diags := a.readSpec(nil)
	if diags.HasErrors() {
		return nil
	}
	var names []string
	for _, p := range config.Providers {
		names = append(names, p.Ref.String())
	}
	return names
}

// outputNames lists the outputs of the files.
func (a *app) outputNames(context.Context) []string {
	outputs, _ := a.readAnyway().Outputs(nil) //nolint:errcheck // an output with a mistake has a name, too
	var names []string
	for _, o := range outputs {
		names = append(names, o.Name)
	}
	return names
}

// offerVariables offers the variables of the files, each with a "=" for the value to follow.
func (a *app) offerVariables(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	config := a.readAnyway() // a variable without a value is a mistake, and --var gives it one
	var names []string
	for _, name := range config.Variables() {
		names = append(names, name+"=")
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func levelNames() []string {
	var names []string
	for _, l := range levels {
		names = append(names, l.name)
	}
	return names
}
