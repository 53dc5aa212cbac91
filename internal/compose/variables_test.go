package compose_test

import (
	"io/fs"
	"strings"
	"testing"

	"vmctl/internal/compose"
)

// inputs returns the surroundings of a compose file in a folder "shop", with some files.
func inputs(environ map[string]string, dotEnv string, files map[string]string) compose.Inputs {
	return compose.Inputs{Folder: "shop", Environ: environ, DotEnv: dotEnv, ReadFile: func(path string) (string, error) {
		text, ok := files[path]
		if !ok {
			return "", fs.ErrNotExist
		}
		return text, nil
	}}
}

// A variable has the value of the environment, else of the .env file; its forms are those of compose.
func TestVariables(t *testing.T) {
	in := inputs(map[string]string{"SET": "env", "EMPTY": "", "BOTH": "env", "DOLLAR": "$SET"}, "BOTH=file\nFILE=\"of ${SET}\"\n", nil)
	for _, test := range []struct{ text, want string }{
		{"$SET", "env"},
		{"a${SET}b$SET.", "aenvbenv."},
		{"$$SET $$$SET $$", "$SET $env $"},
		{"$BOTH $FILE", "env of env"},
		{"${MISSING}|$MISSING|", "||"},
		{"${EMPTY:-x} ${EMPTY-x} ${MISSING-x}", "x  x"},
		{"${SET:+x} ${EMPTY:+x}|${EMPTY+x}|${MISSING+x}|", "x |x||"},
		{"${SET:?no} ${EMPTY?no}|", "env |"},
		{"${MISSING:-${EMPTY:-${SET}}}", "env"},
		{"${MISSING:-a-b:c}", "a-b:c"},
		{"${MISSING:-$$x}", "$x"},
		{`${MISSING:-{"a":1}} ${SET:-{"a":1}}`, `{"a":1} env`},
		{"${MISSING:-$${x}}.", "${x}."},
		{"$DOLLAR", "$SET"}, // a value is no text with variables
		{"5$ $1 100$", "5$ $1 100$"},
	} {
		p, err := compose.Read("services: {web: {image: box, user: '"+test.text+"'}}", in)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if got := p.Services[0].User; got != test.want {
			t.Errorf("%s is %q, want %q", test.text, got, test.want)
		}
	}
	for _, test := range []struct{ text, want string }{
		{"${SET:-${}}", `"${}" names no variable`},
		{"${SET", `services.web.user cannot be used: "${SET" is not closed; $$ is a dollar sign`},
		{"${}", `services.web.user cannot be used: "${}" names no variable; $$ is a dollar sign`},
		{"${SET!x}", `"${SET!x}" is none of the forms ${X}, ${X:-default}, ${X:+other} and ${X:?message}`},
		{"${MISSING:?say so}", "services.web.user cannot be used: it requires the variable MISSING, which is not set: say so"},
		{"${EMPTY:?}", "it requires the variable EMPTY, which is not set"},
		{strings.Repeat("${A:-", 30) + strings.Repeat("}", 30), "variables nest more than 20 deep"},
	} {
		_, err := compose.Read("services: {web: {image: box, user: '"+test.text+"'}}", in)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the error is %v, want %q", test.text, err, test.want)
		}
	}
}

// What variables add is limited, however short the file is.
func TestVariablesAreBounded(t *testing.T) {
	in := inputs(map[string]string{"BIG": strings.Repeat("x", 1<<20)}, "", nil)
	_, err := compose.Read("services: {web: {image: box, command: ['$BIG', '$BIG$BIG', '$BIG', '$BIG']}}", in)
	if err == nil || !strings.Contains(err.Error(), "more than 4 MiB when its variables are replaced") {
		t.Errorf("the error is %v", err)
	}
}

// Files of variables: quotes, comments, several lines, and variables of the environment and of lines above.
func TestEnvFiles(t *testing.T) {
	in := inputs(map[string]string{"HOME": "/root"}, "", map[string]string{
		"a.env": "\ufeff# comment\nA=1 # one\n export B = 'x $A' \nC=\"$A ${HOME} \\\"q\\\" \\$A\\n\"\r\nD: yaml\nHOME\nGONE\nE='a\nb'\nF=\nG=a#b\n",
		"b.env": "A=2\nH=$B\n", "raw.env": "R='$A' # x\n",
	})
	p, err := compose.Read(`
services:
  web:
    image: box
    env_file:
      - a.env
      - {path: b.env}
      - {path: raw.env, format: raw}
      - {path: none.env, required: false}
    environment: {A: "3", Z: null}
`, in)
	if err != nil {
		t.Fatal(err)
	}
	got := p.Services[0].Env
	for name, want := range map[string]string{
		"A": "3", "B": "x $A", "C": "1 /root \"q\" $A\n", "D": "yaml", "HOME": "/root", "E": "a\nb", "F": "", "G": "a#b", "H": "x $A", "R": "'$A' # x",
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s is %q, want %q", name, value, want)
		}
	}
	if len(got) != 10 {
		t.Errorf("the variables are %q", got)
	}
	for text, want := range map[string]string{
		"A B=1": `line 1: "A B" is no name of a variable`, "\n=1": `line 2: "" is no name`, "A='x": "line 1: the value of A: its quotation is not closed",
		"A=${": "is not closed", "A=\xff": "it is not UTF-8",
	} {
		if _, err := compose.Read("services: {web: {image: box}}", inputs(nil, text, nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want %q", text, err, want)
		}
	}
}
