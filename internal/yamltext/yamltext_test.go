package yamltext_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/internal/yamltext"
)

func TestCanonical(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"keys are sorted, comments are gone", "# VM\nmemory: 4GiB # of RAM\ncpus: 4\n", "cpus: 4\nmemory: 4GiB\n"},
		{"styles", "{a: 'x', \"b\": [1, {c: d}], e: {}, f: []}", "a: x\nb:\n  - 1\n  - c: d\ne: {}\nf: []\n"},
		{"a document marker", "---\na: 1\n...\n", "a: 1\n"},
		{"a byte order mark", "\ufeffa: 1\n", "a: 1\n"},
		{"line ends of Windows", "a: |\r\n  x\r\n  y\r\nb: 1\r\n", "a: |\n  x\n  y\nb: 1\n"},
		{"JSON", `{"b": "x\ty", "a": null}`, "a: null\nb: \"x\\ty\"\n"},
		{
			"integers", "[0644, 0o17, 0x10, 0b11, 1_000, +1, -0x1, 18446744073709551615]",
			"- 420\n- 15\n- 16\n- 3\n- 1000\n- 1\n- -1\n- 18446744073709551615\n",
		},
		{
			"other numbers keep their text", "[1.10, 1e3, 08, .inf, 0X1F, 18446744073709551616, 1_0.5]",
			"- 1.10\n- 1e3\n- 08\n- .inf\n- 0X1F\n- 18446744073709551616\n- 1_0.5\n",
		},
		{"booleans and nulls", "[True, false, TRUE, ~, NULL, ]", "- true\n- false\n- true\n- null\n- null\n"},
		{
			"words that are strings", "[yes, No, on, y, '1', \"true\", '', 2026-01-02, 1:30, 'null', '~', '.5', '1e3', '<<', 4GiB, '0o8']",
			"- \"yes\"\n- \"No\"\n- \"on\"\n- \"y\"\n- \"1\"\n- \"true\"\n- \"\"\n- \"2026-01-02\"\n- \"1:30\"\n- \"null\"\n- \"~\"\n- \".5\"\n- \"1e3\"\n- \"<<\"\n- 4GiB\n- \"0o8\"\n",
		},
		{"tags", "[!!str 12, !!int \"12\", !!float 1, !!null '', !!bool 'true']", "- \"12\"\n- 12\n- 1\n- null\n- true\n"},
		{
			"keys that look like something else", "yes: 1\n\"1\": 2\n2026-01-02: 3\n\"\": 4\n\"a\\tb\": 5\n\"<<\": 6\n",
			"\"\": 4\n\"1\": 2\n\"2026-01-02\": 3\n\"<<\": 6\n\"a\\tb\": 5\n\"yes\": 1\n",
		},
		{"a script", "script: |\n  #!/bin/sh\n    indented\n\n  last\n", "script: |\n  #!/bin/sh\n    indented\n\n  last\n"},
		{"line ends", "a: |-\n  x\n  y\nb: |+\n  x\n\nc: >\n  x\n  y\nd: \" x\\ny\"\n", "a: |-\n  x\n  y\nb: |+\n  x\n\nc: |\n  x y\nd: \" x\\ny\"\n"},
		{"anchors", "a: &x {k: [1]}\nb: *x\nc: &s text\nd: *s\n*s : e\n", "a:\n  k:\n    - 1\nb:\n  k:\n    - 1\nc: text\nd: text\ntext: e\n"},
		{
			"a merge key", "x: &x {a: 1, b: 2}\ny: &y {b: 3, c: 4}\nz:\n  c: 5\n  <<: [*x, *y]\n",
			"x:\n  a: 1\n  b: 2\n\"y\":\n  b: 3\n  c: 4\nz:\n  a: 1\n  b: 2\n  c: 5\n",
		},
		{
			"merge keys inside of merged mappings", "x: &x {a: 1}\ny: &y {<<: *x, b: 2}\nz: {<<: *y}\n",
			"x:\n  a: 1\n\"y\":\n  a: 1\n  b: 2\nz:\n  a: 1\n  b: 2\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			wrap, unwrap := test.text, test.want
			if strings.HasPrefix(test.text, "[") {
				wrap, unwrap = "k: "+test.text, "k:\n  "+strings.ReplaceAll(strings.TrimSuffix(test.want, "\n"), "\n", "\n  ")+"\n"
			}
			got, err := yamltext.Canonical(wrap)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(unwrap, got); diff != "" {
				t.Errorf("canonical text (-want +got):\n%s", diff)
			}
			if again, err := yamltext.Canonical(got); err != nil || again != got {
				t.Errorf("the canonical text of it is\n%s%v", again, err)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	deep := "a: " + strings.Repeat("[", 100) + strings.Repeat("]", 100)
	laughs := "a: &a [" + strings.Repeat("x,", 99) + "]\n"
	for c := 'b'; c < 'k'; c++ {
		laughs += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+" ,", 10) + "]\n"
	}
	for _, test := range []struct{ name, text, want string }{
		{"nothing", "", "it is empty"},
		{"comments only", "# nothing\n", "it is empty"},
		{"null", "---\n", "it is empty"},
		{"a list", "\n- a\n", `line 2: it is a list, not a mapping like "cpus: 4"`},
		{"a string", "templates/dev.yaml", `line 1: it is a string, not a mapping like "cpus: 4"`},
		{"no YAML", "a: 1\nb: c: d\n", "it is not YAML: line 2: mapping values are not allowed in this context"},
		{"a tab", "a:\n\tb: 1\n", "it is not YAML: line 2: found character that cannot start any token"},
		{"an unknown anchor", "a: *x\n", "it is not YAML: unknown anchor 'x' referenced"},
		{"two documents", "a: 1\n---\nb: 1\n", "line 2: a second document begins; only one is allowed"},
		{"an empty second document", "a: 1\n---\n", "line 2: a second document begins; only one is allowed"},
		{"a broken second document", "a: 1\n---\nb: c: d\n", "it is not YAML: line 3: mapping values are not allowed in this context"},
		{"a key twice", "a: 1\nb:\n  c: 1\n  d: 2\n  \"c\": 3\n", `line 5: the mapping has the key "c" already, on line 3`},
		{"two merge keys", "a: &a {}\nb:\n  <<: *a\n  <<: *a\n", "line 4: the mapping has a second merge key"},
		{"a number as key", "a:\n  80: x\n", "line 2: the key 80 is a number, not a string: put it in quotes"},
		{"true as key", "true: x\n", "line 1: the key true is a boolean, not a string: put it in quotes"},
		{"null as key", "~: x\n", "line 1: the key ~ is null, not a string: put it in quotes"},
		{"a list as key", "[a]: x\n", "line 1: a key is a list, not a string"},
		{"a mapping as key", "b: &m {a: c}\n*m : x\n", "line 2: a key is a mapping, not a string"},
		{"lines as key", "a: 1\n? |\n  x\n  y\n: 1\n", `line 2: the key "x\ny\n" has a line break`},
		{"a long key", strings.Repeat("k", 129) + ": 1\n", "line 1: the key \"" + strings.Repeat("k", 60) + "…\" has more than 128 bytes"},
		{"a merge of no mapping", "a: 1\n<<: [1]\n", "line 2: a merge key takes mappings, like \"<<: *defaults\""},
		{"a circle", "a: &a\n  b: [*a]\n", "line 2: *a is inside of what it stands for"},
		{"a circle of merges", "a: &a\n  <<: *a\n", "line 2: *a is inside of what it stands for"},
		{"another tag", "a: !secret x\n", "line 1: the tag !secret is not supported"},
		{"binary data", "a: !!binary aGk=\n", "line 1: the tag !!binary is not supported"},
		{"a set", "a: !!set {x}\n", "line 1: the tag !!set is not supported"},
		{"an untrue tag", "a: !!int x\n", `line 1: "x" is no value of the tag !!int`},
		{"depth", deep, "line 1: its lists and mappings nest more than 100 deep"},
		{"aliases of aliases", laughs, "it has more than 4 MiB when its aliases are expanded"},
	} {
		t.Run(test.name, func(t *testing.T) {
			doc, err := yamltext.Parse(test.text)
			if err == nil {
				t.Fatalf("it is read as %v", doc)
			}
			if err.Error() != test.want {
				t.Errorf("the error is\n%s\nwant\n%s", err, test.want)
			}
			if _, other := yamltext.Canonical(test.text); other == nil || other.Error() != test.want {
				t.Errorf("the error of Canonical is %v", other)
			}
		})
	}
}

func TestMarshalRefuses(t *testing.T) {
	var deep any = []any{}
	for range 100 {
		deep = []any{deep}
	}
	for want, v := range map[string]any{
		"write YAML: a value has the type float64":               1.5,
		"write YAML: a value has the type []string":              []any{[]string{"a"}},
		`write YAML: the string "\xff" is not UTF-8`:             "\xff",
		`write YAML: "ten" is not a number`:                      yamltext.Number("ten"),
		"write YAML: lists and mappings nest more than 100 deep": deep,
	} {
		if got, err := yamltext.Marshal(map[string]any{"k": v}); err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s; the text is %q", err, want, got)
		}
	}
	for want, key := range map[string]string{
		`write YAML: the string "\xff" is not UTF-8`:                                       "\xff",
		`write YAML: the key "a\nb" has a line break`:                                      "a\nb",
		"write YAML: the key \"" + strings.Repeat("k", 60) + "…\" has more than 128 bytes": strings.Repeat("k", 129),
	} {
		if got, err := yamltext.Marshal(map[string]any{key: 1}); err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s; the text is %q", err, want, got)
		}
	}
}

// values draws the values of documents.
func values() *rapid.Generator[any] {
	words := rapid.SampledFrom([]string{
		"", "yes", "~", "null", "1", "0644", "0o17", "1e3", "08", "-", "- a", "a: b", "a #b", "#a", "&a", "*a", "!a", "%a", "@a", "`a`",
		"<<", "=", "?", "? a", "[", "{a}", "'", "\"", "|", ">", "---", "...", "2026-01-02", "1:30", " a", "a ", "\ta", "a\t", "\n", "\na",
		"a\n", "a\n\n", "a\nb", "a\n  b\n", "a\n\tb", "a\n \nb", "a \nb", "a\n\n\n b\n\n", "a\r\nb", "\u0085", "a\u2028b", "\ufeff", "\x00", "🙂",
		".inf", ".nan", "4GiB", "0x1F", "0X1F", "1_000", "a:", ":a", "a,b", strings.Repeat("long ", 60),
		"#!/bin/sh\nset -eu\n\tcat <<'E'\n  x\nE\n",
	})
	text := rapid.OneOf(words, rapid.String(), rapid.StringOfN(rapid.RuneFrom([]rune(" \t\n\r:#-?'\"|>ab0\u0085\u00a0")), 0, 12, -1))
	leaf := rapid.OneOf(
		rapid.Map(text, func(s string) any { return s }),
		rapid.Map(rapid.Int64(), func(n int64) any { return n }),
		rapid.Map(rapid.Uint64Min(1<<63), func(n uint64) any { return n }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Just[any](nil),
		rapid.Map(rapid.SampledFrom([]string{"1.10", "1e3", "08", "-.inf", ".NaN", "1_0.5"}), func(s string) any { return yamltext.Number(s) }),
	)
	key := rapid.Map(text, sound)
	all := leaf
	for range 3 {
		inner := all
		all = rapid.OneOf(leaf,
			rapid.Map(rapid.SliceOfN(inner, 0, 4), func(s []any) any { return s }),
			rapid.Map(rapid.MapOfN(key, inner, 0, 4), func(m map[string]any) any { return m }))
	}
	return all
}

// sound returns s as far as it can be a key.
func sound(s string) string {
	s = strings.NewReplacer("\n", "", "\r", "", "\u0085", "", "\u2028", "", "\u2029", "").Replace(s)
	for len(s) > 128 {
		runes := []rune(s)
		s = string(runes[:len(runes)-1])
	}
	return s
}

// Parse returns what Marshal wrote, and the canonical text of that is the same.
func TestMarshalAndParseAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := map[string]any{"k": values().Draw(t, "k"), sound(rapid.String().Draw(t, "key")): values().Draw(t, "v")}
		text, err := yamltext.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		back, err := yamltext.Parse(text)
		if err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		if diff := cmp.Diff(doc, back); diff != "" {
			t.Fatalf("read back (-want +got):\n%s\n%s", diff, text)
		}
		if again, err := yamltext.Canonical(text); err != nil || again != text {
			t.Fatalf("the canonical text (%v) of\n%s\nis\n%s", err, text, again)
		}
	})
}

// Canonical is Parse and Marshal, and a canonical text is its own.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{
		"a: 1\n", "# c\nb: {x: [1, two, 3.0]}\na: |\n  x\n   y\n", "a: &a {b: 1}\nc: {<<: *a}\n", "a: &a [*a]\n", "- a\n", "a: !!int 1\n",
		"? |\n  k\n: v\n", "a: 'x\n  y'\n", "a: \"\\x00\\u2028\"\n", "%YAML 1.2\n---\na: 1\n", "a: 1\n---\nb: 2\n", "a: >+\n\n x\n\n\n", "yes: no\n", "a:\n- b\n-\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := yamltext.Parse(text)
		if err != nil {
			return
		}
		want, err := yamltext.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := yamltext.Canonical(text); err != nil || got != want {
			t.Fatalf("Canonical: %q, %v; want %q", got, err, want)
		}
		back, err := yamltext.Parse(want)
		if err != nil {
			t.Fatalf("%v: %q", err, want)
		}
		if diff := cmp.Diff(doc, back); diff != "" {
			t.Fatalf("read back (-want +got):\n%s", diff)
		}
	})
}
