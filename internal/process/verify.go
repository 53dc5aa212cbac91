package process

import (
	"errors"
	"fmt"
)

// Verify returns a Verdict on the recorded process, and the reason in words for people.
//
// A process is recognised by its machine, boot, pid and start time, and by its
// program. The same process with another program has replaced itself: that is
// Unknown, because it is neither gone nor what was recorded. A new name (Argv0)
// alone is still a Match, since programs rename themselves while they run.
func (h Host) Verify(id Identity) (Verdict, string) {
	here, err := h.sys().HostIdentity()
	if err != nil {
		return Unknown, err.Error()
	}
	if verdict, reason := here.locate(id); verdict != Match {
		return verdict, reason
	}
	return h.compare(id)
}

// locate returns Match if id can be looked for here, else the Verdict and its reason.
func (p hostIdentity) locate(id Identity) (Verdict, string) {
	switch {
	case id.PID <= 1:
		return Unknown, fmt.Sprintf("pid invalid: %d is not a process of ours", id.PID)
	case id.StartTime == 0:
		return Unknown, "the record is incomplete: it has no start time"
	case id.BootID == "":
		return Unknown, "the record is incomplete: it has no boot ID"
	case id.Host != p.Host:
		return Unknown, fmt.Sprintf("recorded on host %q, this is %q: look there", id.Host, p.Host)
	case id.Machine != p.Machine:
		return Unknown, fmt.Sprintf("recorded on another machine with the name %q: look there", id.Host)
	case id.BootID != p.Boot:
		return Gone, "recorded before this machine was started last"
	case id.Namespace != p.Namespace:
		return Unknown, fmt.Sprintf("recorded in another process namespace (%s, this is %s), as of a container: look there",
			id.Namespace, p.Namespace)
	}
	return Match, ""
}

func (h Host) compare(id Identity) (Verdict, string) {
	s, err := h.sys().Look(id.PID)
	switch {
	case errors.Is(err, errNone):
		return Gone, fmt.Sprintf("no process has pid %d", id.PID)
	case err != nil:
		return Unknown, fmt.Sprintf("pid %d cannot be read: %v", id.PID, err)
	case s.Start != id.StartTime:
		return Reused, fmt.Sprintf("pid %d belongs to another process now (%s, start time %d, recorded was %d)",
			id.PID, name(s), s.Start, id.StartTime)
	case s.Ended:
		return Gone, fmt.Sprintf("pid %d has ended, and its parent has not collected it", id.PID)
	case s.Ending:
		return Match, fmt.Sprintf("pid %d (%s) is ending", id.PID, id.Exe)
	case s.ExeErr != nil:
		return Unknown, fmt.Sprintf("the program of pid %d cannot be read: %v", id.PID, s.ExeErr)
	case id.Exe == "":
		return Unknown, fmt.Sprintf("pid %d is %s, but was recorded without its program", id.PID, name(s))
	case program(s.Exe) != program(id.Exe):
		return Unknown, fmt.Sprintf("pid %d runs %s now, recorded was %s", id.PID, name(s), id.Exe)
	}
	return Match, fmt.Sprintf("pid %d is %s, start time %d", id.PID, name(s), s.Start)
}

// name returns the name of the program of a process, for people.
func name(s processFacts) string {
	switch {
	case s.Exe != "":
		return program(s.Exe)
	case len(s.Argv) > 0:
		return valid(s.Argv[0])
	default:
		return "a program that cannot be read"
	}
}

// Ending returns those of the processes that have not ended yet. A process that is ending has no arguments any more, so that Find does
// not see it, and it still has its files and their locks.
func (h Host) Ending(all []Identity) []Identity {
	var ending []Identity
	for _, id := range all {
		if verdict, _ := h.Verify(id); verdict == Match {
			ending = append(ending, id)
		}
	}
	return ending
}
