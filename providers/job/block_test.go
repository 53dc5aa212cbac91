package job_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/job"
	"vmctl/spec"
)

var review = spec.Address{Kind: spec.Job, Name: "review"}

// want returns a job block as the provider gets it, with some attributes in place of the usual ones.
func want(with map[string]cty.Value) cty.Value {
	all := map[string]cty.Value{
		"workspace": cty.StringVal("workspace.auth"), "agent": cty.StringVal("command"), "command": cty.ListVal([]cty.Value{cty.StringVal("true")}),
		"prompt": cty.NullVal(cty.String), "triggers": cty.MapValEmpty(cty.String),
		"containment": cty.StringVal("none"), "scope": cty.StringVal("working-tree"),
	}
	for name, v := range with {
		all[name] = v
	}
	return cty.ObjectVal(all)
}

func policy(timeout int64) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"run": cty.StringVal("once"), "timeout": cty.NumberIntVal(timeout), "idle_timeout": cty.NumberIntVal(60),
		"stop": cty.ObjectVal(map[string]cty.Value{"grace": cty.NumberIntVal(3)}),
	})
}

func plain(text string) string { return "digest of " + text }

// The digest changes with what makes a job due again, and with nothing else.
func TestDigestOfABlock(t *testing.T) {
	digest := func(want, policy cty.Value) string {
		run, err := job.BlockRunOf(review, want, policy, plain)
		if err != nil {
			t.Fatal(err)
		}
		return run.Digest
	}
	first := digest(want(nil), policy(60))
	if again := digest(want(nil), policy(120)); again != first {
		t.Errorf("another timeout makes it due again: %q, %q", first, again)
	}
	env := cty.ObjectVal(map[string]cty.Value{"set": cty.MapVal(map[string]cty.Value{"A": cty.StringVal("b")})})
	if again := digest(want(map[string]cty.Value{"env": env}), policy(60)); again != first {
		t.Errorf("another environment makes it due again: %q, %q", first, again)
	}
	seen := map[string]string{first: "nothing"}
	for name, v := range map[string]cty.Value{
		"workspace": cty.StringVal("workspace.other"), "agent": cty.StringVal("claude"), "prompt": cty.StringVal("do it"),
		"command": cty.ListVal([]cty.Value{cty.StringVal("false")}), "triggers": cty.MapVal(map[string]cty.Value{"a": cty.StringVal("b")}),
	} {
		d := digest(want(map[string]cty.Value{name: v}), policy(60))
		if other := seen[d]; other != "" {
			t.Errorf("another %s has the digest of another %s", name, other)
		}
		seen[d] = name
	}
	if _, err := job.BlockRunOf(review, want(map[string]cty.Value{"triggers": cty.UnknownVal(cty.Map(cty.String))}), policy(60), plain); err == nil || !strings.Contains(err.Error(), "not known yet") {
		t.Errorf("a run with unknown triggers: %v", err)
	}
}

// A job is killed after its grace unless its block says that it is not.
func TestForceOfABlock(t *testing.T) {
	for name, test := range map[string]struct {
		stop     map[string]cty.Value
		unforced bool
	}{
		"as of old":  {map[string]cty.Value{"grace": cty.NumberIntVal(3)}, false},
		"forced":     {map[string]cty.Value{"grace": cty.NumberIntVal(3), "force": cty.True}, false},
		"not forced": {map[string]cty.Value{"grace": cty.NumberIntVal(3), "force": cty.False}, true},
	} {
		run, err := job.BlockRunOf(review, want(nil), cty.ObjectVal(map[string]cty.Value{"stop": cty.ObjectVal(test.stop)}), plain)
		if err != nil || run.Unforced != test.unforced || run.Grace != 3*time.Second {
			t.Errorf("%s: %+v, %v", name, run, err)
		}
	}
}

// A block without a command has that of its agent, as its output has to be.
func TestCommandOfAnAgent(t *testing.T) {
	for agent, first := range map[string]string{"claude": "claude -p --output-format stream-json --verbose", "codex": "codex exec --json -", "gemini": "gemini -o stream-json"} {
		run, err := job.BlockRunOf(review, want(map[string]cty.Value{"agent": cty.StringVal(agent), "command": cty.NullVal(cty.List(cty.String))}), policy(60), plain)
		if got := strings.Join(run.Command, " "); err != nil || got != first {
			t.Errorf("%s: %q, %v; want %q", agent, got, err, first)
		}
	}
}

// What no job can do is a mistake at its attribute.
func TestCheckOfABlock(t *testing.T) {
	resume := cty.ObjectVal(map[string]cty.Value{"from": cty.StringVal("j-1")})
	for name, test := range map[string]struct {
		with map[string]cty.Value
		want string
	}{
		"good":        {nil, ""},
		"containment": {map[string]cty.Value{"containment": cty.StringVal("worktree")}, ""},
		"scope":       {map[string]cty.Value{"scope": cty.StringVal("head")}, "scope: A scope needs containment"},
		"both":        {map[string]cty.Value{"containment": cty.StringVal("worktree"), "scope": cty.StringVal("head")}, ""},
		"no command":  {map[string]cty.Value{"command": cty.NullVal(cty.List(cty.String))}, "command: Nothing to run"},
		"agent":       {map[string]cty.Value{"command": cty.NullVal(cty.List(cty.String)), "agent": cty.StringVal("codex")}, ""},
		"resumes":     {map[string]cty.Value{"agent": cty.StringVal("claude"), "resume": resume}, ""},
		"resumes in a copy, claude": {
			map[string]cty.Value{"agent": cty.StringVal("claude"), "resume": resume, "containment": cty.StringVal("worktree")}, "resume.from: No session in a copy",
		},
		"resumes in a copy, gemini": {
			map[string]cty.Value{"agent": cty.StringVal("gemini"), "resume": resume, "containment": cty.StringVal("worktree")}, "resume.from: No session in a copy",
		},
		"resumes in a copy, codex": {map[string]cty.Value{"agent": cty.StringVal("codex"), "resume": resume, "containment": cty.StringVal("worktree")}, ""},
		"unknown":                  {map[string]cty.Value{"command": cty.UnknownVal(cty.List(cty.String))}, ""},
	} {
		got := ""
		for _, f := range job.Type(job.Host{}).Check(spec.Job, want(test.with)) {
			got = f.Path + ": " + f.Summary
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// While a job of a block has not ended no other one begins; once it has the next one may.
func TestOneJobOfABlock(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{Command: "test"}}
	observer := job.Observer{Processes: process.Host{}, Now: time.Now()}
	create := func(id job.ID) error {
		_, err := s.CreateOnly(t.Context(), job.Record{ID: id, Block: review.String(), Created: time.Now(), Command: []string{"true"}}, observer)
		return err
	}
	if err := create("j-0"); err != nil {
		t.Fatal(err)
	}
	var active *job.ActiveError
	if err := create("j-1"); !errors.As(err, &active) || active.Active.ID != "j-0" {
		t.Errorf("while j-0 is queued: %v", err)
	}
	if _, err := s.Update(t.Context(), "j-0", func(r *job.Record) error { return job.Ask(r, job.Cancel{By: "test", At: time.Now()}) }); err != nil {
		t.Fatal(err)
	}
	if err := create("j-9"); err != nil {
		t.Error(err)
	}
	if r, ran, err := s.Newest(review); err != nil || !ran || r.ID != "j-9" {
		t.Errorf("the newest is %s, %t, %v", r.ID, ran, err)
	}
}

// ended returns a store with one job of the block that ended as a change of its record says.
func ended(t *testing.T, digest string, change func(*job.Record) error) job.Store {
	t.Helper()
	s := job.Store{Dir: t.TempDir()}
	r := job.Record{ID: "j-0", Block: review.String(), Digest: digest, Created: time.Now(), Command: []string{"true"}, Agent: job.Plain}
	if _, err := s.Create(r); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(t.Context(), "j-0", change); err != nil {
		t.Fatal(err)
	}
	return s
}

func open(t *testing.T, s job.Store, start func(context.Context, job.BlockRun) (job.Record, error)) providers.Provider {
	t.Helper()
	p, err := job.Type(job.Host{
		Records:  func(providers.Settings) job.Store { return s },
		Start:    start,
		Observer: func() job.Observer { return job.Observer{Processes: process.Host{}, Now: time.Now()} },
		TakeUp:   func(context.Context, job.Store, job.Record) error { return nil },
	}).Open(t.Context(), providers.Settings{Digest: plain, Project: providers.Project{Name: "lab", ID: "lab"}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A block that ran has an object; a run that did not complete is a finding with the commands to go on.
func TestObserveABlock(t *testing.T) {
	failed := func(r *job.Record) error { return job.Abandon(r, job.SpawnFailed, "no such program", time.Now()) }
	p := open(t, ended(t, "d", failed), nil)
	other := spec.Address{Kind: spec.Job, Name: "other"}
	inv, err := p.Observe(t.Context(), providers.Query{Known: []providers.Known{{Address: other}, {Address: review, Want: want(nil), Prior: want(nil)}}})
	if err != nil || len(inv.Objects) != 1 || len(inv.Partial) > 0 {
		t.Fatalf("%+v, %v", inv, err)
	}
	o := inv.Objects[0]
	if o.Owner.Address != review || len(o.Findings) != 1 {
		t.Fatalf("%+v", o)
	}
	f := o.Findings[0]
	if f.Kind != providers.FindJobEnded || f.Evidence[0] != "job j-0 is failed: no such program" || strings.Join(f.Next[len(f.Next)-1].Args, " ") != "job run job.review" {
		t.Errorf("%+v", f)
	}
	if o.Attrs.Type().HasAttribute("triggers") {
		t.Error("a block that the state knows shows other triggers")
	}
	inv, err = p.Observe(t.Context(), providers.Query{Known: []providers.Known{{Address: review, Want: want(nil)}}})
	if err != nil || !inv.Objects[0].Attrs.Type().HasAttribute("triggers") {
		t.Errorf("no state knows it, and it ran with other triggers: %+v, %v", inv, err)
	}
}

// A step that starts a job succeeds once there is a record, however the job ends: waiting for it tells, and no later apply
// runs it again.
func TestStepsOfABlock(t *testing.T) {
	s := job.Store{Dir: t.TempDir()}
	starts := 0
	p := open(t, s, func(_ context.Context, run job.BlockRun) (job.Record, error) {
		starts++
		r, err := s.Create(job.Record{ID: "j-0", Block: run.Block.String(), Digest: run.Digest, Command: run.Command, Created: time.Now()})
		if err != nil {
			return r, err
		}
		r, err = s.Update(t.Context(), r.ID, func(r *job.Record) error { return job.Abandon(r, job.SpawnFailed, "no such program", time.Now()) })
		return r, errors.Join(err, errors.New("it did not start"))
	})
	c := providers.Change{Address: review, Kind: spec.Job, Action: providers.Create, ID: "chosen", Want: want(nil), Policy: policy(60)}
	steps, err := p.Steps(c)
	if err != nil || len(steps) != 2 || steps[0].Phase != providers.PhaseMake || steps[1].Phase != providers.PhaseReady {
		t.Fatalf("%+v, %v", steps, err)
	}
	work := func(s providers.Step, expect string) providers.Work {
		return providers.Work{Step: s, Want: want(nil), Policy: policy(60), Expect: expect}
	}
	started, err := p.Do(t.Context(), work(steps[0], ""), nil)
	if err != nil || started.How != providers.Done {
		t.Fatalf("%+v, %v", started, err)
	}
	if again, err := p.Do(t.Context(), work(steps[0], ""), nil); err != nil || again.How != providers.AlreadyTrue || starts != 1 {
		t.Errorf("started again: %+v, %v, %d starts", again, err, starts)
	}
	_, err = p.Do(t.Context(), work(steps[1], started.Fingerprint), nil)
	var problem *providers.Problem
	if !errors.As(err, &problem) || problem.Code != "job_failed" || !strings.Contains(err.Error(), "job j-0 is failed: no such program") {
		t.Errorf("the wait: %v", err)
	}
}

// A change is a run where the job is due again. A workspace that is made anew under its address is no reason.
func TestDueEdits(t *testing.T) {
	p := open(t, job.Store{Dir: t.TempDir()}, nil)
	at := cty.StringVal("workspace.auth")
	hidden := cty.StringVal("(sensitive)")
	for name, test := range map[string]struct {
		edits []providers.Edit
		steps int
	}{
		"policy":                       {nil, 0},
		"workspace made anew":          {[]providers.Edit{{Path: "workspace", Before: at, After: at}}, 0},
		"another workspace":            {[]providers.Edit{{Path: "workspace", Before: at, After: cty.StringVal("workspace.b")}}, 2},
		"another environment":          {[]providers.Edit{{Path: "env.set", Before: hidden, After: hidden}, {Path: "env", Before: at, After: hidden}}, 0},
		"sensitive prompt was changed": {[]providers.Edit{{Path: "prompt", Before: hidden, After: hidden}}, 2},
	} {
		steps, err := p.Steps(providers.Change{Address: review, Kind: spec.Job, Action: providers.Update, Edits: test.edits, Policy: policy(60)})
		if err != nil || len(steps) != test.steps {
			t.Errorf("%s: %d steps, %v; want %d", name, len(steps), err, test.steps)
		}
	}
}
