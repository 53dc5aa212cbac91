package planner_test

import (
	"crypto/rand"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/spec"
	"vmctl/state"
)

// A sensitive value is compared by the digest in the record, or with what the system shows. Where
// neither is possible, it counts as unchanged, and the plan warns.
func TestSensitiveValues(t *testing.T) {
	withSecret := func(value string) string {
		return "vm \"a\" {\n  restart_triggers = { token = " + value + " }\n}\n"
	}
	const path = "restart_triggers"
	triggers := func(token string) cty.Value {
		return cty.MapVal(map[string]cty.Value{"token": cty.StringVal(token)})
	}
	key, other := newKey(t), newKey(t)
	for _, test := range []struct {
		name   string
		wanted string
		key    state.DigestKey
		shown  string // by the system; "": it shows nothing
		want   string // the paths of edits, and "warning"
	}{
		{"unchanged", `sensitive("one")`, key, "", ""},
		{"unchanged and shown", `sensitive("one")`, key, "one", ""},
		{"changed", `sensitive("two")`, key, "", path},
		{"changed behind vmctl's back", `sensitive("one")`, key, "other", path},
		{"changed, and the key is lost", `sensitive("two")`, state.DigestKey{}, "", "warning"},
		{"changed, and the key is another's", `sensitive("two")`, other, "", "warning"},
		{"changed and shown, and the key is lost", `sensitive("two")`, state.DigestKey{}, "one", path},
		{"unchanged and shown, and the key is lost", `sensitive("one")`, state.DigestKey{}, "one", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, withSecret(`sensitive("one")`))
			a := addr(t, "vm.a")
			r := s.state.Records[a]
			r.Values = spec.Withheld(r.Values)
			r.Digests = map[string]string{path: key.Digest(r.ID, path, triggers("one"))}
			s.state.Records[a] = r
			if test.shown != "" {
				s.object().Attrs = overlaid(s.object().Attrs, path, triggers(test.shown))
			}
			s.config, s.options.DigestKey = load(t, withSecret(test.wanted)), test.key
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range p.Changes {
				got = append(got, secretsOf(t, c)...)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("edits and warnings (-want +got):\n%s\n%s", diff, text(p))
			}
		})
	}
}

// secretsOf lists the paths of the edits of a change, which have to be of sensitive values, and "warning".
func secretsOf(t *testing.T, c planner.Change) []string {
	t.Helper()
	var all []string
	for _, e := range c.Edits {
		all = append(all, e.Path)
		if !e.Before.IsMarked() || !e.After.IsMarked() || !strings.HasPrefix(e.Verdict.Reason, "sensitive value changed") {
			t.Errorf("%s shows its values: %s", e.Path, e.Verdict.Reason)
		}
	}
	for _, w := range c.Warnings {
		if strings.Contains(w, "whether the sensitive value changed is not known") {
			all = append(all, "warning")
		}
	}
	return all
}

func newKey(t *testing.T) state.DigestKey {
	t.Helper()
	key, err := state.NewDigestKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A value that became sensitive in the spec, and that somebody changed: drift shows neither text.
func TestDriftOfWhatBecameSensitive(t *testing.T) {
	triggers := func(value string) string { return "vm \"a\" {\n  restart_triggers = { token = " + value + " }\n}\n" }
	s := after(t, triggers(`"applied-text"`))
	s.object().Attrs = overlaid(s.object().Attrs, "restart_triggers", cty.MapVal(map[string]cty.Value{"token": cty.StringVal("other-text")}))
	s.config = load(t, triggers(`sensitive("applied-text")`))
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	got := text(p)
	if !strings.Contains(got, "restart_triggers is (sensitive), and vmctl applied (sensitive)") || strings.Contains(got, "-text") {
		t.Errorf("the plan shows a sensitive value, or no drift:\n%s", got)
	}
}

// An ignored attribute that becomes sensitive keeps its value, and the record gets the digest of it. An ignored attribute
// of which the record has a digest stays sensitive.
func TestIgnoredBecomesSensitive(t *testing.T) {
	const (
		plain  = `"applied"`
		secret = `sensitive("wanted")`
		record = "update vm.a: the recorded state is updated\n0 record vm.a\n"
	)
	for _, attribute := range []struct{ path, text string }{
		{"restart_triggers", "  restart_triggers = { token = %s }\n"},
		{"cloud_init.user_data", "  cloud_init {\n    user_data = %s\n  }\n"},
	} {
		for _, ignored := range []string{"all", "[" + attribute.path + "]", "[" + strings.Split(attribute.path, ".")[0] + "]"} {
			block := func(value string) string {
				return "vm \"a\" {\n  lifecycle {\n    ignore_changes = " + ignored + "\n  }\n" + fmt.Sprintf(attribute.text, value) + "}\n"
			}
			t.Run(attribute.path+" by "+ignored, func(t *testing.T) {
				s := after(t, block(plain))
				s.config, s.options.DigestKey = load(t, block(secret)), newKey(t)
				p, err := s.plan()
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(record, text(p)); diff != "" {
					t.Errorf("plan (-want +got):\n%s", diff)
				}
				got := spec.SensitiveValues(p.Changes[0].Change.Want)
				if len(got) != 1 || got[0].Path != attribute.path || !strings.Contains(got[0].Value.GoString(), "applied") {
					t.Errorf("sensitive are %#v, want %s with its applied value", got, attribute.path)
				}

				a := addr(t, "vm.a")
				r := s.state.Records[a]
				values := r.Values.AsValueMap() // the computed ones stay
				delete(values, attribute.path)
				maps.Copy(values, spec.Withheld(p.Changes[0].Change.Want).AsValueMap())
				r.Values, r.Digests = cty.ObjectVal(values), map[string]string{attribute.path: s.options.DigestKey.Digest(r.ID, attribute.path, got[0].Value)}
				s.state.Records[a] = r
				for _, value := range []string{secret, plain} {
					s.config = load(t, block(value))
					s.check("")
				}
			})
		}
	}
}
