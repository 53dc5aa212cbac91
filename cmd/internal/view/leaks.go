package view

import (
	"cmp"
	"strings"

	"vmctl/planner"
	"vmctl/providers"
)

// LeaksDocument lists what leaked, as JSON.
type LeaksDocument struct {
	FormatVersion string      `json:"format_version"`
	Project       string      `json:"project"`
	ID            string      `json:"id"`
	Leaks         []LeakEntry `json:"leaks"`
	Unread        []LeakEntry `json:"unread"` // could not be read: whether anything leaked there is not known
	Lock          string      `json:"lock,omitempty"`
}

// LeakEntry is one thing that leaked.
type LeakEntry struct {
	Kind     string   `json:"kind"`    // orphan | missing | partial | leftover | stale_lock | interrupted | unknown
	Address  string   `json:"address"` // "": object names it: a system that could not be read, or the copy of a job
	Object   string   `json:"object"`
	Evidence []string `json:"evidence"`
	Removed  bool     `json:"removed_by_cleanup"` // by vmctl cleanup without an address
	Next     []string `json:"next,omitempty"`
}

// LeaksJSON returns the document of leaks.
func LeaksJSON(l planner.Leaks, p providers.Project, own OwnFlags) LeaksDocument {
	doc := LeaksDocument{FormatVersion: FormatVersion, Project: p.Name, ID: p.Lineage(), Leaks: []LeakEntry{}, Unread: []LeakEntry{}}
	for _, leak := range l.All {
		doc.Leaks = append(doc.Leaks, leakEntry(leak, own))
	}
	for _, leak := range l.Unread {
		doc.Unread = append(doc.Unread, leakEntry(leak, own))
	}
	return doc
}

func leakEntry(l planner.Leak, own OwnFlags) LeakEntry {
	return LeakEntry{Kind: string(l.Kind), Address: l.Address.String(), Object: l.Object, Evidence: l.Evidence, Removed: l.Goes, Next: own.Advice(l.Next)}
}

// Leaks shows what leaked. cleanup is the command that removes what a clean-up removes.
func Leaks(s Screen, doc LeaksDocument, cleanup string) {
	w := &page{screen: s}
	head := "none"
	if n := len(doc.Leaks); n > 0 {
		head = plural(n, "thing")
	}
	if n := len(doc.Unread); n > 0 {
		head += "; " + plural(n, "thing") + " not read"
	}
	w.put(0, 2, in(bold, "Leaks of "+doc.Project+":"), txt(" "+head+"."))
	if doc.Lock != "" {
		w.put(0, 2, in(yellow, "Note:"), txt(" "+doc.Lock+". The objects that it changes may be listed as leaked."))
	}
	goes := false
	for _, part := range []struct {
		title string
		style style
		all   []LeakEntry
	}{{"Leaked", yellow, doc.Leaks}, {"Not read", red, doc.Unread}} {
		if len(part.all) == 0 {
			continue
		}
		w.heading(part.title)
		for _, e := range part.all {
			w.put(2, 6, in(part.style, strings.ReplaceAll(e.Kind, "_", " ")), txt("  "+cmp.Or(e.Address, e.Object)))
			for _, evidence := range e.Evidence {
				w.put(6, 8, txt(evidence))
			}
			if e.Removed {
				goes = true
				continue
			}
			for _, next := range e.Next {
				w.put(6, 8, txt("next: "+next))
			}
		}
	}
	if goes {
		w.command("Next:", cleanup+" removes the orphans that were made from here, and the records of what is gone.")
	}
	w.flush()
}
