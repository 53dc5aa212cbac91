package job

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/lockfile"
	"vmctl/internal/shellword"
	"vmctl/spec"
)

// BlockRun is a run of a job block: the block as it is now.
type BlockRun struct {
	Block       spec.Address
	Workspace   string // its address
	Agent       string
	Command     []string
	Prompt      string // it may be sensitive
	Timeout     time.Duration
	IdleTimeout time.Duration
	Grace       time.Duration
	Unforced    bool // as of a Record
	Window      time.Duration
	Mode        string
	Resumes     ID          // the job that it continues; "": none
	MaxParallel int         // of the jobs of the block with all keys; 0: any number
	Digest      string      // of its triggers and its command
	Key         string      // the name of the key of Digest
	Containment Containment // as of a Record
	Scope       Scope
	Env         cty.Value           // its env block, as that of a workspace; null: none
	Mask        func(string) string // replaces the secrets in what is kept; nil: there are none
}

// BlockRunOf reads a block. digest is made with the key of the data directory.
func BlockRunOf(a spec.Address, want, policy cty.Value, digest func(string) string) (BlockRun, error) {
	r := BlockRun{
		Block: a, Workspace: ctyread.Text(want, "workspace"), Agent: ctyread.Text(want, "agent"), Command: commandOf(want),
		Prompt: ctyread.Text(want, "prompt"), Timeout: ctyread.Seconds(policy, "timeout", 0), IdleTimeout: ctyread.Seconds(policy, "idle_timeout", 0),
		Grace: ctyread.Seconds(ctyread.Attr(policy, "stop"), "grace", 0), MaxParallel: int(ctyread.Uint(policy, "max_parallel")), //nolint:gosec // the spec bounds it,
	}
	r.Containment, r.Scope = Containment(ctyread.Text(want, "containment")), Scope(ctyread.Text(want, "scope"))
	r.Env, r.Resumes = ctyread.Attr(want, "env"), resumes(want)
	r.Mode, r.Window = ctyread.Text(policy, "mode"), ctyread.Seconds(ctyread.Attr(policy, "orphan"), "window", 0)
	force := ctyread.KnownAttr(ctyread.Attr(policy, "stop"), "force")
	r.Unforced = force != cty.NilVal && force.False()
	if !want.IsWhollyKnown() {
		return r, fmt.Errorf("run %s: a value of its block is not known yet", a)
	}
	var err error
	r.Digest, err = digestOf(want, digest)
	r.Key = keyName(digest)
	return r, err
}

// keyName returns a name of the key that a digest is made with, from which nobody can tell the key; "": there is none.
func keyName(digest func(string) string) string {
	if digest == nil {
		return ""
	}
	return digest("name of the key of the digests of jobs")
}

// digestOf returns a digest of what makes a job due again. A want that is not wholly known has none.
func digestOf(want cty.Value, digest func(string) string) (string, error) {
	if digest == nil || !ctyread.Known(want) || !want.IsWhollyKnown() {
		return "", nil
	}
	triggers := map[string]string{}
	if v := ctyread.Attr(want, "triggers"); ctyread.Known(v) {
		for name, value := range v.AsValueMap() {
			if !value.IsNull() {
				triggers[name] = value.AsString()
			}
		}
	}
	parts := []any{
		ctyread.Text(want, "workspace"), ctyread.Text(want, "agent"), commandOf(want), ctyread.Text(want, "prompt"), triggers,
		ctyread.Text(want, "containment"), ctyread.Text(want, "scope"),
	}
	if id := resumes(want); id != "" { // else it is as in the records of earlier versions
		parts = append(parts, id)
	}
	text, err := json.Marshal(parts)
	if err != nil {
		return "", err
	}
	return digest(string(text)), nil
}

// blockID returns the identity of what is left of the runs of a block.
func blockID(lineage string, a spec.Address) string {
	sum := sha256.Sum256([]byte(lineage + "\x00" + a.String()))
	return "job-" + hex.EncodeToString(sum[:8])
}

// Newest returns the record of the newest job of a block; false: it has none.
func (s Store) Newest(a spec.Address) (Record, bool, error) {
	all, _, err := s.List()
	r := newest(all, func(r Record) bool { return r.Block == a.String() })
	if r == nil {
		return Record{}, false, err
	}
	return *r, true, err
}

// newest returns the newest of the records of one block that have a property; nil: none has. They are in the order of List.
// The number of a run tells, and not the clock; records of old have none, and come first.
func newest(all []Record, has func(Record) bool) (found *Record) {
	for _, r := range all {
		if (found == nil || r.Run >= found.Run) && has(r) {
			found = &r
		}
	}
	return found
}

// ActiveError reports that a job of a block has not ended.
type ActiveError struct{ Active Record }

// Error names the job and the block.
func (e *ActiveError) Error() string {
	return fmt.Sprintf("job %s of %s is %s, and one job of a block runs at a time", e.Active.ID, e.Active.Block, e.Active.Status)
}

// UnknownJobError reports a record that cannot be read, of a job of a block that may run.
type UnknownJobError struct {
	Block  string
	Folder string // of the job
	Err    error
}

// Error names the block and the cause.
func (e *UnknownJobError) Error() string {
	return fmt.Sprintf("whether a job of %s runs is not known: %v", e.Block, e.Err)
}

// Unwrap returns the cause.
func (e *UnknownJobError) Unwrap() error { return e.Err }

// Next returns the command that takes the job out of the way, for one that is known not to run.
func (e *UnknownJobError) Next() string {
	away := filepath.Join(filepath.Dir(filepath.Dir(e.Folder)), filepath.Base(e.Folder)+".unreadable")
	return "if nothing of it runs, take it out of the way: mv " + shellword.Join([]string{e.Folder, away})
}

// mayBeOf reports whether a record that cannot be read may be in the way of a new job: of the same block, or of one that it
// takes turns with.
func mayBeOf(path string, r Record) bool {
	var of struct {
		Block *string `json:"block"`
	}
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &of) != nil || of.Block == nil {
		return true
	}
	return *of.Block == r.Block || r.MaxParallel > 0 && groupOf(*of.Block) == groupOf(r.Block)
}

// CreateOnly is Create for a run of a block, or for a job that continues another one. It fails with a *SessionInUseError while a job goes
// on with the session of that, with an *ActiveError while another job of the block has not ended, and with an *UnknownJobError if nobody
// can tell. It gives the job its number. A job that takes turns gets those that are ahead of it. If it fails, the job is sure not to run, and
// the record returned has revision 0.
func (s Store) CreateOnly(ctx context.Context, r Record, o Observer) (Record, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return r, err
	}
	lock, err := lockfile.Acquire(ctx, lockfile.Request{Path: filepath.Join(s.Dir, startLock), Owner: s.Owner, Wait: lockWait})
	if err != nil {
		return r, fmt.Errorf("write a job%s: %w", ofBlock(r), err)
	}
	r, err = s.createOnly(ctx, r, o)
	unlocked := absent(lock.Release())
	if err == nil && unlocked != nil {
		return s.notLaunched(ctx, r, fmt.Errorf("write a job%s: %w", ofBlock(r), unlocked), o.Now)
	}
	return r, errors.Join(err, unlocked)
}

// ofBlock names the block of a job behind a word; "": it is a run of none.
func ofBlock(r Record) string {
	if r.Block == "" {
		return ""
	}
	return " of " + r.Block
}

// startLock is held while it is decided whether another job of a block, or one with the same session, may begin.
const startLock = "start.lock"

// settled returns a record as it is once it has ended if nothing of the job lives: no worker can take it from then on.
func (s Store) settled(ctx context.Context, r Record, o Observer) (Record, error) {
	after, err := s.Reconcile(ctx, r, o)
	var (
		conflict *ConflictError
		none     *NotFoundError
	)
	if errors.As(err, &conflict) { // somebody has just written it
		after, err = s.Read(r.ID)
	}
	if errors.As(err, &none) { // an old one, removed meanwhile
		r.Status = Stale
		return r, nil
	}
	if err != nil {
		return r, err
	}
	return after, nil
}

func (s Store) createOnly(ctx context.Context, r Record, o Observer) (Record, error) {
	all, unread, err := s.List()
	if err != nil {
		return r, err
	}
	if err := s.isFree(ctx, all, r.Parent, o); err != nil {
		return r, err
	}
	if r.Block == "" {
		return s.Create(r)
	}
	for _, err := range unread {
		var unknown *UnreadableError
		if errors.As(err, &unknown) && mayBeOf(unknown.Path, r) {
			return r, &UnknownJobError{Block: r.Block, Folder: filepath.Dir(unknown.Path), Err: unknown}
		}
	}
	r.Run = 1
	if last := newest(all, func(other Record) bool { return other.Block == r.Block }); last != nil {
		r.Run = last.Run + 1
	}
	for _, other := range all {
		if groupOf(other.Block) != groupOf(r.Block) {
			continue
		}
		if other, err = s.settled(ctx, other, o); err != nil {
			return r, fmt.Errorf("end the record of job %s, of which nothing lives: %w", other.ID, err)
		}
		if other.Status.IsTerminal() {
			continue
		}
		if other.Block == r.Block {
			return r, &ActiveError{Active: other}
		}
		if r.MaxParallel > 0 {
			r.Behind = append(r.Behind, other.ID)
		}
	}
	return s.Create(r)
}
