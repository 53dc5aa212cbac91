package view

import (
	"fmt"
	"time"

	"vmctl/state"
)

// LocksDocument is `lock list` as JSON.
type LocksDocument struct {
	FormatVersion string      `json:"format_version"`
	Dir           string      `json:"dir"` // the data directory
	Locks         []LockEntry `json:"locks"`
}

// LockEntry is one lock.
type LockEntry struct {
	Name    string         `json:"name"` // its path in the data directory
	Path    string         `json:"path"`
	State   string         `json:"state"`   // held | shared | free
	Holders []state.Holder `json:"holders"` // a pid of 0: the holder is unknown
	Left    []state.Holder `json:"left"`    // dead ones that left their record
}

// Locks lists locks with their holders.
func Locks(s Screen, d LocksDocument, release string) {
	p := &page{screen: s}
	name := len("LOCK")
	for _, l := range d.Locks {
		name = max(name, Width(l.Name))
	}
	hang := name + len("shared") + 4
	if !p.narrow() {
		p.put(0, hang, padded(in(dim, "LOCK"), name+1), txt(" "), padded(in(dim, "STATE"), len("shared")+1), txt(" "), in(dim, "HOLDER"))
	}
	for _, l := range d.Locks {
		p.lock(l, name, hang)
	}
	for _, l := range d.Locks {
		if len(l.Left) > 0 {
			p.command("To remove what a dead holder left:", release+" "+l.Name)
		}
	}
	p.flush()
}

func (p *page) lock(l LockEntry, name, hang int) {
	look := green
	if l.State != "free" {
		look = yellow
	}
	lines := make([]string, 0, len(l.Holders)+len(l.Left))
	for _, h := range l.Holders {
		lines = append(lines, LockHolder(h))
	}
	for _, h := range l.Left {
		lines = append(lines, "dead, and left its record: "+LockHolder(h))
	}
	if p.narrow() {
		p.put(0, 2, whole(in(bold, l.Name)), txt("  "), in(look, l.State))
		for _, line := range lines {
			p.put(2, 4, txt(line))
		}
		return
	}
	first := "-"
	if len(lines) > 0 {
		first, lines = lines[0], lines[1:]
	}
	p.put(0, hang, padded(txt(l.Name), name+1), txt(" "), padded(in(look, l.State), len("shared")+1), txt(" "+first))
	for _, line := range lines {
		p.put(hang, hang, txt(line))
	}
}

// LockHolder describes the holder of a lock, and since when it has held it.
func LockHolder(h state.Holder) string {
	if h.PID == 0 {
		return "a process whose record cannot be read"
	}
	return fmt.Sprintf("%s (process %d on %s, since %s)", h.Command, h.PID, h.Host, h.Since.UTC().Format(time.RFC3339))
}

// LockReleaseDocument is `lock release` as JSON.
type LockReleaseDocument struct {
	FormatVersion string         `json:"format_version"`
	Name          string         `json:"name"`
	Path          string         `json:"path"`
	Removed       []state.Holder `json:"removed"` // dead holders whose records were removed
}

// LockRelease lists the records that were removed.
func LockRelease(s Screen, d LockReleaseDocument) {
	p := &page{screen: s}
	if len(d.Removed) == 0 {
		p.put(0, 2, txt("The lock "+d.Name+" is free, and nobody left a record. Nothing was changed."))
	}
	for _, h := range d.Removed {
		p.put(0, 2, in(bold, "Released:"), txt(fmt.Sprintf(" the lock %s is free; its holder is dead, and its record was removed: %s.", d.Name, LockHolder(h))))
	}
	p.flush()
}
