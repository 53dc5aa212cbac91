package view

import (
	"fmt"
	"strings"
)

// ConflictsDocument is `workspace conflicts` as JSON.
type ConflictsDocument struct {
	FormatVersion string           `json:"format_version"`
	Branches      []ComparedEntry  `json:"branches"`
	Collisions    []CollisionEntry `json:"collisions"`
	Pairs         int              `json:"pairs"` // that were compared
}

// ComparedEntry is a branch that was compared with others, as far as this host has it.
type ComparedEntry struct {
	Branch      string   `json:"branch"`
	Address     string   `json:"address,omitempty"` // of its workspace
	Repository  string   `json:"repository"`
	Commit      string   `json:"commit"`      // of this host; empty: the repository has no such branch
	Unfetched   []string `json:"unfetched"`   // commits of the workspace that the branch here lacks
	Uncommitted []string `json:"uncommitted"` // sorts of changes that no commit has
	Unknown     string   `json:"unknown,omitempty"`
	Next        []string `json:"next"`
}

// Partly reports whether a workspace may have commits that were not compared.
func (e ComparedEntry) Partly() bool { return e.Unknown != "" || len(e.Unfetched) > 0 }

// CollisionEntry is a pair of branches that collide.
type CollisionEntry struct {
	Branches [2]string `json:"branches"`
	Files    []string  `json:"files"` // none: they have no commit in common
}

// Conflicts shows which branches collide, and what was not compared.
func Conflicts(s Screen, d ConflictsDocument) {
	p := &page{screen: s}
	for _, c := range d.Collisions {
		p.put(0, 2, txt(c.Branches[0]+" and "+c.Branches[1]+" collide"))
		for _, file := range c.Files {
			p.put(4, 6, txt(file))
		}
		if len(c.Files) == 0 {
			p.put(4, 6, txt("they have no commit in common"))
		}
	}
	for _, b := range d.Branches {
		name := b.Branch
		if b.Address != "" {
			name += " of " + b.Address
		}
		if b.Unknown != "" {
			p.put(0, 2, txt(name+": it could not be read which commits are not fetched, and they were not compared: "+b.Unknown))
		}
		if len(b.Unfetched) > 0 {
			p.put(0, 2, txt(fmt.Sprintf("%s: not fetched, and not compared: %s", name, strings.Join(b.Unfetched, ", "))))
		}
		if len(b.Uncommitted) > 0 {
			p.put(0, 2, txt(name+": not committed, and not compared: "+strings.Join(b.Uncommitted, "; ")))
		}
		for _, next := range b.Next {
			p.put(4, 6, txt(next))
		}
	}
	p.put(0, 2, txt(plural(d.Pairs, "pair")+" of branches compared, "+plural(len(d.Collisions), "collision")))
	p.flush()
}
