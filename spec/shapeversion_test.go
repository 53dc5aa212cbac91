package spec_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers/providertest/box"
	"vmctl/spec"
)

// recorded lists every part of the values of a kind, with its type: "stop.grace number".
func recorded(kind spec.Kind) []string {
	var all []string
	add(&all, "values", cty.Object(spec.ValueTypes(kind)))
	add(&all, "policy", spec.PolicyType(kind))
	slices.Sort(all)
	return all
}

func add(all *[]string, path string, t cty.Type) {
	switch {
	case t.IsObjectType():
		for name, of := range t.AttributeTypes() {
			add(all, path+"."+name, of)
		}
	case t.IsCollectionType():
		add(all, path+strings.TrimSuffix(" "+t.FriendlyName(), " of "+t.ElementType().FriendlyName()), t.ElementType())
	default:
		*all = append(*all, path+" "+t.FriendlyName())
	}
}

// Within one version of a kind's shape values are only added: what an earlier build recorded, this
// one can read as it was meant. UPDATE=1 adds what is new to the files in testdata/shapes.
func TestShapesOnlyGrow(t *testing.T) {
	path := filepath.Join("testdata", "shapes.json")
	var before map[spec.Kind]struct {
		Version int      `json:"version"`
		Parts   []string `json:"parts"`
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &before); err != nil {
		t.Fatal(err)
	}
	versions := spec.ShapeVersions()
	delete(versions, box.Kind) // only tests have it: no earlier build recorded one
	for _, kind := range slices.Sorted(maps.Keys(versions)) {
		old, now := before[kind], recorded(kind)
		if versions[kind] < max(1, old.Version) {
			t.Errorf("the shape of %s has version %d, and had %d", kind, versions[kind], old.Version)
		}
		for _, part := range old.Parts {
			if !slices.Contains(now, part) && versions[kind] == old.Version {
				t.Errorf("%s has no %s any more: give its shape the next version, and package state an upgrade", kind, part)
			}
		}
		if os.Getenv("UPDATE") == "" && !slices.Equal(old.Parts, now) {
			t.Errorf("%s has other parts than %s: UPDATE=1 go test ./spec writes it anew", kind, path)
		}
		old.Version, old.Parts = versions[kind], now
		before[kind] = old
	}
	if os.Getenv("UPDATE") == "" || t.Failed() {
		return
	}
	if text, err = json.MarshalIndent(before, "", "  "); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}
