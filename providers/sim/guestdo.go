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
	j := &guestJob{task: &task{Provider: g.Provider, Work: w, log: log}, guest: g}
	var r providers.Result
	err := j.inTurn(ctx, func() (err error) {
		r, err = j.do(ctx)
		return err
	})
	if err != nil {
		return providers.Result{}, asFailure(err, fmt.Sprintf("%s %s", w.Op, w.Address))
	}
	return r, nil
}

// guestJob is a step on a file in a guest.
type guestJob struct {
	*task
	guest *guest
	seen  *guestFile
}

func (j *guestJob) do(ctx context.Context) (providers.Result, error) {
	if err := j.begin(ctx); err != nil {
		return providers.Result{}, err
	}
	if err := j.observe(ctx); err != nil {
		return providers.Result{}, err
	}
	if err := j.mine(); err != nil {
		return providers.Result{}, err
	}
	switch j.Op {
	case opWrite:
		return j.write(ctx)
	case opRemove:
		return j.remove(ctx)
	case opUnmark:
		return j.letGo(ctx)
	case opFlush:
		return j.result(ctx, providers.Done)
	default:
		panic("unknown operation " + j.Op)
	}
}

// observe finds the file by its ID, or an imported file by its path.
func (j *guestJob) observe(ctx context.Context) error {
	files, err := j.guest.ask(ctx, question{Ask: askFiles})
	if err != nil {
		return fail(err, "%s %s: ask the guest of %s", j.Op, j.Address, j.guest.vm.Name)
	}
	j.seen = nil
	for path, kept := range files {
		f := guestFile{keptFile: kept, path: path}
		imported := j.marksAnew() && f.Owner != nil && f.Owner.Address == j.Address && string(j.Object) == path
		if f.id() == j.Object || imported {
			j.seen = &f
		}
	}
	path := ctyread.Text(j.Want, "path")
	if other, taken := files[path]; j.Op == opWrite && j.seen == nil && taken {
		return &providers.Failure{
			Outcome: providers.Unsafe, Code: "path_taken", Next: providers.Say(fmt.Sprintf("set another path in the block of %s", j.Address)),
			Err: fmt.Errorf("%s %s: %s has a file %s already (%s)", j.Op, j.Address, j.guest.vm.Name, path, guestFile{keptFile: other, path: path}.id()),
		}
	}
	return nil
}

// guard checks the file of the step.
func (j *guestJob) guard() guard.Guard {
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

func (j *guestJob) mine() error     { return j.guard().Mine(j.seen.guarded()) }
func (j *guestJob) expected() error { return j.guard().Expected(j.seen.guarded()) }

func (j *guestJob) write(ctx context.Context) (providers.Result, error) {
	p := j.settings.Project
	id := j.Object
	if strings.HasPrefix(string(id), "/") { // a file that is imported by its path
		id = providers.ID("file " + string(id))
	}
	f := keptFile{
		ID: id, Content: ctyread.Text(j.Want, "content"),
		Owner: &owner{ID: p.Lineage(), Project: p.Name, Address: j.Address, Of: id, Generation: j.Generation},
	}
	if j.seen != nil && j.seen.Owner != nil && j.seen.Content == f.Content && *j.seen.Owner == *f.Owner {
		return j.result(ctx, providers.AlreadyTrue, "it is as wanted")
	}
	if err := j.expected(); err != nil {
		return providers.Result{}, err
	}
	if j.half() {
		f.Content = ""
	}
	if _, err := j.guest.ask(ctx, question{Ask: askWrite, Path: ctyread.Text(j.Want, "path"), File: &f}); err != nil {
		return providers.Result{}, fail(err, "write %s", j.Address)
	}
	if j.half() {
		return providers.Result{}, j.injected()
	}
	return j.result(ctx, providers.Done)
}

func (j *guestJob) remove(ctx context.Context) (providers.Result, error) {
	if j.seen == nil {
		return j.guard().Gone(providers.AlreadyGone), nil
	}
	if err := j.expected(); err != nil {
		return providers.Result{}, err
	}
	if j.half() {
		return providers.Result{}, j.injected()
	}
	if _, err := j.guest.ask(ctx, question{Ask: askRemove, Path: j.seen.path}); err != nil {
		return providers.Result{}, fail(err, "remove %s", j.Address)
	}
	return j.guard().Gone(providers.Done), nil
}

// letGo removes the owner mark from the file, which stays as it is.
func (j *guestJob) letGo(ctx context.Context) (providers.Result, error) {
	if j.seen == nil || j.seen.Owner == nil {
		return j.result(ctx, providers.AlreadyTrue, "it bears no mark")
	}
	if err := j.expected(); err != nil {
		return providers.Result{}, err
	}
	if _, err := j.guest.ask(ctx, question{Ask: askWrite, Path: j.seen.path, File: &keptFile{Content: j.seen.Content}}); err != nil {
		return providers.Result{}, fail(err, "%s %s", j.Op, j.Address)
	}
	return providers.Result{ID: j.Object, How: providers.Done}, nil
}

func (j *guestJob) result(ctx context.Context, how providers.How, evidence ...string) (providers.Result, error) {
	if err := j.observe(ctx); err != nil {
		return providers.Result{}, err
	}
	if j.seen == nil {
		return j.guard().Gone(how, evidence...), nil
	}
	return providers.Result{
		ID: j.seen.id(), Fingerprint: j.seen.fingerprint(), How: how, Evidence: evidence,
		Values: cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal(string(j.seen.id()))}),
	}, nil
}
