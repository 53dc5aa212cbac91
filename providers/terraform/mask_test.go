package terraform

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What Terraform repeats of a connection has no password in it. The texts are those of Terraform 1.11 with PostgreSQL.
func TestMasked(t *testing.T) {
	for text, want := range map[string]string{
		`Error: parse "postgres://vmctl:se%zz@/postgres?host=/x": invalid URL escape "%zz"`: `Error: parse "postgres://vmctl:***@/postgres?host=/x": invalid URL escape "***"`,
		`parse "postgres://vmctl:a b\"c@d@[/postgres": missing ']' in host`:                 `parse "postgres://vmctl:***@[/postgres": missing ']' in host`,
		`missing "=" after "vmctl:secret@h/x" in connection info string"`:                   `missing "=" after "***" in connection info string"`,
		`missing "=" after "cret" in connection info string"`:                               `missing "=" after "***" in connection info string"`,
		`dial postgres://u:p@h:5432/db: refused`:                                            `dial postgres://u:***@h:5432/db: refused`,
		`host=h password=secret user=u`:                                                     `host=h password=*** user=u`,
		`host=h password = 'se cr\'et' user=u`:                                              `host=h password = *** user=u`,
		`git::https://u:token@host/m.git`:                                                   `git::https://u:***@host/m.git`,
	} {
		if got := masked(text); got != want {
			t.Errorf("%s\nbecame %s\nwant   %s", text, got, want)
		}
	}
	for _, same := range []string{
		"pq: password authentication failed for user \"vmctl\"", "dial tcp: address 99999: invalid port", "Who: root@vm", "git::ssh://git@github.com/x",
		"aws_instance.vm: Error: someone@here holds it", "https://h:443/path", `module.a["x:y"].b["c@d"]: failed`,
	} {
		if got := masked(same); got != same {
			t.Errorf("%s\nbecame %s", same, got)
		}
	}
}

// Nothing of a password is left in what net/url says of an address that it cannot read, wherever it takes the password to end.
func TestMaskedMistake(t *testing.T) {
	for _, password := range []string{"Zq/Xv", "Zq?Xv", "Zq#Xv", "Zq%zzXv", "Zq[Xv", "Zq Xv", `Zq"/Xv`, `Zq\#Xv`, "Zq/X@v", "Zq#X@v"} {
		_, err := url.Parse("postgres://u:" + password + "@host/db")
		if err == nil {
			t.Errorf("%s is no mistake", password)
			continue
		}
		if got := masked(err.Error()); strings.Contains(got, "Zq") || strings.Contains(got, "Xv") {
			t.Errorf("%v became %s", err, got)
		}
	}
}

// No password of any kind is left of an address that Terraform repeats as Go quotes it.
func TestMaskedAddress(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		password := rapid.StringMatching(`[!-~ ]{4,20}`).Draw(r, "password")
		text := "parse " + quoted("postgres://u:"+password+"@host/db") + ": it is wrong"
		if got := masked(text); !strings.Contains(got, "***") || strings.Contains(got, strings.Trim(quoted(password), `"`)) || !strings.HasSuffix(got, ": it is wrong") {
			r.Errorf("%s became %s", text, got)
		}
	})
}

func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

func TestWithoutSecrets(t *testing.T) {
	why := errors.New(`parse "postgres://u:p@h"`)
	if got := withoutSecrets(why); got.Error() != `parse "postgres://u:***@h"` || !errors.Is(got, why) {
		t.Errorf("%v", got)
	}
	if plain := errors.New("plain"); !errors.Is(withoutSecrets(plain), plain) || withoutSecrets(nil) != nil {
		t.Error("an error without one, or none, becomes another")
	}
}
