package view_test

import (
	"encoding/json"
	"testing"

	"vmctl/cmd/internal/view"
)

// A plan that was kept is shown again byte for byte, on screens of every width, and in color.
func TestReviewIsWhatWasShown(t *testing.T) {
	for name, plan := range plans() {
		for _, columns := range []int{0, 40, 80, 200} {
			var kept view.Review
			want := on(columns, func(s view.Screen) {
				s.Color = true
				kept = view.Plan(s, plan, options())
			})
			text, err := json.Marshal(kept)
			if err != nil {
				t.Fatal(err)
			}
			var again view.Review
			if err := json.Unmarshal(text, &again); err != nil {
				t.Fatal(err)
			}
			got := on(columns, func(s view.Screen) {
				s.Color = true
				view.Reviewed(s, again)
			})
			if got != want {
				t.Errorf("%s at %d columns is shown as\n%s\nand was\n%s", name, columns, got, want)
			}
		}
	}
}

// A plan file that somebody changed brings no control character to a terminal.
func TestReviewIsEscaped(t *testing.T) {
	var r view.Review
	if err := json.Unmarshal([]byte(`[{"i":-5,"h":100000000,"s":[["31;5","a\u001b[2J\u00a0\u009bb"]]}]`), &r); err != nil {
		t.Fatal(err)
	}
	if got, want := on(80, func(s view.Screen) { s.Color = true; view.Reviewed(s, r) }), `a\x1b[2J \u009bb`+"\n"; got != want {
		t.Errorf("it is shown as %q, want %q", got, want)
	}
}
