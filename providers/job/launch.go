package job

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"vmctl/internal/process"
)

// Launch starts the worker of a job.
type Launch struct {
	Program string   // absolute
	Args    []string // of the worker
	Dir     string   // of the worker; "": the root
	Environ []string // of the worker; one on this host hands it on to the command
}

// handshakeWait limits the time that a worker takes to say that the job runs.
const handshakeWait = 30 * time.Second

// handshake is the line that a worker says.
type handshake struct {
	Error string `json:"error"`
}

// Tell says the line of the worker.
func Tell(to *os.File, err error) {
	h := handshake{}
	if err != nil {
		h.Error = err.Error()
	}
	_ = json.NewEncoder(to).Encode(h) //nolint:errcheck // whoever started the job may be gone: the record tells
}

// Start starts the worker of a queued job, and returns once the record says how that went. If the
// worker cannot be started, the job ends as not launched, and the record returned has revision 0.
func (s Store) Start(ctx context.Context, id ID, l Launch, now func() time.Time) (Record, error) {
	child, said, err := s.launch(id, l)
	if err != nil {
		return s.notLaunched(ctx, Record{ID: id}, fmt.Errorf("start job %s: %w", id, err), now())
	}
	defer said.Close() //nolint:errcheck // it is only read
	limit, cancel := context.WithTimeout(ctx, handshakeWait)
	defer cancel()
	stop := context.AfterFunc(limit, func() {
		_ = said.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // it ends the wait below
	})
	defer stop()
	var h handshake
	if err := json.NewDecoder(said).Decode(&h); err != nil {
		r, unread := s.readLaunched(id)
		return r, errors.Join(fmt.Errorf("start job %s: its worker (pid %d) has not said that it runs: %w", id, child.PID(), err), unread)
	}
	r, err := s.readLaunched(id)
	if err == nil && h.Error != "" {
		err = fmt.Errorf("start job %s: %s", id, h.Error)
	}
	return r, err
}

// readLaunched reads the record of a job whose worker was started. One that cannot be read has a revision all the same: the job
// may run.
func (s Store) readLaunched(id ID) (Record, error) {
	r, err := s.Read(id)
	if err != nil {
		r = Record{ID: id, Revision: 1}
	}
	return r, err
}

func (s Store) launch(id ID, l Launch) (*process.Child, *os.File, error) {
	log, err := os.OpenFile(s.Path(id, "worker.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer log.Close() //nolint:errcheck // the worker has its own
	said, tell, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer tell.Close() //nolint:errcheck // the worker has its own
	child, err := process.Host{}.Start(process.Command{
		Path: l.Program, Args: l.Args, Env: l.Environ, Dir: cmp.Or(l.Dir, string(os.PathSeparator)), Stdout: tell, Stderr: log,
	})
	if err != nil {
		return nil, nil, errors.Join(err, said.Close())
	}
	return child, said, nil
}
