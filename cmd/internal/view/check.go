package view

import (
	"fmt"
	"path/filepath"
	"strings"

	"vmctl/spec"
)

// CheckEntry is a condition of a check block or of a resource as JSON.
type CheckEntry struct {
	Address string `json:"address"` // of the resource; of a check block: check.NAME
	Kind    string `json:"kind"`    // assert | precondition | postcondition
	Index   int    `json:"index"`   // among the blocks of its kind in the block around it
	Status  string `json:"status"`  // pass | fail | unknown | error
	Message string `json:"message"` // why it fails; "": it does not
	File    string `json:"file"`    // in the folder of the spec
	Line    int    `json:"line"`
}

// CheckEntries returns conditions for JSON, never null.
func CheckEntries(all []spec.Check) []CheckEntry {
	entries := []CheckEntry{}
	for _, c := range all {
		entries = append(entries, CheckEntry{
			Address: c.Address.String(), Kind: string(c.Kind), Index: c.Index, Status: string(c.Status), Message: c.Message,
			File: filepath.Base(c.Range.Filename), Line: c.Range.Start.Line,
		})
	}
	return entries
}

// unknownChecks lists the conditions that only an apply can decide.
func (p *page) unknownChecks(all []CheckEntry) {
	titled, said := false, map[string]bool{}
	for _, c := range all {
		if c.Status != string(spec.CheckUnknown) || said[c.subject()] {
			continue
		}
		said[c.subject()] = true
		if !titled {
			p.heading("Checks")
			titled = true
		}
		p.put(2, 6, in(bold, c.subject()), txt(" (known after apply)"))
	}
}

// subject names a condition: check.health, or precondition of vm.dev.
func (c CheckEntry) subject() string {
	if c.Kind == string(spec.Assert) {
		return c.Address
	}
	return c.Kind + " of " + c.Address
}

// markdownChecks returns the table of the conditions that do not hold, or are not known yet.
func markdownChecks(d PlanDocument) string {
	var rows []string
	for _, c := range d.Checks {
		if c.Status != string(spec.CheckPasses) {
			rows = append(rows, fmt.Sprintf("| %s | %s | %s |", code(c.subject()), c.Status, cell(Text(c.Message))))
		}
	}
	if len(rows) == 0 {
		return ""
	}
	return "\n**Checks**\n\n| Check | Status | Message |\n|---|---|---|\n" + strings.Join(rows, "\n") + "\n"
}
