package real_test

import (
	"strings"
	"testing"

	"vmctl/internal/real"
)

func TestLeftOut(t *testing.T) {
	for said, want := range map[string]struct{ out, wrong bool }{
		"": {out: testing.Short()}, "1": {out: true}, "0": {wrong: true}, "yes": {wrong: true},
	} {
		var shown strings.Builder
		out, err := real.Skipped(&shown, func(string) string { return said })
		if out != want.out || (err != nil) != want.wrong {
			t.Errorf("%s=%q: left out %t, error %v", real.SkipVariable, said, out, err)
		}
		if told := strings.Contains(shown.String(), "left out"); told != out {
			t.Errorf("%s=%q: left out %t, and it says %q", real.SkipVariable, said, out, shown.String())
		}
	}
}
