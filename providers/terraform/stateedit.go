package terraform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// entry is one instance of a resource as a state holds it, with everything that Terraform noted about it.
type entry struct {
	located

	id       string                     // as its provider calls it; "": the provider gives no ID
	flaw     string                     // "tainted" or "deposed"; "": it is whole
	resource map[string]json.RawMessage // the resource, without its instances
	instance json.RawMessage
}

// rawState is a state of which only the resources are understood.
type rawState map[string]json.RawMessage

// parseRaw reads a state that readState took. nil: nothing was made in it yet.
func parseRaw(text []byte) (rawState, []map[string]json.RawMessage, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil, nil
	}
	var raw rawState
	var resources []map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, nil, err
	}
	if len(raw["resources"]) > 0 {
		if err := json.Unmarshal(raw["resources"], &resources); err != nil {
			return nil, nil, err
		}
	}
	return raw, resources, nil
}

// entriesOf lists the instances of the managed resources in a state, in its order.
func entriesOf(text []byte) ([]entry, error) {
	_, resources, err := parseRaw(text)
	if err != nil {
		return nil, err
	}
	var all []entry
	for _, r := range resources {
		instances, err := entriesIn(r)
		if err != nil {
			return nil, err
		}
		all = append(all, instances...)
	}
	return all, nil
}

func entriesIn(r map[string]json.RawMessage) ([]entry, error) {
	var known stateResource
	var instances []json.RawMessage
	head := map[string]json.RawMessage{}
	for name, value := range r {
		if name == "instances" {
			if err := json.Unmarshal(value, &instances); err != nil {
				return nil, err
			}
			continue
		}
		head[name] = value
	}
	text, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(text, &known)
	}
	if err != nil || known.Mode != "managed" {
		return nil, err
	}
	var all []entry
	for i, instance := range instances {
		var attributes struct {
			Attributes struct {
				ID any `json:"id"`
			} `json:"attributes"`
		}
		if err := json.Unmarshal(instance, &attributes); err != nil {
			return nil, err
		}
		e := entry{located: known.located(known.Instances[i]), flaw: known.Instances[i].flaw(), resource: head, instance: instance}
		if id := attributes.Attributes.ID; id != nil {
			e.id = fmt.Sprint(id)
		}
		all = append(all, e)
	}
	return all, nil
}

// stateEdit is an edit of a state that nobody else writes.
type stateEdit struct {
	lineage string                    // of a state that is not there yet
	drop    func(address string) bool // nil: nothing
	add     []entry
}

// apply returns the state after the edit, as a later one than the state before.
func (e stateEdit) apply(text []byte) ([]byte, error) {
	raw, resources, err := parseRaw(text)
	if err != nil {
		return nil, err
	}
	if raw == nil {
		lineage, err := json.Marshal(e.lineage)
		if err != nil {
			return nil, err
		}
		raw = rawState{"version": json.RawMessage("4"), "terraform_version": json.RawMessage(`"` + oldestTerraform + `"`), "serial": json.RawMessage("0"), "lineage": lineage, "outputs": json.RawMessage("{}")}
	}
	var serial uint64
	if err := json.Unmarshal(raw["serial"], &serial); err != nil {
		return nil, err
	}
	if resources, err = e.resources(resources); err != nil {
		return nil, err
	}
	if raw["resources"], err = json.Marshal(resources); err != nil {
		return nil, err
	}
	raw["serial"] = json.RawMessage(fmt.Sprint(serial + 1))
	return json.MarshalIndent(raw, "", "  ")
}

func (e stateEdit) resources(all []map[string]json.RawMessage) ([]map[string]json.RawMessage, error) {
	kept := []map[string]json.RawMessage{}
	for _, r := range all {
		instances, err := entriesIn(r)
		if err != nil {
			return nil, err
		}
		left := slices.DeleteFunc(slices.Clone(instances), func(i entry) bool { return e.drop != nil && e.drop(i.address) })
		if len(left) < len(instances) {
			if len(left) == 0 {
				continue
			}
			r = left[0].whole(left[1:]...)
		}
		kept = append(kept, r)
	}
	for _, added := range e.add {
		at := slices.IndexFunc(kept, func(r map[string]json.RawMessage) bool { return sameResource(r, added.resource) })
		if at < 0 {
			kept = append(kept, added.whole())
			continue
		}
		there, err := entriesIn(kept[at])
		if err != nil {
			return nil, err
		}
		kept[at] = added.whole(there...)
	}
	return kept, nil
}

// whole returns the resource of an instance, with this and other instances.
func (e entry) whole(others ...entry) map[string]json.RawMessage {
	parts := []string{}
	for _, o := range append(others, e) {
		parts = append(parts, string(o.instance))
	}
	r := map[string]json.RawMessage{"instances": json.RawMessage("[" + strings.Join(parts, ",") + "]")}
	for name, value := range e.resource {
		r[name] = value
	}
	return r
}

func sameResource(a, b map[string]json.RawMessage) bool {
	for _, name := range []string{"module", "mode", "type", "name"} {
		if !bytes.Equal(bytes.TrimSpace(a[name]), bytes.TrimSpace(b[name])) {
			return false
		}
	}
	return true
}
