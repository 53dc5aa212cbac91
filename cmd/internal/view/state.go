package view

import (
	"fmt"
	"strings"

	"vmctl/planner"
	"vmctl/spec"
	"vmctl/state"
)

// StateEntry describes the record of an address: its provider and its object.
type StateEntry struct {
	Address  spec.Address `json:"address"`
	Provider string       `json:"provider"`
	Object   string       `json:"object"`
	ID       string       `json:"id"`

	kind string // "sim vm"
}

// StateEntryOf returns the entry of a record.
func StateEntryOf(a spec.Address, r state.Record) StateEntry {
	return StateEntry{Address: a, Provider: r.Provider.String(), Object: r.Name, ID: r.ID, kind: r.Provider.Type + " " + string(r.Kind)}
}

// describe names the object: `sim vm "demo.dev" (ID)`.
func (e StateEntry) describe() string { return fmt.Sprintf("%s %q (%s)", e.kind, e.Object, e.ID) }

// StateListDocument is `state list` as JSON.
type StateListDocument struct {
	FormatVersion string       `json:"format_version"`
	Project       string       `json:"project"`
	ID            string       `json:"id"`
	Serial        uint64       `json:"serial"`
	Records       []StateEntry `json:"records"`
}

// StateList writes an address a line.
func StateList(s Screen, d StateListDocument) {
	p := &page{screen: s}
	for _, e := range d.Records {
		p.put(0, 0, whole(txt(e.Address.String())))
	}
	p.flush()
}

// StateShowDocument is `state show` as JSON.
type StateShowDocument struct {
	FormatVersion string         `json:"format_version"`
	Address       spec.Address   `json:"address"`
	Record        RecordDocument `json:"record"`
}

// StateShowJSON returns the document of a record.
func StateShowJSON(a spec.Address, r state.Record) StateShowDocument {
	doc := ShowJSON(Shown{Record: &r})
	return StateShowDocument{FormatVersion: FormatVersion, Address: a, Record: *doc.Record}
}

// StateShow shows a record.
func StateShow(s Screen, a spec.Address, r state.Record) {
	p := &page{screen: s}
	p.put(0, 2, in(bold, a.String()))
	rows := []row{{name: "provider", value: r.Provider.String()}, {name: "object", value: r.Name}, {name: "id", value: r.ID}}
	if len(r.Was) > 0 {
		rows = append(rows, row{name: "was", value: strings.Join(Addresses(r.Was), ", ")})
	}
	if len(r.Uses) > 0 {
		rows = append(rows, row{name: "uses", value: strings.Join(Addresses(r.Uses), ", ")})
	}
	p.rows(rows)
	p.heading(recordTitle(r))
	p.rows(rowsOf(a.Kind, r.Values, r.Policy))
	p.flush()
}

// StateLeft describes an object that stays when its record is dropped.
type StateLeft struct {
	StateEntry
	InFiles bool `json:"in_files"`
}

// Stays describes an object that stays, and what the next plan does with it.
func Stays(l StateLeft) string {
	text := l.Address.String() + ": " + l.describe() + " stays as it is: nothing of it is stopped or deleted; the next plan "
	if l.InFiles {
		return text + "takes it back, since it is in the files, or makes a new one if it is gone"
	}
	return text + "reports it as an orphan"
}

// StateRmDocument is `state rm` as JSON.
type StateRmDocument struct {
	FormatVersion string      `json:"format_version"`
	Forgotten     []StateLeft `json:"forgotten"`
}

// StateRm lists the records that were dropped.
func StateRm(s Screen, d StateRmDocument, next string) {
	p := &page{screen: s}
	for _, l := range d.Forgotten {
		p.put(0, 2, in(bold, "Forgotten:"), txt(" "+Stays(l)+"."))
	}
	p.command("Next:", next)
	p.flush()
}

// StateMvDocument is `state mv` as JSON.
type StateMvDocument struct {
	FormatVersion string       `json:"format_version"`
	From          spec.Address `json:"from"`
	Record        StateEntry   `json:"record"`
	OldInFiles    bool         `json:"old_in_files"`
	NewInFiles    bool         `json:"new_in_files"`
}

// StateMv shows a moved record, and warns if the files do not fit it.
func StateMv(s Screen, d StateMvDocument, next string) {
	p := &page{screen: s}
	p.put(0, 2, in(bold, d.Record.Address.String()), txt(fmt.Sprintf(" has the record of %s now: %s stays as it is, and the next apply writes the new address into its mark.",
		d.From, d.Record.describe())))
	if !d.NewInFiles {
		p.put(0, 2, in(yellow, "Warning:"), txt(fmt.Sprintf(" %s is not in the files: the next apply would destroy it. Rename its block first.", d.Record.Address)))
	}
	if d.OldInFiles {
		p.put(0, 2, in(yellow, "Warning:"), txt(fmt.Sprintf(" %s is still in the files: the next apply would make another for it.", d.From)))
	}
	p.command("Next:", next)
	p.flush()
}

// StateRepairDocument is `state repair` as JSON.
type StateRepairDocument struct {
	FormatVersion string        `json:"format_version"`
	DryRun        bool          `json:"dry_run"`
	Damage        []StateDamage `json:"damage"`
	Actions       []string      `json:"actions"`
	Kept          []string      `json:"kept"` // copies of damaged files
	Serial        uint64        `json:"serial"`
	Records       int           `json:"records"`
}

// StateDamage is one thing that is wrong with a file of the state.
type StateDamage struct {
	Path    string `json:"path"`
	Line    int    `json:"line"` // 0: the file as a whole
	Problem string `json:"problem"`
}

// Fill sets the fields of the document from a repair.
func (d *StateRepairDocument) Fill(r state.Repair) {
	d.FormatVersion, d.Serial, d.Records = FormatVersion, r.Serial, r.Records
	d.Damage, d.Actions, d.Kept = []StateDamage{}, list(r.Steps), list(r.Kept)
	for _, damage := range r.Damage {
		d.Damage = append(d.Damage, StateDamage(damage))
	}
}

// StateRepair lists the damage, and the actions that were or would be done.
func StateRepair(s Screen, d StateRepairDocument, next string) {
	p := &page{screen: s}
	if len(d.Damage) == 0 {
		p.put(0, 2, txt(fmt.Sprintf("The state is whole: snapshot %d with %s. Nothing was changed.", d.Serial, plural(d.Records, "record"))))
		p.flush()
		return
	}
	for _, damage := range d.Damage {
		where := damage.Path
		if damage.Line > 0 {
			where += fmt.Sprintf(", line %d", damage.Line)
		}
		p.put(0, 2, in(red, "Damaged:"), txt(" "+where+": "+damage.Problem))
	}
	did, comes := "Done:", "The state is snapshot %d now, with %s."
	if d.DryRun {
		did, comes = "Would do:", "The state would be snapshot %d, with %s. Nothing was changed."
	}
	for _, action := range d.Actions {
		p.put(0, 2, in(bold, did), txt(" "+action))
	}
	p.put(0, 2, txt(fmt.Sprintf(comes, d.Serial, plural(d.Records, "record"))))
	p.command("Next:", next)
	p.flush()
}

// StateRebuildDocument is `state rebuild` as JSON.
type StateRebuildDocument struct {
	FormatVersion string         `json:"format_version"`
	Records       []StateRebuilt `json:"records"`
	Findings      []FindingEntry `json:"findings"`
}

// StateRebuilt is a record that a rebuild wrote.
type StateRebuilt struct {
	StateEntry
	Warnings []string `json:"warnings"`
}

// StateRebuildJSON returns the result of a rebuild as JSON, for a run with own flags.
func StateRebuildJSON(plan *planner.Plan, own OwnFlags) StateRebuildDocument {
	doc := StateRebuildDocument{FormatVersion: FormatVersion, Records: []StateRebuilt{}, Findings: FindingEntries(plan.Findings, own)}
	for _, c := range plan.Changes {
		doc.Records = append(doc.Records, StateRebuilt{
			StateEntry: StateEntry{
				Address: c.Address, Provider: c.Provider.String(), Object: c.Name, ID: string(c.ID), kind: c.Provider.Type + " " + string(c.Kind),
			},
			Warnings: list(c.Warnings),
		})
	}
	return doc
}

// StateRebuild lists the records that were written, and the objects that were left out.
func StateRebuild(s Screen, d StateRebuildDocument, next string) {
	p := &page{screen: s}
	for _, r := range d.Records {
		p.put(0, 2, in(bold, r.Address.String()), txt(" has a record again: "+r.describe()))
		for _, w := range r.Warnings {
			p.put(2, 4, in(yellow, "warning"), txt(": "+w))
		}
	}
	if len(d.Records) == 0 {
		p.put(0, 2, txt("No object that bears the project's mark lacks a record. Nothing was changed."))
	}
	for _, f := range d.Findings {
		p.put(0, 2, in(yellow, "Left out:"), txt(" "+strings.Join(f.Evidence, "; ")))
	}
	if len(d.Records) > 0 {
		p.command("Next:", next)
	}
	p.flush()
}
