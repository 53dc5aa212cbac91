package view

import (
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// DisksDocument is `disk list` as JSON.
type DisksDocument struct {
	FormatVersion string      `json:"format_version"`
	Project       string      `json:"project"`
	ID            string      `json:"id"`
	Disks         []DiskEntry `json:"disks"`
}

// DiskEntry is one disk.
type DiskEntry struct {
	Address  string         `json:"address"`
	Provider string         `json:"provider"`
	Object   string         `json:"object"`
	ID       string         `json:"id"`
	Path     string         `json:"path"`
	State    string         `json:"state"`  // present | missing | unknown | orphan
	Reason   string         `json:"reason"` // why the state is not the usual one
	Size     *uint64        `json:"size"`   // bytes; the wanted size if the disk is missing; null: unknown
	Format   string         `json:"format"`
	UsedBy   []string       `json:"used_by"` // machines defined with it: addresses, and names of machines that are not vmctl's
	Lock     DiskLock       `json:"lock"`
	Findings []FindingEntry `json:"findings"`
	Next     []string       `json:"next,omitempty"` // what to type or do about the state
}

// DiskLock describes the lock of a disk, and its holders.
type DiskLock struct {
	State   string   `json:"state"` // free | held | stale | unknown
	Holders []string `json:"holders"`
}

// Disks lists disks, and the findings about them.
func Disks(s Screen, d DisksDocument) {
	p := &page{screen: s}
	if len(d.Disks) == 0 {
		p.put(0, 2, txt("No disk is wanted and none is recorded."))
		p.flush()
		return
	}
	if p.narrow() {
		for _, disk := range d.Disks {
			p.diskLines(disk)
		}
	} else {
		p.diskTable(d.Disks)
	}
	var found []FindingEntry
	var next []string
	for _, disk := range d.Disks {
		found, next = append(found, disk.Findings...), append(next, disk.Next...)
	}
	p.seenNext(nil, distinct(next), 0)
	p.findings(found)
	p.flush()
}

// cells returns the cells of a disk's row, in the order of the columns; its users come after
// them.
func (d DiskEntry) cells() []span {
	lock := in(lockStyle(d.Lock.State), d.Lock.State)
	if d.State == "missing" || d.State == "unknown" {
		lock = in(stateStyle(d.State), d.State)
	}
	return []span{txt(d.Address), txt(dash(d.Object)), txt(d.sizeText()), txt(dash(d.Format)), lock}
}

func (d DiskEntry) sizeText() string {
	if d.Size == nil {
		return "-"
	}
	return spec.FormatValue(spec.Disk, "size", cty.NumberUIntVal(*d.Size))
}

// about returns a remark about a disk beside its cells: the reason of its state, or its
// lock's holders.
func (d DiskEntry) about() string {
	holders := strings.Join(d.Lock.Holders, "; ")
	switch {
	case d.Reason != "":
		return d.Reason
	case d.Lock.State == "held" && holders != "":
		return "held by " + holders
	default:
		return ""
	}
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func lockStyle(state string) style {
	if state == "free" {
		return green
	}
	return yellow
}

func (p *page) diskTable(all []DiskEntry) {
	titles := []string{"DISK", "OBJECT", "SIZE", "FORMAT", "LOCK"}
	widths := make([]int, len(titles))
	hang := 0
	for i, title := range titles {
		widths[i] = len(title)
		for _, d := range all {
			widths[i] = max(widths[i], Width(d.cells()[i].text))
		}
		hang += widths[i] + 2
	}
	line := func(cells []span, last span) {
		var spans []span
		for i, cell := range cells {
			spans = append(spans, padded(cell, widths[i]+1), txt(" "))
		}
		p.put(0, hang, append(spans, last)...)
	}
	var heads []span
	for _, title := range titles {
		heads = append(heads, in(dim, title))
	}
	line(heads, whole(in(dim, "USED BY")))
	for _, d := range all {
		line(d.cells(), txt(dash(strings.Join(d.UsedBy, ", "))))
		if about := d.about(); about != "" {
			p.put(4, 6, txt(about))
		}
	}
}

func (p *page) diskLines(d DiskEntry) {
	cells := d.cells()
	p.put(0, 2, whole(in(bold, d.Address)), txt("  "), cells[4])
	p.put(2, 4, whole(cells[1]), txt("  "), whole(cells[2]), txt("  "), cells[3])
	if len(d.UsedBy) > 0 {
		p.put(2, 4, in(dim, "used by"), txt(" "+strings.Join(d.UsedBy, ", ")))
	}
	if about := d.about(); about != "" {
		p.put(2, 4, txt(about))
	}
}
