package job_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/job"
)

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
		if _, err := s.Update(t.Context(), id, func(r *job.Record) error { return job.Ask(r, job.Cancel{By: "test", At: noon}) }); err != nil {
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
