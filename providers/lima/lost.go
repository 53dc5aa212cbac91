package lima

import (
	"fmt"
	"slices"

	"vmctl/providers"
	"vmctl/spec"
)

// rootAttr is the attribute of a finding that the root disk is gone.
const rootAttr = "root_disk"

// lostRoot returns the path of the root disk of an instance if it was there once and is gone: it was moved, or it is a
// link to a drive that is not plugged in. "": it is there, or it is still to be made.
func (p *Provider) lostRoot(s *instance) string {
	if s.doc == nil || s.root > 0 || s.wsl != nil || otherDriver(s.doc) != "" {
		return ""
	}
	for _, file := range []string{rootName, oldRoot} {
		if _, _, err := diskSize(p.path(s.name, file)); err == nil { // an empty file
			return ""
		}
		if exists(p.path(s.name, file)) { // the link is there
			return p.path(s.name, file)
		}
	}
	traces := []string{runName, agentLog, agentLog + ".1", driverPid}
	if hasRun := func(file string) bool { return exists(p.path(s.name, file)) }; s.mark != nil && s.mark.HadRoot || slices.ContainsFunc(traces, hasRun) {
		return p.path(s.name, rootName)
	}
	return ""
}

// rootIsGone returns the failure of a step on an instance that has lost its root disk.
func (j *job) rootIsGone() error {
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "no_disk", Seen: []string{j.seen.lost + " is gone"}, Next: rootAdvice(j.Address),
		Err: fmt.Errorf("%s %s: its root disk is gone", j.Op, j.Address),
	}
}

// rootAdvice returns the ways out for an instance that has lost its root disk.
func rootAdvice(a spec.Address) []providers.Advice {
	return slices.Concat(
		providers.Say("put the disk back, or plug its drive in"),
		providers.SayVmctl("or give up what was on it: ", "apply", "--replace="+a.String()),
	)
}

// findingOf returns the finding on an attribute of an object; nil: there is none.
func findingOf(o *providers.Object, attr string) *providers.Finding {
	if o == nil {
		return nil
	}
	if i := slices.IndexFunc(o.Findings, func(f providers.Finding) bool { return f.Attr == attr }); i >= 0 {
		return &o.Findings[i]
	}
	return nil
}
