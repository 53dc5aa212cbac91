package job_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// A block without a command has that of its agent, as its output has to be.
func TestCommandOfAnAgent(t *testing.T) {
	for agent, first := range map[string]string{"claude": "claude -p --output-format stream-json --verbose", "codex": "codex exec --json -", "gemini": "gemini -o stream-json"} {
		run, err := job.BlockRunOf(review, want(map[string]cty.Value{"agent": cty.StringVal(agent), "command": cty.NullVal(cty.List(cty.String))}), policy(60), plain)
		if got := strings.Join(run.Command, " "); err != nil || got != first {
			t.Errorf("%s: %q, %v; want %q", agent, got, err, first)
		}
	}
}

// What this build cannot run is a mistake at its attribute.
func TestCheckOfABlock(t *testing.T) {
	for name, test := range map[string]struct {
		with map[string]cty.Value
		want string
	}{
		"good":        {nil, ""},
		"containment": {map[string]cty.Value{"containment": cty.StringVal("worktree")}, "containment: Not built in yet"},
		"scope":       {map[string]cty.Value{"scope": cty.StringVal("head")}, "scope: Not built in yet"},
		"no command":  {map[string]cty.Value{"command": cty.NullVal(cty.List(cty.String))}, "command: Nothing to run"},
		"agent":       {map[string]cty.Value{"command": cty.NullVal(cty.List(cty.String)), "agent": cty.StringVal("codex")}, ""},
		"unknown":     {map[string]cty.Value{"command": cty.UnknownVal(cty.List(cty.String))}, ""},
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
	if _, err := s.Update(t.Context(), "j-0", func(r *job.Record) error { return job.Ask(r, "test", time.Now()) }); err != nil {
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
		"sensitive prompt was changed": {[]providers.Edit{{Path: "prompt", Before: hidden, After: hidden}}, 2},
	} {
		steps, err := p.Steps(providers.Change{Address: review, Kind: spec.Job, Action: providers.Update, Edits: test.edits, Policy: policy(60)})
		if err != nil || len(steps) != test.steps {
			t.Errorf("%s: %d steps, %v; want %d", name, len(steps), err, test.steps)
		}
	}
}

// A job of which no worker was started has not run, however far its start came: the step fails, the record says so, and the
// next apply starts it.
func TestAJobThatWasNotLaunchedHasNotRun(t *testing.T) {
	s := job.Store{Dir: t.TempDir()}
	observer := job.Observer{Processes: process.Host{}, Now: time.Now()}
	in := "prompt/in-the-way"
	var failed []job.ID
	p := open(t, s, func(ctx context.Context, run job.BlockRun) (job.Record, error) {
		id := job.ID(fmt.Sprintf("j-%d", len(failed)))
		r, err := s.CreateOnly(ctx, job.Record{ID: id, Block: run.Block.String(), Digest: run.Digest, Command: run.Command, Created: time.Now()}, observer)
		if err != nil {
			t.Fatal(err)
		}
		failed = append(failed, id)
		if in != "" {
			if err := os.MkdirAll(s.Path(id, in), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if r, err = s.HandOff(ctx, r, job.Handoff{Prompt: []byte("do it"), Environ: []string{"A=b"}}, time.Now()); err != nil {
			return r, err
		}
		return s.Start(ctx, id, job.Launch{Program: filepath.Join(s.Dir, "no-such-program")}, time.Now)
	})
	steps, err := p.Steps(providers.Change{Address: review, Kind: spec.Job, Action: providers.Create, ID: "chosen", Want: want(nil), Policy: policy(60)})
	if err != nil {
		t.Fatal(err)
	}
	for _, in = range []string{"prompt/in-the-way", "environ/in-the-way", ""} {
		_, err := p.Do(t.Context(), providers.Work{Step: steps[0], Want: want(nil), Policy: policy(60)}, nil)
		if err == nil {
			t.Fatalf("with %q it started", in)
		}
		id := failed[len(failed)-1]
		if r, err := s.Read(id); err != nil || r.Status != job.Failed || r.ErrorCode != job.NotLaunched || r.Reason == "" {
			t.Errorf("with %q in the way it is %s (%s): %s, %v; want failed, not launched", in, r.Status, r.ErrorCode, r.Reason, err)
		}
		inv, err := p.Observe(t.Context(), providers.Query{Known: []providers.Known{{Address: review, Want: want(nil)}}})
		if err != nil || len(inv.Objects) != 0 {
			t.Errorf("with %q in the way it counts as run: %+v, %v", in, inv.Objects, err)
		}
	}
	if len(failed) != 3 {
		t.Errorf("it was started %d times, want 3", len(failed))
	}
}

// A record that cannot be written is none: its folder is gone too.
func TestARecordThatCannotBeWritten(t *testing.T) {
	s := job.Store{Dir: t.TempDir()}
	r, err := s.Create(job.Record{ID: "j-0", Created: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}) // JSON has no such year
	if err == nil || r.Revision != 0 {
		t.Errorf("revision %d, %v", r.Revision, err)
	}
	if _, err := os.Lstat(s.Path("j-0", "")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its folder: %v", err)
	}
}

// The newest job of a block is the one that was started last, whatever the clock said; records from before the runs had
// numbers are older than those with one.
func TestTheNewestJobOfABlockIsCounted(t *testing.T) {
	s := job.Store{Dir: t.TempDir()}
	observer := job.Observer{Processes: process.Host{}, Now: time.Now()}
	record(t, s, "j-old", job.Completed, func(r *job.Record) { r.Block, r.Created = review.String(), noon.Add(time.Hour) })
	record(t, s, "j-other", job.Completed, func(r *job.Record) { r.Block, r.Created = "job.other", noon })
	for i := range 12 {
		id := job.ID(fmt.Sprintf("j-%02d", i))
		r, err := s.CreateOnly(t.Context(), job.Record{ID: id, Block: review.String(), Created: noon.Add(-time.Duration(i) * time.Minute)}, observer)
		if err != nil || r.Run != i+1 {
			t.Errorf("%s is run %d: %v", id, r.Run, err)
		}
		if _, err := s.Update(t.Context(), id, func(r *job.Record) error { return job.Ask(r, "test", noon) }); err != nil {
			t.Fatal(err)
		}
	}
	if r, ran, err := s.Newest(review); err != nil || !ran || r.ID != "j-11" {
		t.Errorf("the newest is %s, %t, %v", r.ID, ran, err)
	}
	inv, err := open(t, s, nil).Observe(t.Context(), providers.Query{Known: []providers.Known{{Address: review, Want: want(nil)}}})
	if err != nil || len(inv.Objects) != 1 || !strings.Contains(inv.Objects[0].Fingerprint, "j-11") {
		t.Errorf("%+v, %v", inv.Objects, err)
	}
	if _, err := s.Prune(0, noon); err != nil {
		t.Fatal(err)
	}
	if r, _, err := s.Newest(review); err != nil || r.ID != "j-11" {
		t.Errorf("after the removal of old records the newest is %s, %v", r.ID, err)
	}
}

// A record that cannot be read may be of a job of the block that runs: no other one begins, and the error says what to type.
func TestAnUnreadableRecordIsInTheWay(t *testing.T) {
	observer := job.Observer{Processes: process.Host{}, Now: time.Now()}
	for name, test := range map[string]struct {
		text    string
		refused bool
	}{
		"cut off":                     {`{"block": "job.other", `, true},
		"of no known block":           {`{"format_version": 99}`, true},
		"of this block":               {`{"format_version": 99, "block": "job.review"}`, true},
		"of a block that takes turns": {`{"format_version": 99, "block": "job.review[\"a\"]"}`, true},
		"of another block":            {`{"format_version": 99, "block": "job.other"}`, false},
		"of no block":                 {`{"format_version": 99, "block": ""}`, false},
	} {
		s := job.Store{Dir: t.TempDir()}
		if err := os.MkdirAll(s.Path("j-0", ""), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, s.Path("j-0", ""), map[string]string{"record.json": test.text})
		r, err := s.CreateOnly(t.Context(), job.Record{ID: "j-1", Block: review.String(), Created: noon, MaxParallel: 2}, observer)
		var unknown *job.UnknownJobError
		if errors.As(err, &unknown) != test.refused || (err == nil) == test.refused || (r.Revision == 0) != test.refused {
			t.Errorf("%s: revision %d, %v; refused: %t", name, r.Revision, err, test.refused)
		}
		if test.refused && (!strings.Contains(err.Error(), s.Path("j-0", "record.json")) || !strings.Contains(unknown.Next(), "mv "+s.Path("j-0", "")+" ")) {
			t.Errorf("%s: %v; %s", name, err, unknown.Next())
		}
	}
}

// A digest can be compared with one of the same key alone. With another key, or none, nobody knows whether the block has run
// with the triggers of now: it is not run, and a finding says so.
func TestALostKeyRunsNothingAgain(t *testing.T) {
	keyed := func(key string) func(string) string { return func(text string) string { return key + text } }
	run, err := job.BlockRunOf(review, want(nil), policy(60), keyed("first"))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		digest, key string
		now         func(string) string
		due, told   bool
	}{
		"the same key and triggers":            {run.Digest, run.Key, keyed("first"), false, false},
		"the same key, other triggers":         {"other", run.Key, keyed("first"), true, false},
		"another key":                          {run.Digest, run.Key, keyed("second"), false, true},
		"no key":                               {run.Digest, run.Key, nil, false, true},
		"ran without a key":                    {"", "", keyed("first"), false, true},
		"a record of old, the same triggers":   {run.Digest, "", keyed("first"), false, false},
		"a record of old, other triggers":      {"other", "", keyed("first"), true, false},
		"a record of old, and there is no key": {run.Digest, "", nil, false, true},
	} {
		s := job.Store{Dir: t.TempDir()}
		record(t, s, "j-0", job.Completed, func(r *job.Record) { r.Block, r.Digest, r.Key = review.String(), test.digest, test.key })
		p, err := job.Type(job.Host{
			Records: func(providers.Settings) job.Store { return s }, Observer: func() job.Observer { return job.Observer{Processes: process.Host{}, Now: noon} },
		}).Open(t.Context(), providers.Settings{Digest: test.now, Project: providers.Project{Name: "lab", ID: "lab"}})
		if err != nil {
			t.Fatal(err)
		}
		inv, err := p.Observe(t.Context(), providers.Query{Known: []providers.Known{{Address: review, Want: want(nil)}}})
		if err != nil || len(inv.Objects) != 1 {
			t.Fatalf("%s: %+v, %v", name, inv, err)
		}
		o := inv.Objects[0]
		told := len(o.Findings) == 1 && o.Findings[0].Kind == providers.FindNotRun
		if due := o.Attrs.Type().HasAttribute("triggers"); due != test.due || told != test.told {
			t.Errorf("%s: due: %t, told: %t; want %t and %t", name, due, told, test.due, test.told)
		}
	}
}
