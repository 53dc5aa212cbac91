package workspace

import (
	"fmt"
	"strings"
	"testing"
)

// A guest's names of objects and references reach no git of this host unless they are such names.
func TestTheNamesInAStateAreChecked(t *testing.T) {
	sha := strings.Repeat("0a", 20)
	print := func(head, headRef, tree, ref, stash string) []byte {
		text := ""
		for _, part := range []struct{ name, text string }{
			{"info", strings.Join([]string{head, headRef, tree, sha, "digest", ""}, "\n")},
			{"refs", ref + "\n"},
			{"stashes", stash + " it\n"},
		} {
			text += fmt.Sprintf("%s %d\n%s", part.name, len(part.text), part.text)
		}
		return []byte(text)
	}
	branch := sha + " commit refs/heads/feature/a"
	if _, err := parseState(print(sha, "refs/heads/a", sha, branch, sha)); err != nil {
		t.Errorf("a sound state: %v", err)
	}
	if _, err := parseState(print("", "", sha, branch, sha)); err != nil {
		t.Errorf("without a commit: %v", err)
	}
	for name, text := range map[string][]byte{
		"a commit":            print("--output=x", "refs/heads/a", sha, branch, sha),
		"a tree":              print(sha, "refs/heads/a", "HEAD:", branch, sha),
		"a stash":             print(sha, "refs/heads/a", sha, branch, "--all"),
		"a commit of a ref":   print(sha, "refs/heads/a", sha, "HEAD commit refs/heads/a", sha),
		"another folder":      print(sha, "refs/heads/a", sha, sha+" commit refs/vmctl/x", sha),
		"a way out":           print(sha, "refs/heads/a", sha, sha+" commit refs/heads/../../config", sha),
		"a lock":              print(sha, "refs/heads/a", sha, sha+" commit refs/heads/a.lock", sha),
		"a space":             print(sha, "refs/heads/a", sha, sha+" commit refs/heads/a b", sha),
		"no name":             print(sha, "refs/heads/a", sha, sha+" commit refs/heads/", sha),
		"what is checked out": print(sha, "refs/tags/a", sha, branch, sha),
	} {
		if _, err := parseState(text); err == nil || !strings.Contains(err.Error(), "is no name of") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
