package job_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/providers/job"
)

// What agents write is as they were measured to write it.
//
// row J46, of the session; row J67, of the output
func TestJudge(t *testing.T) {
	const (
		claudeInit = `{"type":"system","subtype":"init","session_id":"s-1"}` + "\n"
		claudeGood = `{"type":"result","subtype":"success","is_error":false,"session_id":"s-1"}` + "\n"
		codexInit  = `{"type":"thread.started","thread_id":"t-1"}` + "\n"
		geminiInit = `{"type":"init","session_id":"g-1"}` + "\n"
	)
	for _, c := range []struct {
		name, agent, output string
		want                job.Report
	}{
		{name: "success", agent: "claude", output: claudeInit + claudeGood, want: job.Report{Session: "s-1", Ended: true}},
		{name: "no end of line", agent: "claude", output: claudeInit + strings.TrimSpace(claudeGood), want: job.Report{Session: "s-1", Ended: true}},
		{
			name: "success with is_error", agent: "claude", output: `{"type":"result","subtype":"success","is_error":true,"session_id":"s-1"}`,
			want: job.Report{Session: "s-1", Ended: true, Failed: "claude says success with is_error"},
		},
		{
			name: "interrupted", agent: "claude",
			output: `{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools","session_id":"s-1"}`,
			want:   job.Report{Session: "s-1", Ended: true, Failed: "claude says error_during_execution with is_error (aborted_tools)"},
		},
		{name: "no result", agent: "claude", output: claudeInit, want: job.Report{Session: "s-1"}},
		{name: "nothing", agent: "claude"},
		{
			name: "garbage, invalid UTF-8 and unknown types", agent: "claude",
			output: "warning: \xff\xfe\n{broken\n{\"type\":7}\n" + claudeInit + "{\"type\":\"new\"}\n\n" + claudeGood, want: job.Report{Session: "s-1", Ended: true},
		},
		{
			name: "a line of 5 MB", agent: "claude",
			output: claudeInit + `{"type":"user","text":"` + strings.Repeat("x", 5<<20) + "\"}\n" + claudeGood, want: job.Report{Session: "s-1", Ended: true},
		},
		{
			name: "a line without end", agent: "claude",
			output: claudeInit + `{"type":"result","text":"` + strings.Repeat("x", 17<<20) + "\"}\n", want: job.Report{Session: "s-1"},
		},
		{
			name: "two results: the last one counts", agent: "claude",
			output: `{"type":"result","subtype":"error_max_turns","session_id":"s-1"}` + "\n" + claudeGood, want: job.Report{Session: "s-1", Ended: true},
		},
		{
			name: "a session that changes: the first one counts", agent: "claude",
			output: claudeInit + `{"type":"result","subtype":"success","session_id":"s-2"}`, want: job.Report{Session: "s-1", Ended: true},
		},
		{name: "completed", agent: "codex", output: codexInit + `{"type":"turn.completed","usage":{}}`, want: job.Report{Session: "t-1", Ended: true}},
		{name: "failed", agent: "codex", output: codexInit + `{"type":"turn.failed"}`, want: job.Report{Session: "t-1", Ended: true, Failed: "codex says turn.failed"}},
		{name: "reconnecting", agent: "codex", output: codexInit + `{"type":"error","message":"Reconnecting..."}`, want: job.Report{Session: "t-1"}},
		{
			name: "limited", agent: "claude", output: `{"type":"result","subtype":"success","is_error":true,"result":"API Error: 429 {\"type\":\"rate_limit_error\"}","session_id":"s-1"}`,
			want: job.Report{Session: "s-1", Ended: true, Failed: "claude says success with is_error", Limited: true},
		},
		{
			name: "limited for hours", agent: "claude", output: `{"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached|1700000000"}`,
			want: job.Report{Ended: true, Failed: "claude says success with is_error"},
		},
		{
			name: "a success that speaks of limits", agent: "claude", output: `{"type":"result","subtype":"success","result":"I added a rate limit."}`,
			want: job.Report{Ended: true},
		},
		{
			name: "limited", agent: "codex", output: codexInit + `{"type":"turn.failed","error":{"message":"exceeded retry limit, last status: 429 Too Many Requests"}}`,
			want: job.Report{Session: "t-1", Ended: true, Failed: "codex says turn.failed", Limited: true},
		},
		{
			name: "limited, then completed", agent: "codex", output: `{"type":"turn.failed","error":"Too many requests"}` + "\n" + `{"type":"turn.completed"}`,
			want: job.Report{Ended: true},
		},
		{
			name: "limited", agent: "gemini", output: geminiInit + `{"type":"result","status":"error","error":{"type":"ApiError","message":"RESOURCE_EXHAUSTED"}}`,
			want: job.Report{Session: "g-1", Ended: true, Failed: "gemini says error", Limited: true},
		},
		{name: "success", agent: "gemini", output: geminiInit + `{"type":"result","status":"success"}`, want: job.Report{Session: "g-1", Ended: true}},
		{name: "error", agent: "gemini", output: geminiInit + `{"type":"result","status":"error"}`, want: job.Report{Session: "g-1", Ended: true, Failed: "gemini says error"}},
	} {
		got, err := job.Judge(job.AgentOf(c.agent), strings.NewReader(c.output))
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s, %s: %v (-want +got):\n%s", c.agent, c.name, err, diff)
		}
	}
}

// row J16, of agents: neither an exit status nor a subtype decides alone
func TestHowAnAgentsRunIsClassified(t *testing.T) {
	for _, c := range []struct {
		name   string
		cancel *job.Cancel
		status int
		report job.Report
		want   job.Status
		code   job.ErrorCode
	}{
		{name: "result and exit 0", report: job.Report{Session: "s", Ended: true}, want: job.Completed},
		{name: "exit 0 without a result", report: job.Report{Session: "s"}, want: job.Failed, code: job.NoResult},
		{name: "exit 0 with a failed result", report: job.Report{Session: "s", Ended: true, Failed: "no"}, want: job.Failed, code: job.AgentFailed},
		{name: "exit 1 with a good result", status: 1, report: job.Report{Session: "s", Ended: true}, want: job.Failed, code: job.ExitStatus},
		{name: "exit 1 with a failed result", status: 1, report: job.Report{Session: "s", Ended: true, Failed: "no"}, want: job.Failed, code: job.AgentFailed},
		{name: "cancelled, exit 0 with a good result", cancel: &job.Cancel{By: "ann"}, report: job.Report{Session: "s", Ended: true}, want: job.Cancelled},
	} {
		worker := process.Identity{PID: 7}
		r := job.Record{ID: "j", Status: job.Running, Worker: &worker, Cancel: c.cancel}
		err := job.Finish(&r, worker, job.Outcome{ExitCode: &c.status, Agent: &c.report}, noon)
		if err != nil || r.Status != c.want || r.ErrorCode != c.code || r.Session != "s" {
			t.Errorf("%s: %s %q, session %q: %v; want %s %q", c.name, r.Status, r.ErrorCode, r.Session, err, c.want, c.code)
		}
	}
}

// row J46, of the command
func TestResume(t *testing.T) {
	for _, c := range []struct{ agent, command, want string }{
		{"claude", "claude -p --verbose", "claude -p --verbose --resume s"},
		{"claude", "claude --session-id a -p --resume b --verbose", "claude -p --verbose --resume s"},
		{"codex", "codex exec --json -", "codex exec --json resume s -"},
		{"codex", "codex exec --json resume a -", "codex exec --json resume s -"},
		{"gemini", "gemini -o stream-json --resume latest", "gemini -o stream-json --resume s"},
	} {
		if got := strings.Join(job.AgentOf(c.agent).Resume(strings.Fields(c.command), "s"), " "); got != c.want {
			t.Errorf("%s goes on as %q, want %q", c.command, got, c.want)
		}
	}
}

func TestReportOfAJob(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	r, err := s.Create(job.Record{ID: "j", Agent: "codex"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.ReportOf(r); err != nil || *got != (job.Report{}) {
		t.Errorf("before it wrote anything: %v %v", got, err)
	}
	if err := os.WriteFile(s.Path("j", "stdout"), []byte(`{"type":"thread.started","thread_id":"t"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.ReportOf(r); err != nil || got.Session != "t" {
		t.Errorf("after its first line: %v %v, want the session t", got, err)
	}
	r.Agent = job.Plain
	if got, err := s.ReportOf(r); got != nil || err != nil {
		t.Errorf("of a command: %v %v", got, err)
	}
}
