package gitx_test

import (
	"strings"
	"testing"

	"vmctl/internal/gitx"
)

// Only whole names of objects are taken for such.
func TestIsObjectName(t *testing.T) {
	for text, want := range map[string]bool{
		strings.Repeat("0af9", 10): true, strings.Repeat("0af9", 16): true,
		"": false, "HEAD": false, strings.Repeat("0AF9", 10): false, strings.Repeat("0", 39): false,
		"--output=" + strings.Repeat("a", 31): false, strings.Repeat("0", 39) + "\n": false, strings.Repeat("g", 40): false,
	} {
		if got := gitx.IsObjectName(text); got != want {
			t.Errorf("IsObjectName(%q) is %t", text, got)
		}
	}
}
