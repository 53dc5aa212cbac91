package lima

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"vmctl/internal/yamltext"
)

// base returns what a template came to in a definition: all that no attribute set.
func base(doc map[string]any, keys, params []string) map[string]any {
	rest := map[string]any{}
	for key, value := range doc {
		switch {
		case slices.Contains(keys, key):
		case key == keyProvision:
			list, _ := value.([]any)
			if kept := slices.DeleteFunc(slices.Clone(list), isOwnScript); len(kept) > 0 {
				rest[key] = kept
			}
		case key == keyForwards:
			list, _ := value.([]any)
			if kept := slices.DeleteFunc(slices.Clone(list), isIgnored); len(kept) > 0 {
				rest[key] = kept
			}
		case key == keyParams && len(params) > 0:
			all, _ := value.(map[string]any)
			kept := map[string]any{}
			for name, v := range all {
				if !slices.Contains(params, name) {
					kept[name] = v
				}
			}
			if len(kept) > 0 {
				rest[key] = kept
			}
		default:
			rest[key] = value
		}
	}
	return rest
}

func baseDigest(doc map[string]any, keys, params []string) string {
	text, err := yamltext.Marshal(base(doc, keys, params))
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// templateOf returns the template that a definition has in it, canonical; "": there is none. m is the
// mark beside the definition; nil: attributes set whatever they can.
func templateOf(doc map[string]any, m *mark) string {
	keys, params := attributeKeys, []string(nil)
	if m != nil {
		keys, params = m.Keys, m.Params
		if baseDigest(doc, keys, params) == m.Base {
			return m.Template
		}
	}
	rest := base(doc, keys, params)
	if len(rest) == 0 {
		return ""
	}
	text, err := yamltext.Marshal(rest)
	if err != nil { // it was parsed a moment ago
		return ""
	}
	return text
}
