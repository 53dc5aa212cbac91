package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"vmctl/providers"
	"vmctl/providers/guard"
)

// ConnectError explains why libvirt does not answer, with commands to type.
type ConnectError struct {
	URI  string
	Seen string
	Next []string
	Err  error
}

// Error names the attempt, the observations and the remedy.
func (e *ConnectError) Error() string {
	s := fmt.Sprintf("connect to %s: %s", e.URI, e.Seen)
	if len(e.Next) > 0 {
		s += "; " + strings.Join(e.Next, "; or ")
	}
	return s
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// noConnection explains a failed attempt to connect.
func (p *Provider) noConnection(err error) error {
	e := &ConnectError{URI: p.location.URI, Err: err, Seen: err.Error()}
	if errors.Is(err, errNotBuiltIn) {
		return e
	}
	for _, row := range connectErrors {
		if strings.Contains(err.Error(), row.says) && row.holds(p.location) {
			e.Seen = row.means + " (" + err.Error() + ")"
			for _, next := range row.next {
				e.Next = append(e.Next, strings.ReplaceAll(next, uriWord, p.location.URI))
			}
			return e
		}
	}
	if late := (*lateError)(nil); errors.As(err, &late) {
		e.Seen = fmt.Sprintf("no answer within %s", p.patience)
		e.Next = []string{"see whether the daemon hangs: virsh -c " + p.location.URI + " list"}
	}
	return e
}

// fail returns a failure of a system that answers.
func fail(err error, format string, args ...any) *providers.Problem {
	f := &providers.Problem{Outcome: providers.Failed, Code: "libvirt"}
	doing := fmt.Sprintf(format, args...)
	var connect *ConnectError
	var late *lateError
	switch {
	case errors.As(err, &connect):
		f.Code, f.Next = "no_connection", providers.Say(connect.Next...)
		err = errors.New(connect.Seen)
	case errors.As(err, &late), errors.Is(err, context.DeadlineExceeded):
		f.Outcome, f.Code = providers.Timeout, "no_answer"
	case errors.Is(err, errAbsent):
		f.Code = "absent"
	case brokenOff(err):
		f.Code, f.Next = "no_connection", slices.Concat(
			providers.Say("the daemon ended meanwhile; see what it says: journalctl -u libvirtd"), providers.SayVmctl("then: ", "apply"))
	case strings.Contains(err.Error(), "No space left on device"):
		f.Code = "disk_full"
	case strings.Contains(err.Error(), "Permission denied"):
		f.Code = "no_permission"
	case strings.Contains(err.Error(), "virtlogd"):
		f.Code = "no_virtlogd"
		f.Next = providers.Say(
			"libvirt keeps logs through virtlogd: start it: sudo systemctl start virtlogd",
			"or where no service manager runs: sudo virtlogd -d",
			"or install it: sudo apt-get install libvirt-daemon",
		)
	}
	f.Err = fmt.Errorf("%s: %w", doing, err)
	return f
}

// brokenOff reports whether the daemon ended during a call.
func brokenOff(err error) bool {
	return slices.ContainsFunc([]string{"Broken pipe", "Connection reset by peer", "End of file while reading data", "client socket is closed"},
		func(says string) bool { return strings.Contains(err.Error(), says) })
}

// asFailure returns the failure in err, or a new failure with err as its cause.
func asFailure(err error, doing string) *providers.Problem { return guard.AsFailure(err, fail, doing) }
