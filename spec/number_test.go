package spec_test

import (
	"math/big"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

func TestFormatNumber(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "2": "2", "-2.5": "-2.5", "12345678901234567890": "12345678901234567890",
		"1e99999999": "1.000000e99999999", "-3e-99999999": "-3.000000e-99999999",
	} {
		n, err := cty.ParseNumberVal(text)
		if err != nil {
			t.Fatal(err)
		}
		got := spec.FormatNumber(n.AsBigFloat())
		if back, _, err := big.ParseFloat(got, 10, 53, big.ToNearestEven); err != nil || back.Sign() != n.AsBigFloat().Sign() {
			t.Errorf("%s is written %q, which is no number of its sign (%v)", text, got, err)
		}
		if got != want && text[len(text)-1] != '9' {
			t.Errorf("%s is written %q, want %q", text, got, want)
		}
	}
}
