package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// DriftDocument is drift as JSON.
type DriftDocument struct {
	FormatVersion string       `json:"format_version"`
	Project       string       `json:"project"`
	ID            string       `json:"id"`
	Drift         []DriftEntry `json:"drift"`
	Unread        []DriftEntry `json:"unread"`  // could not be read: whether it drifted is not known
	Ignored       []DriftEntry `json:"ignored"` // with the entry that ignores it
	Expired       []IgnoreRule `json:"expired"` // entries that ignore nothing any more
	Unused        []IgnoreRule `json:"unused"`  // entries that cover no drift
	Lock          string       `json:"lock,omitempty"`
}

// DriftEntry is one difference between a record and the world.
type DriftEntry struct {
	Kind     string      `json:"kind"` // drift | missing | broken | crashed | partial | failed_check | unknown
	Address  string      `json:"address"`
	Object   string      `json:"object"`
	Path     string      `json:"path"` // "": the whole object
	Is       any         `json:"is"`
	Applied  any         `json:"applied"`
	Evidence string      `json:"evidence"`
	Ignored  *IgnoreRule `json:"ignored,omitempty"`
}

// IgnoreRule is one entry of a file of ignored drift.
type IgnoreRule struct {
	Address string `json:"address"`
	Path    string `json:"path"`
	Reason  string `json:"reason"`
	Owner   string `json:"owner"`
	Expiry  string `json:"expiry,omitempty"` // RFC 3339; absent: never
	Line    int    `json:"line"`
}

// DriftOptions holds what drift is shown with.
type DriftOptions struct {
	Project providers.Project
	Ignored []spec.IgnoredDrift
	Now     time.Time
}

// DriftJSON returns the document of drift: what an entry ignores that has not expired stands
// apart.
func DriftJSON(d planner.Drift, o DriftOptions) DriftDocument {
	doc := DriftDocument{
		FormatVersion: FormatVersion, Project: o.Project.Name, ID: o.Project.Lineage(),
		Drift: []DriftEntry{}, Unread: []DriftEntry{}, Ignored: []DriftEntry{}, Expired: []IgnoreRule{}, Unused: []IgnoreRule{},
	}
	used := map[int]bool{}
	for _, item := range d.Items {
		entry := driftEntry(item)
		i := slices.IndexFunc(o.Ignored, func(r spec.IgnoredDrift) bool { return !expired(r, o.Now) && r.Covers(item.Address, item.Path) })
		if i < 0 {
			doc.Drift = append(doc.Drift, entry)
			continue
		}
		used[i] = true
		rule := ignoreRule(o.Ignored[i])
		entry.Ignored = &rule
		doc.Ignored = append(doc.Ignored, entry)
	}
	for _, item := range d.Unread {
		doc.Unread = append(doc.Unread, driftEntry(item))
	}
	for i, r := range o.Ignored {
		switch {
		case expired(r, o.Now):
			doc.Expired = append(doc.Expired, ignoreRule(r))
		case !used[i]:
			doc.Unused = append(doc.Unused, ignoreRule(r))
		}
	}
	return doc
}

func expired(r spec.IgnoredDrift, now time.Time) bool {
	return !r.Expiry.IsZero() && !now.Before(r.Expiry)
}

func ignoreRule(r spec.IgnoredDrift) IgnoreRule {
	rule := IgnoreRule{Address: r.Address, Path: r.Path, Reason: r.Reason, Owner: r.Owner, Line: r.Line}
	if !r.Expiry.IsZero() {
		rule.Expiry = r.Expiry.UTC().Format(time.RFC3339)
	}
	return rule
}

func driftEntry(item planner.DriftItem) DriftEntry {
	return DriftEntry{
		Kind: string(item.Kind), Address: item.Address.String(), Object: item.Object, Path: item.Path,
		Is: Plain(item.Is), Applied: Plain(item.Applied), Evidence: item.Evidence,
	}
}

// Drift shows drift in one of DriftFormats.
func Drift(s Screen, doc DriftDocument, format string) {
	switch format {
	case "text":
		driftText(s, doc)
	case "junit":
		driftJUnit(s, doc)
	case "prometheus":
		driftMetrics(s, doc)
	case "markdown":
		driftMarkdown(s, doc)
	default:
		panic("unknown format " + format)
	}
}

// DriftFormats lists the formats of Drift.
func DriftFormats() []string { return []string{"text", "junit", "prometheus", "markdown"} }

func driftText(s Screen, doc DriftDocument) {
	w := &page{screen: s}
	head := "none"
	if n := len(doc.Drift); n > 0 {
		head = plural(n, "difference")
	}
	w.put(0, 2, in(bold, "Drift of "+doc.Project+":"), txt(" "+head+driftRest(doc)+"."))
	if doc.Lock != "" {
		w.put(0, 2, in(yellow, "Note:"), txt(" "+doc.Lock+". What it changes may show as drift."))
	}
	for _, part := range []struct {
		title string
		style style
		all   []DriftEntry
	}{{"Drift", yellow, doc.Drift}, {"Not read", red, doc.Unread}, {"Ignored", dim, doc.Ignored}} {
		if len(part.all) == 0 {
			continue
		}
		w.heading(part.title)
		for _, e := range part.all {
			w.put(2, 6, in(part.style, strings.ReplaceAll(e.Kind, "_", " ")), txt("  "+e.subject()))
			w.put(6, 8, txt(e.Evidence))
			if e.Ignored != nil {
				w.put(6, 8, txt(e.Ignored.words()))
			}
		}
	}
	for _, part := range []struct {
		title string
		all   []IgnoreRule
	}{{"Expired entries of the ignore file", doc.Expired}, {"Entries that cover no drift", doc.Unused}} {
		if len(part.all) == 0 {
			continue
		}
		w.heading(part.title)
		for _, r := range part.all {
			w.put(2, 6, txt(fmt.Sprintf("line %d: %s: %s", r.Line, r.subject(), r.words())))
		}
	}
	w.flush()
}

// driftRest counts what is not drift: "; 1 not read, 2 ignored".
func driftRest(doc DriftDocument) string {
	var parts []string
	for _, part := range []struct {
		n    int
		word string
	}{{len(doc.Unread), "not read"}, {len(doc.Ignored), "ignored"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.word))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, ", ")
}

func (e DriftEntry) subject() string {
	text := e.Address
	if e.Object != "" {
		text += ", object " + e.Object
	}
	return text
}

func (r IgnoreRule) subject() string { return strings.TrimSuffix(r.Address+" "+r.Path, " ") }

func (r IgnoreRule) words() string {
	text := r.Reason + " (" + r.Owner
	if r.Expiry != "" {
		text += ", until " + r.Expiry
	}
	return text + ")"
}
