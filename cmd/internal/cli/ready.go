package cli

import (
	"context"
	"errors"
	"time"

	"vmctl/condition"
	"vmctl/internal/sshx"
	"vmctl/providers"
)

// probeBanner and probeHandshake bound the time that status waits for an SSH server: until
// its first words, and until the login.
const (
	probeBanner    = 2 * time.Second
	probeHandshake = 5 * time.Second
)

// sshReady asks a running VM whether SSH lets the user in, and returns that with the generation for which its record
// has the condition. It changes nothing: an unknown host key stays unknown. The condition of a VM that is off is as
// it was recorded.
func (a *app) sshReady(ctx context.Context, v observedAddress, state string, recorded condition.Condition) condition.Condition {
	now := recorded
	switch state {
	case "running":
	case "unknown":
		now.Report = condition.Report{Type: recorded.Type, Status: condition.Unknown, Reason: "Unread", Message: "its run state is unknown"}
		return now
	default:
		if recorded.Status == condition.True || recorded.Generation == 0 {
			now.Report = condition.Report{Type: recorded.Type, Status: condition.NotApplicable, Reason: condition.Stopped}
			now.Since = time.Time{}
		}
		return now
	}
	if _, ok := providers.Ability[providers.Reacher](v.system.Provider); !ok && v.object != nil { // its provider alone knows
		return now
	}
	now.Report = a.probed(ctx, v)
	if now.Status != recorded.Status {
		now.Since = time.Time{} // nobody saw when
	}
	if now.Status != condition.True || recorded.Generation == 0 { // else it is not known whether it was since the last change
		now.Generation = max(now.Generation, v.generation())
	}
	return now
}

// probed asks a running VM whether SSH lets the user in.
func (a *app) probed(ctx context.Context, v observedAddress) condition.Report {
	r := condition.Report{Type: condition.SSHReady, Status: condition.False, Reason: "NoAnswer"}
	target, err := a.target(v)
	if err != nil {
		r.Reason, r.Message = "NoLogin", err.Error()
		return r
	}
	target.AcceptNew, target.Banner, target.Handshake = false, probeBanner, probeHandshake
	var key *sshx.HostKeyError
	switch err := sshx.Probe(ctx, target); {
	case err == nil:
		r.Status, r.Reason = condition.True, condition.Ready
	case errors.As(err, &key) && len(key.Known) == 0:
		r.Status, r.Reason, r.Message = condition.Unknown, "UnknownHostKey", "its host key was not accepted yet"
	default:
		r.Message = err.Error()
	}
	return r
}
