package terraform

import (
	"context"
	"strings"
	"time"

	"vmctl/internal/clock"
	"vmctl/internal/shellword"
)

// The backend pg locks a workspace by an advisory lock of the server, and all of them by another one while it makes one. Its errors
// never tell the holder: the lock info in them is that of the process that failed. The server frees a lock when the session of its
// holder ends. Source: Terraform 1.11, internal/backend/remote-state/pg/client.go and backend_state.go.
const (
	pgLockedText   = "Workspace is already locked: "
	pgCreatingText = "locked for workspace creation: "
)

// isPGLock reports whether an error, without its frame, is about a lock of the backend pg that another process holds.
func isPGLock(text string) bool {
	return strings.Contains(text, pgLockedText) && strings.Contains(text, lockText) || isPGCreation(text)
}

// isPGCreation reports whether an error, without its frame, says that another process makes a workspace: nothing was begun.
func isPGCreation(text string) bool {
	return strings.Contains(text, pgCreatingText) && (strings.Contains(text, lockText) || strings.Contains(text, "failed to lock state in Postgres"))
}

// The time for which a command is repeated while other processes make workspaces, and the time between two attempts.
const (
	creationLimit = time.Minute
	creationEvery = 50 * time.Millisecond
)

// unlessCreating runs a command, again while another process makes a workspace of the backend pg: each takes some milliseconds, and
// Terraform waits for none.
func unlessCreating(ctx context.Context, command func() error) error {
	limit, cancel := context.WithTimeout(ctx, creationLimit)
	defer cancel()
	for {
		err := command()
		if err == nil || !isPGCreation(unframed(err.Error())) || !clock.Pause(limit, creationEvery) {
			return err
		}
	}
}

// pgHolders returns the command that lists the holders of locks on a server, for a user to type. No argument of it is the connection
// string: that has the password, and everybody on the machine can read the arguments of a process.
func pgHolders() string {
	return "PGHOST=HOST PGDATABASE=DATABASE PGUSER=USER " + shellword.Join([]string{
		"psql", "-c", "SELECT pid, usename, client_addr, application_name, backend_start FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory'",
	})
}

// pgAsks says how that command gets the password.
const pgAsks = "psql asks for the password, or reads it from ~/.pgpass: leave it out of the command"
