package job_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"vmctl/providers/job"
)

// Of the variables of who starts a job, none gets into it that has to do with a provider of models or clouds, with git, or with a
// secret; the proxies do, unless they are stripped. What is let in by name is in, with a warning.
//
// row J54, of jobs
func TestEnvironOfAJob(t *testing.T) {
	proxies := []string{"HTTP_PROXY", "https_proxy", "no_proxy", "ALL_PROXY"}
	secret := rapid.SampledFrom(strings.Fields("ACME_API_KEY anthropic_model ANTHROPIC_BASE_URL AWS_PROFILE AWS_SECRET_ACCESS_KEY LITELLM_MASTER_KEY " +
		"OLLAMA_HOST OPENAI_ORG GEMINI_API_KEY GITHUB_TOKEN SSH_AUTH_SOCK GIT_DIR GIT_CONFIG_COUNT LD_PRELOAD NODE_OPTIONS DB_PASSWORD XDG_API_KEY LC_SECRET"))
	rapid.Check(t, func(t *rapid.T) {
		secrets := rapid.SliceOfDistinct(secret, rapid.ID).Draw(t, "secrets")
		strip := rapid.Bool().Draw(t, "strip the proxies")
		e := job.Environ{From: []string{"PATH=/bin", "HOME=/home/ann", "LANG=C", "OTHER=x", "TMPDIR=/theirs", job.Marker + "=j-other"}, StripProxy: strip}
		for _, name := range append(slices.Clone(secrets), proxies...) {
			e.From = append(e.From, name+"=canary")
		}
		if len(secrets) > 0 && rapid.Bool().Draw(t, "one passes") {
			e.Pass = secrets[:1]
		}
		environ, warnings := e.Build()
		names := job.Names(environ)
		for _, name := range secrets {
			if in := slices.Contains(names, name); in != slices.Contains(e.Pass, name) {
				t.Fatalf("%s is in: %t, in %q", name, in, names)
			}
		}
		for _, name := range proxies {
			if slices.Contains(names, name) == strip {
				t.Fatalf("strip %t: %q", strip, names)
			}
		}
		for _, name := range []string{"OTHER", "TMPDIR", job.Marker} {
			if slices.Contains(names, name) {
				t.Fatalf("%s is in: %q", name, names)
			}
		}
		if !slices.Contains(environ, "HOME=/home/ann") || len(warnings) != len(e.Pass) {
			t.Fatalf("%q, warnings %q, passed %q", environ, warnings, e.Pass)
		}
	})
}

// What a block sets wins over what it passes on.
func TestSetWinsOverPass(t *testing.T) {
	environ, _ := job.Environ{From: []string{"MODE=here", "TOKEN_A=a"}, Pass: []string{"MODE", "TOKEN*"}, Set: []string{"MODE=block"}}.Build()
	if got := strings.Join(environ, " "); got != "MODE=block TERM=dumb TOKEN_A=a" {
		t.Errorf("a job gets %s", got)
	}
}
