package lima

import (
	"slices"
	"strings"
	"testing"
)

// The message of a template is shown line by line, and a long one in part.
func TestMessage(t *testing.T) {
	const head, rest = "the message of its template:", "(the rest of it is left out: it has more than 4 KiB)"
	whole, long := strings.Repeat("a", messageLimit), strings.Repeat("a", messageLimit-1)
	for name, c := range map[string]struct {
		message string
		want    []string
	}{
		"none":               {},
		"empty lines around": {message: "\n\n", want: nil},
		"two lines":          {message: "\none\ntwo\n", want: []string{head, "one", "two"}},
		"just short enough":  {message: whole, want: []string{head, whole}},
		"too long":           {message: whole + "a", want: []string{head, whole, rest}},
		"cut in a letter":    {message: long + "é", want: []string{head, long, rest}},
	} {
		t.Run(name, func(t *testing.T) {
			j := &job{seen: &instance{doc: map[string]any{keyMessage: c.message}}}
			if got := j.message(t.Context(), 0); !slices.Equal(got, c.want) {
				t.Errorf("message %.80q, want %.80q", got, c.want)
			}
		})
	}
}
