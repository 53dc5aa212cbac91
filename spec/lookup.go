package spec

import (
	"fmt"
	"slices"
	"strings"
)

// Lookup returns the addresses that a user names on a command line: by an address, or by its last
// part if that is unique. `vm.dev` and `dev` are one resource, `vm.web` and `web` are all
// instances of a for_each, `web["a"]` and, if nothing else has that name, `a` are one of them. It
// returns at least one address, sorted; an unknown or ambiguous text is an error that lists the
// possible ones. If kinds are given, it only looks at these.
func (c *Config) Lookup(text string, kinds ...Kind) ([]Address, error) {
	c = c.ofKinds(kinds)
	whole := func(a Address) bool { return text == a.String() || text == a.Block().String() }
	label := func(a Address) bool {
		kind := string(a.Kind) + "."
		return kind+text == a.String() || kind+text == a.Block().String()
	}
	key := func(a Address) bool { return a.Key != "" && text == a.Key }
	for _, matches := range []func(Address) bool{whole, label, key} {
		found, blocks := c.matching(matches)
		switch {
		case len(found) == 0:
			continue
		case len(blocks) == 1:
			return found, nil
		}
		var names []string
		for _, a := range found {
			names = append(names, a.String())
		}
		return nil, fmt.Errorf("%q could be %s: write the full address", text, strings.Join(names, " or "))
	}
	return nil, fmt.Errorf("%q is not a resource of the spec.%s", shorten(text), c.suggestAddress(text, kinds))
}

// ofKinds returns c with the resources of some kinds; none: of all.
func (c *Config) ofKinds(kinds []Kind) *Config {
	if len(kinds) == 0 {
		return c
	}
	some := &Config{}
	for _, r := range c.Resources {
		if slices.Contains(kinds, r.Address.Kind) {
			some.Resources = append(some.Resources, r)
		}
	}
	return some
}

// matching returns the addresses that match, and their blocks.
func (c *Config) matching(matches func(Address) bool) (found, blocks []Address) {
	for _, r := range c.Resources {
		if !matches(r.Address) {
			continue
		}
		found = append(found, r.Address)
		if block := r.Address.Block(); !slices.Contains(blocks, block) {
			blocks = append(blocks, block)
		}
	}
	return found, blocks
}

func (c *Config) suggestAddress(text string, kinds []Kind) string {
	var whole, labels []string
	for _, r := range c.Resources {
		whole = append(whole, r.Address.String(), r.Address.Block().String())
		labels = append(labels, r.Address.Name)
	}
	if strings.Contains(text, ".") {
		return DidYouMean(text, whole)
	}
	if hint := DidYouMean(text, labels); hint != "" {
		return hint
	}
	if len(c.Resources) == 0 {
		return " The spec has no " + strings.Join(words(kinds), " or ") + "."
	}
	if len(c.Resources) == 1 {
		return fmt.Sprintf(" It has %s.", c.Resources[0].Address)
	}
	return fmt.Sprintf(" It has %s and %d more.", c.Resources[0].Address, len(c.Resources)-1)
}

// words returns the names of kinds; of none: what every kind is.
func words(kinds []Kind) (names []string) {
	for _, kind := range kinds {
		names = append(names, string(kind))
	}
	if len(names) == 0 {
		names = []string{"resources"}
	}
	return names
}
