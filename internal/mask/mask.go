// Package mask removes secrets from texts that people read or that are kept.
package mask

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"vmctl/internal/shellword"
)

// Shown stands in a text in place of a secret.
const Shown = "(sensitive)"

// A secret of at least partOfWord bytes is looked for everywhere. A shorter one is a part of too many words: it is looked for
// as a word of its own. One of fewer than shortest bytes is left.
const (
	shortest   = 2
	partOfWord = 4
)

// A Masker knows secrets, and replaces them in texts. The zero value knows none. Several goroutines may use it.
type Masker struct {
	mu       sync.Mutex
	secrets  map[string]bool
	replacer *strings.Replacer // of all forms of all long secrets; nil: to be made
}

// Add adds secrets. It leaves out those of one byte.
func (m *Masker) Add(secrets ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range secrets {
		if s = strings.TrimSpace(s); len(s) < shortest || m.secrets[s] {
			continue
		}
		if m.secrets == nil {
			m.secrets = map[string]bool{}
		}
		m.secrets[s], m.replacer = true, nil
	}
}

func longerFirst(a, b string) int {
	if len(a) != len(b) {
		return len(b) - len(a)
	}
	return strings.Compare(a, b)
}

// Text returns a text with Shown in place of each secret: as it is, quoted for Go, JSON, YAML, XML, a URL or a
// shell, and in base64 or hex. It replaces a secret of two or three bytes where that is a word of its own.
func (m *Masker) Text(text string) string {
	replacer, words := m.all()
	text = replacer.Replace(text)
	for _, word := range words {
		text = replaceWord(text, word)
	}
	return text
}

// replaceWord replaces a secret where neither a letter nor a digit stands on either side of it.
func replaceWord(text, secret string) string {
	var b strings.Builder
	for begin := 0; ; {
		at := strings.Index(text[begin:], secret)
		if at < 0 {
			return b.String() + text[begin:]
		}
		end := begin + at + len(secret)
		before, _ := utf8.DecodeLastRuneInString(text[:begin+at])
		after, _ := utf8.DecodeRuneInString(text[end:])
		b.WriteString(text[begin : begin+at])
		if inWord(before) || inWord(after) {
			b.WriteString(secret)
		} else {
			b.WriteString(Shown)
		}
		begin = end
	}
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// all returns the replacer of all long secrets, and the short ones, longest first. Of two that begin at the same place, the
// longer one is replaced.
func (m *Masker) all() (replacer *strings.Replacer, words []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for secret := range m.secrets {
		if len(secret) < partOfWord {
			words = append(words, secret)
		}
	}
	slices.SortFunc(words, longerFirst)
	if m.replacer == nil {
		var all []string
		for secret := range m.secrets {
			if len(secret) >= partOfWord {
				all = append(all, forms(secret)...)
			}
		}
		slices.SortFunc(all, longerFirst)
		var pairs []string
		for _, form := range slices.Compact(all) {
			pairs = append(pairs, form, Shown)
		}
		m.replacer = strings.NewReplacer(pairs...)
	}
	return m.replacer, words
}

// Texts returns texts with Shown in place of each secret.
func (m *Masker) Texts(texts []string) []string {
	all := slices.Clone(texts)
	for i := range all {
		all[i] = m.Text(all[i])
	}
	return all
}

// forms lists the forms in which a secret may be part of a text.
func forms(secret string) []string {
	data := []byte(secret)
	return []string{
		secret, inner(strconv.Quote(secret)), inner(strconv.QuoteToASCII(secret)), inner(quotedJSON(secret)),
		inner(shellword.Quote(secret)), strings.ReplaceAll(secret, "'", "''"),
		strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "\n", "&#xA;").Replace(secret),
		url.QueryEscape(secret), url.PathEscape(secret),
		base64.RawStdEncoding.EncodeToString(data), base64.RawURLEncoding.EncodeToString(data),
		hex.EncodeToString(data), strings.ToUpper(hex.EncodeToString(data)),
	}
}

// inner returns a quoted text without its quotes, so that it is also found as a part of a longer one.
func inner(quoted string) string {
	if len(quoted) > 1 && quoted[0] == quoted[len(quoted)-1] && strings.Contains(`"'`, quoted[:1]) {
		return quoted[1 : len(quoted)-1]
	}
	return quoted
}

func quotedJSON(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return text
	}
	return string(quoted)
}
