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

// noConnection explains a failed attempt to connect, with commands to type.
func (p *Provider) noConnection(err error) *providers.Problem {
	none := &providers.Problem{Outcome: providers.Failed, Code: "no_connection"}
	why := err
	if row, known := p.knownRefusal(err); known {
		why = fmt.Errorf("%s (%w)", row.means, err)
		for _, next := range row.next {
			none.Next = append(none.Next, providers.Say(strings.ReplaceAll(next, uriWord, p.location.URI))...)
		}
	} else if late := (*lateError)(nil); errors.As(err, &late) {
		why = fmt.Errorf("no answer within %s", p.patience)
		none.Next = providers.Say("see whether the daemon hangs: virsh -c " + p.location.URI + " list")
	}
	none.Err = fmt.Errorf("connect to %s: %w", p.location.URI, why)
	return none
}

// knownRefusal returns the row that explains why libvirt refused a connection.
func (p *Provider) knownRefusal(err error) (connectErrorRow, bool) {
	i := slices.IndexFunc(connectErrors, func(row connectErrorRow) bool {
		return strings.Contains(err.Error(), row.says) && row.holds(p.location)
	})
	if i < 0 || errors.Is(err, errNotBuiltIn) {
		return connectErrorRow{}, false
	}
	return connectErrors[i], true
}

// fail returns a failure of a system that answers.
func fail(err error, format string, args ...any) *providers.Problem {
	f := &providers.Problem{Outcome: providers.Failed, Code: "libvirt"}
	doing := fmt.Sprintf(format, args...)
	var connect *providers.Problem
	var late *lateError
	switch {
	case errors.As(err, &connect):
		f.Outcome, f.Code, f.Next = connect.Outcome, connect.Code, connect.Next
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
