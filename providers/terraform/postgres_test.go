package terraform

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vmctl/spec"
)

// Errors of Terraform 1.11 about locks.
const (
	pgLocked = "╷\n│ Error: Error acquiring the state lock\n│ \n│ Error message: Workspace is already locked: vmctl--a\n│ Lock Info:\n│   ID:        0aa2\n│   Path:      \n" +
		"│   Operation: OperationTypePlan\n│   Who:       me@here\n│   Version:   1.11.4\n│   Created:   2026-11-28 08:58:55\n│   Info:      \n"
	pgCreatingPlan = "Error: Error acquiring the state lock\n\nError message: Cannot lock workspace; already locked for workspace\n│ creation: vmctl--a\nLock Info:\n  ID:        9ab3\n  Path:      \n"
	pgCreatingInit = "Error: error loading state: failed to lock state in Postgres: Already locked for workspace creation: pa5\nLock Info:\n  ID:        5ba6\n  Path:      \n"
	s3Locked       = "Error: Error acquiring the state lock\n\nError message: operation error S3: PutObject, https response error StatusCode: 412\nLock Info:\n  ID:        0a1b\n  Path:      x\n" +
		"  Operation: OperationTypeApply\n  Who:       someone@here\n  Version:   1.11.4\n  Created:   2026-01-02 03:04:05\n  Info:      \n"
)

func TestParseLock(t *testing.T) {
	nobody := "another session of its PostgreSQL server, which alone knows whose"
	for text, want := range map[string]string{
		pgLocked: nobody, pgCreatingPlan: nobody, pgCreatingInit: nobody,
		s3Locked:                              "someone@here, since 2026-01-02 03:04:05, for Apply, lock ID 0a1b",
		"Error: something else":               "",
		lockText + ": no details":             "",
		"the job says: " + pgLockedText + "x": "",
	} {
		got := ""
		if l := parseLock(text); l != nil {
			got = l.String()
		}
		if got != want {
			t.Errorf("%s\nis held by %q, want %q", text, got, want)
		}
	}
}

// The advice about a lock of PostgreSQL never breaks it: its server frees it.
func TestUnlocking(t *testing.T) {
	p := &Provider{binary: "terraform", module: "/m"}
	for backend, want := range map[string]struct{ text, says, not string }{
		"pg": {pgLocked, "psql asks for the password", "force-unlock"}, " pg": {pgLocked, "PGUSER=USER psql -c 'SELECT", "PG_CONN_STR"}, "s3": {s3Locked, "force-unlock 0a1b", "psql"}, "": {s3Locked, "as soon as that has ended", "force-unlock"},
	} {
		all := ""
		for _, next := range p.unlocking(spec.TerraformModule{Backend: backend}, "w", parseLock(want.text)) {
			all += next.Text + "\n"
		}
		if !strings.Contains(all, want.says) || strings.Contains(all, want.not) {
			t.Errorf("%q: the advice is\n%s", backend, all)
		}
	}
}

// A command is repeated while another process makes a workspace, for a limited time, and after no other error.
func TestUnlessCreating(t *testing.T) {
	for _, test := range []struct {
		name   string
		errors []string // of the attempts; the last one stays
		calls  int      // 0: many
		took   time.Duration
	}{
		{"at once", []string{""}, 1, 0},
		{"after two others", []string{pgCreatingInit, pgCreatingPlan, ""}, 3, 2 * creationEvery},
		{"locked", []string{pgLocked}, 1, 0},
		{"of another kind", []string{"exit status 1"}, 1, 0},
		{"for ever", []string{pgCreatingInit}, 0, creationLimit},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, calls := time.Now(), 0
			err := unlessCreating(t.Context(), func() error {
				text := test.errors[min(calls, len(test.errors)-1)]
				if calls++; text == "" {
					return nil
				}
				return errors.New(text)
			})
			last := test.errors[len(test.errors)-1]
			if (err == nil) != (last == "") || test.calls != 0 && calls != test.calls || time.Since(began) != test.took {
				t.Errorf("%s: %d attempts in %s: %v", test.name, calls, time.Since(began), err)
			}
		})
	}
}
