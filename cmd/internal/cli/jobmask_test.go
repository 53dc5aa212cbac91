package cli_test

import (
	"strings"
	"testing"

	"vmctl/cmd/internal/cli"
	"vmctl/internal/mask"
)

// A secret that comes in two parts is masked; a line is shown once it is whole, or at the end.
func TestMaskedLines(t *testing.T) {
	var masker mask.Masker
	masker.Add("canary-7")
	got := strings.Join(cli.MaskedParts(masker.Text, "one\ncan", "ary-7 two\nca", "nary", "-7"), "|")
	if want := "one\n|(sensitive) two\n||(sensitive)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := cli.MaskedParts(nil, "half", ""); got[0] != "half" {
		t.Errorf("without secrets: %q", got)
	}
}
