package spec_test

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"

	"vmctl/spec"
)

func TestLabelOf(t *testing.T) {
	for text, want := range map[string]string{
		"main": "main", "feature/auth": "feature__auth", "fix_it-2": "fix_5fit-2", "2": "_32", "-x": "_2dx", "/a": "__a", "": "_",
		"feature/it's$(touch${IFS}x);ok": "feature__it_27s_24_28touch_24_7bIFS_7dx_29_3bok",
		"ä":                              "_c3_a4",
	} {
		if got := spec.LabelOf(text); got != want {
			t.Errorf("the label of %q is %q, want %q", text, got, want)
		}
	}
}

// row A63, of labels: each text has a label of its own, which can stand in a reference.
func TestLabelsAreInjective(t *testing.T) {
	valid := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	texts := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-f0-9_/-]{0,6}`), rapid.StringMatching(`(_|/|2f|5f|__){0,5}`))
	rapid.Check(t, func(t *rapid.T) {
		one, two := texts.Draw(t, "one"), texts.Draw(t, "two")
		label := spec.LabelOf(one)
		if !valid.MatchString(label) {
			t.Fatalf("%q has the label %q", one, label)
		}
		if (label == spec.LabelOf(two)) != (one == two) {
			t.Fatalf("%q and %q both have the label %q", one, two, label)
		}
	})
}
