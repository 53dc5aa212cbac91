package mask_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"vmctl/internal/mask"
	"vmctl/internal/shellword"
)

// No form of a secret stays in a text, whatever stands around it.
func TestTextHasNoSecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[a-z][ -~é\n]{2,20}[a-z]`).Draw(t, "secret")
		var xmlText strings.Builder
		if err := xml.EscapeText(&xmlText, []byte(secret)); err != nil {
			t.Fatal(err)
		}
		inJSON, err := json.Marshal(secret)
		if err != nil {
			t.Fatal(err)
		}
		form := rapid.SampledFrom([]string{
			secret, fmt.Sprintf("%q", secret), fmt.Sprintf("%+q", secret), string(inJSON), shellword.Quote(secret), xmlText.String(),
			"'" + strings.ReplaceAll(secret, "'", "''") + "'",
			url.QueryEscape(secret), url.PathEscape(secret), hex.EncodeToString([]byte(secret)), fmt.Sprintf("%X", secret),
			base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte(secret)),
		}).Draw(t, "form")
		var m mask.Masker
		m.Add("something else", secret, secret[1:len(secret)-1])
		got := m.Text("0 " + form + " 1")
		if strings.Contains(got, strings.Trim(form, `"'=`)) || !strings.Contains(got, mask.Shown) {
			t.Fatalf("%q stays in %q", form, got)
		}
	})
}

// A short secret is replaced where it is a word of its own, and a single character is left.
func TestShortSecrets(t *testing.T) {
	var m mask.Masker
	m.Add("abc", " ab\n", "x", "", "é1")
	for text, want := range map[string]string{
		"abc":                  "(sensitive)",
		"the pin abc: refused": "the pin (sensitive): refused",
		`"abc" ab=abc,x`:       `"(sensitive)" (sensitive)=(sensitive),x`,
		"cab abcd 1abc abc2":   "cab abcd 1abc abc2",
		"abcabc":               "abcabc",
		"äabc abcä é1":         "äabc abcä (sensitive)",
		"user_abc":             "user_(sensitive)",
	} {
		if got := m.Text(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
