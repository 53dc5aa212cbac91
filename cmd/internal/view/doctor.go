package view

import "strings"

// Check is one thing that doctor looked at.
type Check struct {
	Name     string   `json:"name"`   // "qemu-system-x86_64"
	Status   string   `json:"status"` // ok | missing | warning
	Detail   string   `json:"detail"` // what was seen
	NeededBy []string `json:"needed_by"`
	Next     []string `json:"next"`
}

// DoctorDocument is `doctor` as JSON.
type DoctorDocument struct {
	FormatVersion string  `json:"format_version"`
	OK            bool    `json:"ok"` // nothing that the spec needs is missing
	Checks        []Check `json:"checks"`
}

// Doctor shows checks. It adds who needs a missing thing, and how to get it.
func Doctor(s Screen, d DoctorDocument) {
	p := &page{screen: s}
	for _, c := range d.Checks {
		p.check(c)
	}
	p.blank()
	if d.OK {
		p.put(0, 2, in(green, "Nothing that is needed is missing."))
	} else {
		p.put(0, 2, in(red, "Something that is needed is missing."))
	}
	p.flush()
}

func (p *page) check(c Check) {
	style := yellow
	switch c.Status {
	case "ok":
		style = green
	case "missing":
		style = red
	}
	detail := ""
	if c.Detail != "" {
		detail = ": " + c.Detail
	}
	p.put(0, 4, padded(in(style, c.Status), len("warning")+1), txt(" "), in(bold, c.Name), txt(detail))
	if c.Status == "ok" {
		return
	}
	if len(c.NeededBy) > 0 {
		p.put(4, 6, in(dim, "needed by:"), txt(" "+strings.Join(c.NeededBy, ", ")))
	}
	for _, line := range c.Next {
		p.put(4, 6, in(bold, "next:"), txt(" "+line))
	}
}
