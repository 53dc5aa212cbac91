package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

func (a *app) stateRmCommand() *cobra.Command {
	var force bool
	var wait lockWait
	cmd := &cobra.Command{
		Use:   "rm ADDR...",
		Short: "Remove the records of addresses, and leave their objects",
		Long: "Remove the records of addresses. Their objects stay unchanged and keep vmctl's mark.\n" +
			"The next plan takes back the objects whose blocks are in the files, and reports the\n" +
			"others as orphans; it makes no second object. Without --force, the command only\n" +
			"shows the objects that would stay.",
		Args: between(1, -1, "the address of a record"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.stateRm(cmd.Context(), removal{names: args, force: force, wait: wait})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove the records")
	wait.register(cmd.Flags())
	return cmd
}

// removal holds the arguments and flags of a state rm.
type removal struct {
	names []string
	force bool
	wait  lockWait
}

func (a *app) stateRm(ctx context.Context, r removal) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	if !r.force {
		return a.stateRmRefused(ctx, p, r.names)
	}
	doc := view.StateRmDocument{FormatVersion: view.FormatVersion}
	err = a.rewrite(ctx, p, a.lockOwner(p, "state rm", r.wait), func(j state.Journal) error {
		snapshot := j.Snapshot()
		found, err := recordsOf(snapshot, r.names)
		if err != nil {
			return err
		}
		run, err := newID(a.env.Rand)
		if err != nil {
			return err
		}
		var entries []state.Entry
		for i, addr := range found {
			record := snapshot.Records[addr]
			entries = append(entries, state.Entry{
				Run: run, Step: i, Kind: state.Note, Op: state.Forgotten, Address: addr, ID: record.ID, Name: record.Name, Drop: true,
			})
		}
		for i, e := range holdersOfForgotten(snapshot, found) {
			e.Run, e.Step = run, len(found)+i
			entries = append(entries, e)
		}
		doc.Forgotten = staying(p, snapshot, found)
		return j.Append(ctx, entries...)
	})
	if err != nil {
		return err
	}
	a.show(doc, func(s view.Screen) { view.StateRm(s, doc, a.commandLine("plan", planFlags{})) })
	return nil
}

// holdersOfForgotten returns the journal entries that note of the objects around forgotten ones that something without a record is
// inside of them: plans look for it there.
func holdersOfForgotten(s *state.Snapshot, forgotten []spec.Address) []state.Entry {
	var entries []state.Entry
	noted := map[spec.Address]bool{}
	for _, addr := range forgotten {
		around := s.Records[addr].Inside
		shape, _ := spec.Shape(addr.Kind)
		outer, recorded := s.Records[around]
		if !shape.Work || !recorded || outer.Found || noted[around] || slices.Contains(forgotten, around) {
			continue
		}
		noted[around], outer.Found = true, true
		entries = append(entries, state.Entry{Kind: state.Note, Op: opHolds, Address: around, ID: outer.ID, Name: outer.Name, Put: &outer})
	}
	return entries
}

// opHolds is the Op of the journal entries of holdersOfForgotten.
const opHolds = "holds_forgotten"

// stateRmRefused returns the error of a state rm without --force. It lists the objects that
// would stay.
func (a *app) stateRmRefused(ctx context.Context, p *project, names []string) error {
	snapshot, err := a.read(ctx, p)
	if err != nil {
		return err
	}
	found, err := recordsOf(snapshot, names)
	if err != nil {
		return err
	}
	e := newProblem(classRefused, "needs_force", "state rm: nothing was changed: what is forgotten stays in the world, and nobody looks after it",
		"to forget it all the same: "+a.commandLine("state rm", planFlags{}, append([]string{"--force"}, names...)...),
		"to end and remove it: "+a.commandLine("destroy", planFlags{targets: view.Addresses(found)}))
	for _, left := range staying(p, snapshot, found) {
		e.Seen = append(e.Seen, view.Stays(left))
	}
	return e
}

// staying lists the records of addresses, each with whether the files declare it.
func staying(p *project, s *state.Snapshot, addrs []spec.Address) []view.StateLeft {
	var all []view.StateLeft
	for _, addr := range addrs {
		_, inFiles := p.config.Resource(addr)
		all = append(all, view.StateLeft{StateEntry: view.StateEntryOf(addr, s.Records[addr]), InFiles: inFiles})
	}
	return all
}

func (a *app) stateMvCommand() *cobra.Command {
	var wait lockWait
	cmd := &cobra.Command{
		Use:   "mv OLD NEW",
		Short: "Give a record to another address, as when a block was renamed",
		Long: "Move the record of OLD to NEW. The object stays unchanged and keeps its name. The\n" +
			"next apply writes the new address into the object's mark, without a restart.",
		Args: between(2, 2, "two addresses, the old one and the new one"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.stateMv(cmd.Context(), args[0], args[1], wait) },
	}
	wait.register(cmd.Flags())
	return cmd
}

func (a *app) stateMv(ctx context.Context, from, to string, wait lockWait) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	doc := view.StateMvDocument{FormatVersion: view.FormatVersion}
	err = a.rewrite(ctx, p, a.lockOwner(p, "state mv", wait), func(j state.Journal) error {
		snapshot := j.Snapshot()
		m, err := moveOf(snapshot, from, to)
		if err != nil {
			return err
		}
		run, err := newID(a.env.Rand)
		if err != nil {
			return err
		}
		doc.From, doc.Record = m.From, view.StateEntryOf(m.Address, snapshot.Records[m.From])
		m.Run = run
		return j.Append(ctx, m)
	})
	if err != nil {
		return err
	}
	_, doc.OldInFiles = p.config.Resource(doc.From)
	_, doc.NewInFiles = p.config.Resource(doc.Record.Address)
	a.show(doc, func(s view.Screen) { view.StateMv(s, doc, a.commandLine("plan", planFlags{})) })
	return nil
}

// moveOf returns the journal entry that moves a record. It fails if the record cannot be
// moved.
func moveOf(s *state.Snapshot, from, to string) (state.Entry, error) {
	old, err := recordOf(s, from)
	if err != nil {
		return state.Entry{}, err
	}
	if !strings.Contains(to, ".") {
		to = string(old.Kind) + "." + to
	}
	addr, err := spec.ParseAddress(to)
	switch _, taken := s.Records[addr]; {
	case err != nil:
		return state.Entry{}, rejected("usage", "state mv: "+err.Error())
	case addr == old:
		return state.Entry{}, rejected("usage", fmt.Sprintf("state mv: %s is where it is already", addr))
	case addr.Kind != old.Kind:
		return state.Entry{}, rejected("usage", fmt.Sprintf("state mv: %s is a %s, and cannot become a %s", old, old.Kind, addr.Kind))
	case taken:
		return state.Entry{}, rejected("address_taken", fmt.Sprintf("state mv: %s has a record already, of %s", addr, s.Records[addr].Name)).
			advised(providers.SayVmctl("move that one elsewhere first, or forget it: ", "state", "rm", "--force", addr.String()))
	}
	r := s.Records[old]
	return state.Entry{Kind: state.Note, Op: state.Moved, From: old, Address: addr, ID: r.ID, Name: r.Name}, nil
}
