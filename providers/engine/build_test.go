package engine_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/buildcontext"
	"vmctl/providers"
	"vmctl/spec"
)

// A build that does not succeed says why and what to do, and its error has none of the arguments, wherever the request ended.
func TestBuildFails(t *testing.T) {
	const secret = "s3cret of a build"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM scratch\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sum, err := buildcontext.Context{Dir: dir, Dockerfile: "Dockerfile"}.Digest()
	if err != nil {
		t.Fatal(err)
	}
	const id = "sha256:" + cid
	says := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body) //nolint:errcheck // the client may have left
		}
	}
	for _, test := range []struct {
		name, sum  string
		build      http.HandlerFunc
		code, says string
	}{
		{"the engine has no builder", sum, says(http.StatusNotFound, `{"message":"page not found"}`), "no_builder", "build it elsewhere"},
		{"the engine cannot", sum, says(http.StatusNotImplemented, `{"message":"not here"}`), "no_builder", "build it elsewhere"},
		{"it needs more", sum, says(http.StatusOK, `{"stream":"Step 1/1 : RUN --mount"}{"error":"the --mount option requires BuildKit"}`), "build_failed", "it wrote: Step 1/1 : RUN --mount"},
		{"an answer without an image", sum, says(http.StatusOK, `{"stream":"done\n"}`), "build_failed", "names no image"},
		{"half an answer", sum, says(http.StatusOK, `{"stream":`), "build_failed", "the engine's answer was cut"},
		{"the folder was changed", strings.Repeat("0", 64), says(http.StatusOK, `{"aux":{"ID":"`+id+`"}}`), "stale_plan", "was changed since the plan was made"},
		{"the connection ends", sum, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "engine_unreachable", "the engine gives no answer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.handle("POST /build", test.build)
			f.handle("DELETE /images/"+id, says(http.StatusOK, "[]"))
			null := cty.NullVal(cty.String)
			w := providers.Work{
				Step: providers.Step{Op: "build", Phase: providers.PhaseMake, Address: spec.Address{Kind: spec.Image, Name: "box"}, Object: "new"},
				Want: cty.ObjectVal(map[string]cty.Value{"ref": cty.StringVal("box:1"), "archive": null, "build": cty.ObjectVal(map[string]cty.Value{
					"context": cty.StringVal(dir), "context_sha256": cty.StringVal(test.sum), "dockerfile": cty.StringVal("Dockerfile"), "target": null,
					"args": cty.MapVal(map[string]cty.Value{"TOKEN": cty.StringVal(secret)}),
				})}),
			}
			_, err := f.open().Do(t.Context(), w, func(providers.Progress) {})
			var problem *providers.Problem
			if !errors.As(err, &problem) {
				t.Fatalf("it ended with %v", err)
			}
			var all strings.Builder
			all.WriteString(problem.Error() + "\n" + strings.Join(problem.Seen, "\n"))
			for _, next := range problem.Next {
				all.WriteString("\n" + next.Text)
			}
			if problem.Code != test.code || !strings.Contains(all.String(), test.says) {
				t.Errorf("it is %s, want %s; it says\n%s\nwant %q", problem.Code, test.code, all.String(), test.says)
			}
			if strings.Contains(all.String(), "s3cret") {
				t.Errorf("it has an argument:\n%s", all.String())
			}
			for _, asked := range f.asked {
				if strings.Contains(asked, "/tag") {
					t.Errorf("the name was moved: %s", asked)
				}
			}
		})
	}
}

// A build of a folder that was changed leaves no image, unless the engine had it under a name before: its users keep that.
func TestBuildInVainTakesNoName(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM scratch\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const id = "sha256:" + cid
	for _, test := range []struct {
		name, images string
		removed      bool
	}{
		{"it is new", `[{"Id":"` + id + `","RepoTags":null}]`, true},
		{"it was there", `[{"Id":"` + id + `","RepoTags":["theirs:1"]}]`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.set("POST /build", answer{body: `{"aux":{"ID":"` + id + `"}}`})
			f.set("GET /images/json", answer{body: test.images})
			f.set("DELETE /images/"+id, answer{body: "[]"})
			null := cty.NullVal(cty.String)
			w := providers.Work{
				Step: providers.Step{Op: "build", Phase: providers.PhaseMake, Address: spec.Address{Kind: spec.Image, Name: "box"}, Object: "new"},
				Want: cty.ObjectVal(map[string]cty.Value{"ref": cty.StringVal("box:1"), "archive": null, "build": cty.ObjectVal(map[string]cty.Value{
					"context": cty.StringVal(dir), "context_sha256": cty.StringVal(strings.Repeat("0", 64)), "dockerfile": cty.StringVal("Dockerfile"), "target": null,
					"args": cty.MapValEmpty(cty.String),
				})}),
			}
			if _, err := f.open().Do(t.Context(), w, func(providers.Progress) {}); err == nil || !strings.Contains(err.Error(), "was changed since the plan was made") {
				t.Fatalf("it ended with %v", err)
			}
			asked := slices.ContainsFunc(f.asked, func(request string) bool { return strings.HasPrefix(request, "DELETE /images/"+id) })
			if asked != test.removed {
				t.Errorf("its removal was asked for: %v, want %v", asked, test.removed)
			}
		})
	}
}
