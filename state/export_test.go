package state

import (
	"encoding/json"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// WithAdvice exports withAdvice: few tests see a disk that is really full.
var WithAdvice = withAdvice

// KeyAdvice exports keyAdvice: a test of root's may read every file.
var KeyAdvice = keyAdvice

// Upgrades returns the upgrades of this build, by the format that they read.
func Upgrades() map[int]Upgrade { return upgrades }

// Upgrade turns one format into the next one.
type Upgrade = upgrade

// Reading returns c with another newest format and with upgrades from the formats
// before it.
func Reading(c Config, newest int, upgrades map[int]Upgrade) Config {
	c.readableFormats = formats{newest: newest, upgrade: upgrades}
	return c
}

// Types are types by which values are read, whatever the kind and the provider.
type Types struct {
	Values           map[string]cty.Type
	Policy, Settings cty.Type
	Shapes           map[spec.Kind]int // nil: those of the spec
	Upgrades         map[int]func(map[string]json.RawMessage) error
}

func (t Types) values(spec.Kind) map[string]cty.Type { return t.Values }
func (t Types) policy(spec.Kind) cty.Type            { return t.Policy }
func (t Types) settings(string) cty.Type             { return t.Settings }

func (t Types) shapes() map[spec.Kind]int {
	if t.Shapes == nil {
		return spec.ShapeVersions()
	}
	return t.Shapes
}

func (t Types) upgrades(spec.Kind) map[int]valuesUpgrade {
	upgrades := map[int]valuesUpgrade{}
	for version, upgrade := range t.Upgrades {
		upgrades[version] = upgrade
	}
	return upgrades
}

// Knowing returns c with other types than those of the spec.
func Knowing(c Config, t Types) Config {
	c.knownTypes = t
	return c
}

// Summed returns the bytes of a snapshot with the checksum that they ought to have.
func Summed(data []byte) []byte {
	rest := data[len(sumBegins)+sumChars:]
	return append(append([]byte(sumBegins), sum(rest)...), rest...)
}
