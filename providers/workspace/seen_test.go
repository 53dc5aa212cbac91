package workspace

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a guest names as a commit and is none reaches no git: it counts as work that could not be read.
func TestNamesOfCommitsAreChecked(t *testing.T) {
	sha := strings.Repeat("0a", 20)
	all, err := parseList("W {}\nH --output=x\nR HEAD refs/heads/a\nR " + sha + " refs/heads/b\nS -x\n")
	if err != nil {
		t.Fatal(err)
	}
	w := all[0]
	if diff := cmp.Diff([]string{sha}, w.commits()); diff != "" {
		t.Errorf("commits (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"H --output=x", "R HEAD refs/heads/a", "S -x"}, w.Unread); diff != "" {
		t.Errorf("unread (-want +got):\n%s", diff)
	}
}
