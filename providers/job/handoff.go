package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"vmctl/internal/atomicfile"
)

// Handoff holds the input of a worker that no record has.
type Handoff struct {
	Prompt  []byte   // what its command reads from standard input, possibly nothing
	Environ []string // the variables of a job in a VM, NAME=value; nil: its worker has them
}

// HandOff keeps the input of the worker of a new job until it takes that. If that fails, the job ends as not launched, and
// the record returned has revision 0.
func (s Store) HandOff(ctx context.Context, r Record, h Handoff, now time.Time) (Record, error) {
	err := s.WritePrompt(r.ID, h.Prompt)
	if err == nil && h.Environ != nil {
		err = s.WriteEnviron(r.ID, h.Environ)
	}
	if now, unread := s.Read(r.ID); unread == nil && now.Status.IsTerminal() { // it ended before there was anything to remove
		for _, stays := range s.dropHandoff(r.ID) {
			err = errors.Join(err, errors.New(stays))
		}
	}
	if err != nil {
		return s.notLaunched(ctx, r, fmt.Errorf("write the prompt and the environment of job %s: %w", r.ID, err), now)
	}
	return r, nil
}

// notLaunched ends the record of a job of which no worker was started, and returns it with revision 0: it is sure not to
// run. If that cannot be written, its launcher is in the record, and no worker can take it once that is gone.
func (s Store) notLaunched(ctx context.Context, r Record, cause error, now time.Time) (Record, error) {
	ended, failed := s.Update(context.WithoutCancel(ctx), r.ID, func(r *Record) error { return Abandon(r, NotLaunched, cause.Error(), now) })
	if failed == nil {
		r = ended
	}
	r.Revision = 0
	return r, errors.Join(cause, failed)
}

// dropHandoff removes the input of a worker that nobody takes any more, before the record of its job ends. The warnings name
// what stays.
func (s Store) dropHandoff(id ID) (warnings []string) {
	for _, name := range []string{promptFile, environFile} {
		path := s.Path(id, name)
		if err := errors.Join(absent(os.Remove(path)), atomicfile.Clean(path)); err != nil {
			warnings = append(warnings, err.Error())
		}
	}
	return warnings
}

// WriteEnviron keeps the variables of a job in a VM (NAME=value) until its worker has taken them.
func (s Store) WriteEnviron(id ID, environ []string) error {
	data, err := json.Marshal(environ)
	if err != nil {
		return err
	}
	return atomicfile.Write(s.Path(id, environFile), data, 0o600)
}

// TakeEnviron returns the variables of WriteEnviron, and removes their file.
func (s Store) TakeEnviron(id ID) (environ []string, err error) {
	data, err := os.ReadFile(s.Path(id, environFile))
	if err != nil {
		return nil, fmt.Errorf("read the environment of job %s: %w", id, err)
	}
	return environ, errors.Join(json.Unmarshal(data, &environ), os.Remove(s.Path(id, environFile)))
}

// WritePrompt gives a job what its command reads from standard input, possibly nothing.
func (s Store) WritePrompt(id ID, text []byte) error {
	return atomicfile.Write(s.Path(id, promptFile), text, 0o600)
}
