package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vmctl/cmd/internal/view"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

func (a *app) stateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Show and change what vmctl has recorded",
		Long: "The state records, for every address, what vmctl applied. These commands show or\n" +
			"change records. They make, change and delete no object. Commands that write take\n" +
			"the run lock, and keep the previous snapshot as a backup.",
		Args: cobra.ArbitraryArgs,
		RunE: a.group,
	}
	cmd.AddCommand(a.stateListCommand(), a.stateShowCommand(), a.stateRmCommand(), a.stateMvCommand(),
		a.stateRepairCommand(), a.stateRebuildCommand())
	return cmd
}

func (a *app) stateListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list [ADDR...]",
		Short: "List the addresses that have a record",
		Args:  between(0, -1, ""),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.stateList(cmd.Context(), args) },
	}
}

func (a *app) stateList(ctx context.Context, names []string) error {
	p, err := a.openExisting()
	if err != nil {
		return err
	}
	snapshot, err := a.read(ctx, p)
	if err != nil {
		return err
	}
	found := recorded(snapshot)
	if len(names) > 0 {
		if found, err = recordsOf(snapshot, names); err != nil {
			return err
		}
	}
	doc := view.StateListDocument{
		FormatVersion: view.FormatVersion, Project: p.owner.Name, ID: p.owner.Lineage(), Serial: snapshot.Serial,
		Records: []view.StateEntry{},
	}
	for _, addr := range found {
		doc.Records = append(doc.Records, view.StateEntryOf(addr, snapshot.Records[addr]))
	}
	a.show(doc, func(s view.Screen) { view.StateList(s, doc) })
	return nil
}

func (a *app) stateShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ADDR",
		Short: "Show the record of one address",
		Args:  one("the address of a record"),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.stateShow(cmd.Context(), args[0]) },
	}
}

func (a *app) stateShow(ctx context.Context, name string) error {
	p, err := a.openExisting()
	if err != nil {
		return err
	}
	snapshot, err := a.read(ctx, p)
	if err != nil {
		return err
	}
	addr, err := recordOf(snapshot, name)
	if err != nil {
		return err
	}
	record := snapshot.Records[addr]
	a.show(view.StateShowJSON(addr, record), func(s view.Screen) { view.StateShow(s, addr, record) })
	return nil
}

// recordsOf finds the records that users name, each once, sorted. A name is an address, a
// block, or the last part of an address.
func recordsOf(s *state.Snapshot, names []string) ([]spec.Address, error) {
	var all []spec.Address
	for _, name := range names {
		var found []spec.Address
		for _, addr := range recorded(s) {
			if name == addr.String() || name == addr.Block().String() || name == addr.Name {
				found = append(found, addr)
			}
		}
		if len(found) == 0 {
			return nil, rejected("no_record", "the state has no record of "+quoted(name)).
				advised(providers.SayVmctl("see those that it has: ", "state", "list"))
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, spec.Address.Compare)
	return slices.Compact(all), nil
}

// recordOf finds the one record that a name means. A whole address means its own record, even
// if a block of that name has instances.
func recordOf(s *state.Snapshot, name string) (spec.Address, error) {
	for _, addr := range recorded(s) {
		if name == addr.String() {
			return addr, nil
		}
	}
	found, err := recordsOf(s, []string{name})
	if err != nil {
		return spec.Address{}, err
	}
	if len(found) != 1 {
		return spec.Address{}, severalError(name, found)
	}
	return found[0], nil
}

// lockWait holds the --lock-timeout of a command that writes the state.
type lockWait struct{ applyFlags }

func (w *lockWait) register(flags *pflag.FlagSet) { w.registerLock(flags) }

func (w *lockWait) of(p *project) time.Duration { return w.wait(p.config.Settings) }

// lockOwner describes a command that writes the state, as the owner of the run lock.
func (a *app) lockOwner(p *project, command string, w lockWait) state.Owner {
	return state.Owner{
		Command: "vmctl " + command, Wait: w.of(p),
		Waiting: func(h state.Holder) { a.waiting(h, w.of(p)) },
	}
}

// rewrite takes the run lock, and calls change to append to the state.
func (a *app) rewrite(ctx context.Context, p *project, o state.Owner, change func(state.Journal) error) (err error) {
	journal, err := p.store.Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	a.notes(journal.Snapshot())
	return change(journal)
}
