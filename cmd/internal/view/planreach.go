package view

import (
	"strings"

	"vmctl/planner"
	"vmctl/spec"
)

// ReachEntry is one thing beyond a resource that it newly reaches, as JSON.
type ReachEntry struct {
	Address string `json:"address"`
	What    string `json:"what"`         // port, folder, variable, command or server
	On      string `json:"on,omitempty"` // the VM whose port it is; "": it is this host's
	Text    string `json:"text"`
}

// Reached returns what a plan newly reaches, as JSON has it.
func Reached(all []planner.Reach) []ReachEntry {
	entries := []ReachEntry{}
	for _, r := range all {
		entries = append(entries, ReachEntry{Address: r.Address.String(), What: string(r.What), On: r.On.String(), Text: r.Text})
	}
	return entries
}

// String returns what an entry reaches: "port of vm.dev: container 80, host 8080".
func (r ReachEntry) String() string {
	place := " of this host: "
	switch {
	case r.On != "":
		place = " of " + r.On + ": "
	case r.What == string(spec.ReachCommand):
		place = " on this host: "
	case r.What == string(spec.ReachServer):
		place = ": "
	}
	return r.What + place + r.Text
}

// reach shows what resources reach with the plan and did not before, with the digest to which an approval can be bound.
func (p *page) reach(all []planner.Reach) {
	if len(all) == 0 {
		return
	}
	p.heading("Reaches, and did not before (--reach=" + planner.ReachDigest(all) + ")")
	for _, r := range Reached(all) {
		p.put(2, 6, in(yellow, "+ "), in(bold, r.Address), txt(" "+Text(r.String())))
	}
}

func markdownReach(d PlanDocument) string {
	if len(d.Reach) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n**Reaches**, and did not before (`apply --reach=" + d.ReachDigest + "`):\n\n")
	for _, r := range d.Reach {
		b.WriteString("- " + code(r.Address) + " " + cell(Text(r.String())) + "\n")
	}
	return b.String()
}
