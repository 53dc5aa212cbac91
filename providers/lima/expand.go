package lima

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/yamltext"
	"vmctl/spec"
)

// expander puts the text of a template in the place of its name or of its bases. It remembers what it has read: in one
// run of vmctl a template has one text.
type expander struct {
	provider *Provider // of no home
	mu       sync.Mutex
	known    map[[2]string]expansion // by the folder and the template
}

type expansion struct {
	doc map[string]any
	err error
}

// expand is providers.Type.Expand.
func (e *expander) expand(ctx context.Context, kind spec.Kind, want cty.Value, dir string) (cty.Value, *spec.Flaw) {
	template := ctyread.KnownAttr(want, "template")
	if kind != spec.VM || template == cty.NilVal {
		return want, nil
	}
	text := template.AsString()
	own, err := yamltext.Parse(text)
	var doc map[string]any
	_, based := own[keyBase]
	switch {
	case err != nil || refersElsewhere(own):
		if doc, err = e.embed(ctx, dir, text); err == nil {
			doc = withoutSet(want, own, doc)
		}
	case based: // on nothing
		doc = maps.Clone(own)
	default:
		return want, nil
	}
	if err == nil {
		delete(doc, keyBase)
		text, err = yamltext.Marshal(doc)
	}
	if err != nil {
		return want, &spec.Flaw{Path: "template", Summary: "Unreadable template", Detail: fmt.Sprintf("Its whole text cannot be had: %v.", err)}
	}
	all := want.AsValueMap()
	all["template"] = cty.StringVal(text)
	return cty.ObjectVal(all), nil
}

// elsewhere is providers.Type.Elsewhere: a template may be named, or have parts in other files.
func elsewhere(kind spec.Kind, want cty.Value) string {
	template := ctyread.KnownAttr(want, "template")
	if kind != spec.VM || template == cty.NilVal {
		return ""
	}
	if own, err := yamltext.Parse(template.AsString()); err == nil && !refersElsewhere(own) {
		return ""
	}
	return "template"
}

// refersElsewhere reports whether parts of a template are in other files.
func refersElsewhere(doc map[string]any) bool {
	if list, isList := doc[keyBase].([]any); doc[keyBase] != nil && (!isList || len(list) > 0) {
		return true
	}
	for _, key := range []string{keyProvision, keyProbes} {
		list, _ := doc[key].([]any)
		if slices.ContainsFunc(list, func(entry any) bool {
			script, _ := entry.(map[string]any)
			return script["file"] != nil
		}) {
			return true
		}
	}
	return false
}

// embed returns the whole text of a template, parsed.
func (e *expander) embed(ctx context.Context, dir, text string) (map[string]any, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := [2]string{dir, text}
	if known, ok := e.known[key]; ok {
		return known.doc, known.err
	}
	var answer struct{ Template string }
	var refused *refusedError
	err := e.provider.runIn(ctx, e.provider.host.environment(), []byte(text), &answer, nil, "embed", dir)
	if errors.As(err, &refused) {
		err = errors.New(refused.reason)
	}
	var doc map[string]any
	if err == nil {
		doc, err = yamltext.Parse(answer.Template)
	}
	if e.known == nil {
		e.known = map[[2]string]expansion{}
	}
	e.known[key] = expansion{doc: doc, err: err}
	return doc, err
}

// withoutSet returns a template without the fields that are of its bases alone and that the block sets by its own words:
// there is no text of the user's from which to take them. own is the text of the user's; nil: there is none.
func withoutSet(want cty.Value, own, doc map[string]any) map[string]any {
	set := map[string]bool{
		keyImages:   ctyread.KnownAttr(want, "image") != cty.NilVal,
		keyMounts:   len(ctyread.List(ctyread.Attr(want, "mount"))) > 0,
		keyForwards: len(ctyread.List(ctyread.Attr(want, "port_forward"))) > 0,
		keyDisks:    len(ctyread.List(ctyread.Attr(want, "additional_disk"))) > 0,
		keyPlain:    ctyread.True(want, "plain"),
	}
	rest := map[string]any{}
	for key, value := range doc {
		if _, users := own[key]; value != nil && (users || !set[key]) {
			rest[key] = value
		}
	}
	return rest
}
