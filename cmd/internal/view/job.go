package view

import "time"

// JobRow is one job in a list.
type JobRow struct {
	ID, Status string
	Created    time.Time
	Command    string
}

// JobDetails is one job as job status shows it.
type JobDetails struct {
	JobRow
	Dir      string
	Mode     string   // "": none
	Reason   string   // "": the status says all
	Exit     string   // "": it is not known
	Changes  []string // what it changed in its copy, a line each
	Warnings []string
	Next     []string // commands that show more, or go on
}

// Jobs lists jobs.
func Jobs(s Screen, all []JobRow) {
	p := &page{screen: s}
	if len(all) == 0 {
		p.put(0, 2, txt("There are no jobs."))
	}
	id, status := len("JOB"), len("STATUS")
	for _, j := range all {
		id, status = max(id, Width(j.ID)), max(status, Width(j.Status))
	}
	if len(all) > 0 && !p.narrow() {
		p.put(0, 2, padded(in(dim, "JOB"), id+1), txt(" "), padded(in(dim, "STATUS"), status+1), txt(" "), in(dim, "COMMAND"))
	}
	for _, j := range all {
		if p.narrow() {
			p.put(0, 2, whole(in(bold, j.ID)), txt("  "+j.Status))
			p.put(2, 4, txt(j.Command))
			continue
		}
		p.put(0, 2, padded(txt(j.ID), id+1), txt(" "), padded(in(jobStyle(j.Status), j.Status), status+1), txt(" "+j.Command))
	}
	p.flush()
}

// Job shows one job.
func Job(s Screen, d JobDetails) {
	p := &page{screen: s}
	p.put(0, 2, in(bold, d.ID), txt("  "), in(jobStyle(d.Status), d.Status))
	for _, row := range [][2]string{
		{"command", d.Command}, {"folder", d.Dir}, {"mode", d.Mode}, {"since", d.Created.UTC().Format(time.RFC3339)}, {"reason", d.Reason}, {"exit status", d.Exit},
	} {
		if row[1] != "" {
			p.put(2, 4, padded(in(dim, row[0]), len("exit status")+1), txt(" "+row[1]))
		}
	}
	for _, change := range d.Changes {
		p.put(2, 4, padded(in(dim, "changed"), len("exit status")+1), txt(" "+change))
	}
	for _, w := range d.Warnings {
		p.put(2, 4, in(yellow, "warning"), txt(": "+w))
	}
	for _, command := range d.Next {
		p.put(2, 4, padded(in(dim, "next"), len("exit status")+1), txt(" "), whole(in(bold, command)))
	}
	p.flush()
}

func jobStyle(status string) style {
	switch status {
	case "completed":
		return green
	case "failed":
		return red
	default:
		return yellow
	}
}
