package sim

import (
	"context"
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
)

// Do carries out one step.
func (g *guest) Do(ctx context.Context, w providers.Work, log providers.Log) (providers.Result, error) {
	return guard.Run(ctx, g, w, log)
}

// Begin prepares a step on a file in the guest.
func (g *guest) Begin(ctx context.Context, w providers.Work, log providers.Log) (guard.Task, func() error, error) {
	t := &task{Provider: g.Provider, Work: w, log: log}
	return t.begun(ctx, &guestJob{task: t, guest: g})
}

// guestJob is a step on a file in a guest.
type guestJob struct {
	*task
	guest *guest
	seen  *guestFile
}

// Verb returns the operation of the step.
func (j *guestJob) Verb() (guard.Verb, error) {
	switch j.Op {
	case opWrite:
		return guard.Verb{Need: guard.Expected, Done: guard.If(j.isWanted, "it is as wanted"), Act: j.write}, nil
	case opRemove:
		return guard.Verb{Need: guard.Removing, Act: j.remove}, nil
	case opUnmark:
		return guard.Verb{Done: guard.If(j.isUnmarked, "it bears no mark"), Act: j.letGo}, nil
	case opFlush:
		return guard.Verb{Done: flush}, nil
	default:
		panic("unknown operation " + j.Op)
	}
}

// Look finds the file that the step is about.
func (j *guestJob) Look(ctx context.Context) (*guard.Seen, error) {
	err := j.observe(ctx)
	return j.seen.guarded(), err
}

// observe finds the file by its ID, or an imported file by its path.
func (j *guestJob) observe(ctx context.Context) error {
	files, err := j.guest.ask(ctx, question{Ask: askFiles})
	if err != nil {
		return fail(err, "%s %s: ask the guest of %s", j.Op, j.Address, j.guest.vm.Name)
	}
	j.seen = nil
	for path, kept := range files {
		f := guestFile{keptFile: kept, path: path, digest: j.settings.Digest}
		imported := j.Imports && f.Owner != nil && f.Owner.Address == j.Address && string(j.Object) == path
		if f.id() == j.Object || imported {
			j.seen = &f
		}
	}
	path := ctyread.Text(j.Want, "path")
	if other, taken := files[path]; j.Op == opWrite && j.seen == nil && taken {
		return &providers.Problem{
			Outcome: providers.Unsafe, Code: "path_taken", Next: providers.Say(fmt.Sprintf("set another path in the block of %s", j.Address)),
			Err: fmt.Errorf("%s %s: %s has a file %s already (%s)", j.Op, j.Address, j.guest.vm.Name, path, guestFile{keptFile: other, path: path}.id()),
		}
	}
	return nil
}

// Guard names the step and its file.
func (j *guestJob) Guard() guard.Guard {
	return guard.Guard{Work: j.Work, Project: j.settings.Project, Thing: "file", Look: func(now guard.Seen) string {
		return fmt.Sprintf("%s in %s", now.Name, j.guest.vm.Name)
	}}
}

// guarded returns the file as the guard sees it.
func (f *guestFile) guarded() *guard.Seen {
	if f == nil {
		return nil
	}
	return &guard.Seen{ID: f.id(), Name: f.path, Mark: f.Owner.mark(), Fingerprint: f.fingerprint()}
}

// Values returns the attributes of the file that the guest sets.
func (j *guestJob) Values(context.Context) (map[string]cty.Value, error) {
	return map[string]cty.Value{"id": cty.StringVal(string(j.seen.id()))}, nil
}

// wanted returns the file as the step is to write it.
func (j *guestJob) wanted() keptFile {
	p := j.settings.Project
	id := j.Object
	if strings.HasPrefix(string(id), "/") { // a file that is imported by its path
		id = providers.ID("file " + string(id))
	}
	return keptFile{
		ID: id, Content: ctyread.Text(j.Want, "content"),
		Owner: &owner{ID: p.Lineage(), Project: p.Name, Address: j.Address, Of: id, Generation: j.Generation},
	}
}

func (j *guestJob) isWanted() bool {
	f := j.wanted()
	return !j.isUnmarked() && j.seen.Content == f.Content && *j.seen.Owner == *f.Owner
}

func (j *guestJob) isUnmarked() bool { return j.seen == nil || j.seen.Owner == nil }

func (j *guestJob) write(ctx context.Context) (*guard.Outcome, error) {
	f := j.wanted()
	if _, err := j.guest.ask(ctx, question{Ask: askWrite, Path: ctyread.Text(j.Want, "path"), File: &f}); err != nil {
		return nil, fail(err, "write %s", j.Address)
	}
	return guard.Did(providers.Done), nil
}

func (j *guestJob) remove(ctx context.Context) (*guard.Outcome, error) {
	if j.seen == nil {
		return guard.Did(providers.AlreadyGone), nil
	}
	if _, err := j.guest.ask(ctx, question{Ask: askRemove, Path: j.seen.path}); err != nil {
		return nil, fail(err, "remove %s", j.Address)
	}
	return guard.Did(providers.Done), nil
}

// flush does nothing: no guest keeps a part of a file in its memory.
func flush(context.Context) (*guard.Outcome, error) { return guard.Did(providers.Done), nil }

// letGo removes the owner mark from the file, which stays as it is.
func (j *guestJob) letGo(ctx context.Context) (*guard.Outcome, error) {
	if _, err := j.guest.ask(ctx, question{Ask: askWrite, Path: j.seen.path, File: &keptFile{Content: j.seen.Content}}); err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Address)
	}
	return &guard.Outcome{How: providers.Done, NotGone: true}, nil
}
