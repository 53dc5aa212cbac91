package planner

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"vmctl/condition"
	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// specDigestChars is the length of a digest of a spec: 64 bits tell the few specs of one address apart.
const specDigestChars = 16

// SpecDigest returns a digest of the resolved spec of a resource: its wanted attributes, its run state
// included, and its policy. Sensitive values are left out, and its name, which may be chosen only when the
// object is made: a change of either shows as an edit. The digest is "" if want is not wholly known.
func SpecDigest(want, policy cty.Value) string {
	if want == cty.NilVal {
		return ""
	}
	sum := sha256.New()
	for _, v := range []cty.Value{without(spec.Withheld(want), "name"), policy} {
		if v == cty.NilVal {
			continue
		}
		if v, _ = v.UnmarkDeep(); !v.IsWhollyKnown() {
			return ""
		}
		text, err := ctyjson.Marshal(v, v.Type())
		if err != nil { // a value that no JSON can hold: it shows as an edit
			return ""
		}
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:specDigestChars]
}

func without(v cty.Value, name string) cty.Value {
	if !v.Type().IsObjectType() || v.IsNull() || !v.IsKnown() || v.IsMarked() || !v.Type().HasAttribute(name) {
		return v
	}
	all := v.AsValueMap()
	delete(all, name)
	return cty.ObjectVal(all)
}

// specDigest returns the digest of the spec of a change, "" of one that changes nothing.
func (c *Change) specDigest() string {
	idle := c.Action == providers.NoOp && !c.Behind
	if c.Want == nil || idle || c.Action == providers.Destroy || c.Action == providers.Forget {
		return ""
	}
	return SpecDigest(c.Change.Want, c.Policy)
}

// isEffective reports whether a change begins another generation: it changes the object, or the spec is not the
// one of the record.
func (c *Change) isEffective() bool {
	other := c.Record != nil && c.Record.Spec != "" && c.Spec != "" && c.Spec != c.Record.Spec
	return c.Alters() || c.newPolicy || other && !c.Behind
}

// conditionsOf returns the conditions of the kind of a change, with their producers.
func (d *differ) conditionsOf(c *Change) []condition.Declared {
	key := declaredKey{c.Provider.Type, c.Kind}
	all, known := d.declared[key]
	if !known {
		all = d.typeOf(c).Conditions(c.Kind)
		d.declared[key] = all
	}
	return all
}

type declaredKey struct {
	provider string
	kind     spec.Kind
}

// Excuses reports whether the policy of a change does not wait for a condition.
func (c *Change) Excuses(kind string) bool {
	return kind == condition.SSHReady && !waitsForSSH(c.Policy)
}

func waitsForSSH(policy cty.Value) bool { return ctyread.True(ctyread.Attr(policy, "ssh"), "wait") }

// unready reports whether a running object was not seen ready as its record says that it should be, since it was
// started or changed, although its policy waits for that. Nothing is unready for a condition that nobody produces.
func (d *differ) unready(c *Change) bool {
	if c.Record == nil { // an object that is adopted as it is counts as ready
		return waitsForSSH(c.Policy) && (c.importing || c.Alters())
	}
	if c.Record.Reserved {
		return false
	}
	return slices.ContainsFunc(c.Conditions, func(wanted condition.Declared) bool {
		now, outcome := c.Record.Conditions.Await(wanted, c.Record.Generation)
		wasOff := now.Reason == condition.Stopped || now.Reason == condition.NotAwaited
		return !c.Excuses(wanted.Type) && (outcome != condition.Met || wasOff)
	})
}

// unreadyReason says why a running object is waited for.
func (c *Change) unreadyReason() string {
	for _, wanted := range c.Conditions {
		if c.Record == nil {
			break
		}
		now, reported := c.Record.Conditions.Of(wanted.Type)
		if reported && now.Status == condition.True && now.Generation < c.Record.Generation {
			return "it runs, and was not seen ready since it was changed"
		}
	}
	return "it runs, and was never ready since it started"
}
