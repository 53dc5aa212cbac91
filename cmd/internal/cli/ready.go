package cli

import (
	"context"
	"errors"
	"time"

	"vmctl/cmd/internal/view"
	"vmctl/internal/sshx"
)

// probeBanner and probeHandshake bound the time that status waits for an SSH server: until
// its first words, and until the login.
const (
	probeBanner    = 2 * time.Second
	probeHandshake = 5 * time.Second
)

// sshReady asks a running VM whether SSH lets the user in. It changes nothing: an unknown
// host key stays unknown.
func (a *app) sshReady(ctx context.Context, v observedAddress, status view.ResourceStatus) view.Condition {
	c := view.Condition{Name: "ssh.ready", Status: "not_applicable"}
	if status.State == "unknown" {
		c.Status, c.Reason = "unknown", "its run state is unknown"
	}
	if status.State != "running" {
		return c
	}
	target, err := a.target(v)
	if err != nil {
		c.Status, c.Reason = "false", err.Error()
		return c
	}
	target.AcceptNew, target.Banner, target.Handshake = false, probeBanner, probeHandshake
	var key *sshx.HostKeyError
	switch err := sshx.Probe(ctx, target); {
	case err == nil:
		c.Status = "true"
	case errors.As(err, &key) && len(key.Known) == 0:
		c.Status, c.Reason = "unknown", "its host key was not accepted yet"
	default:
		c.Status, c.Reason = "false", err.Error()
	}
	return c
}
