package terraform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// stateFile is the state of a workspace, in the format of `terraform state pull`.
type stateFile struct {
	Version          int                    `json:"version"`
	TerraformVersion string                 `json:"terraform_version"`
	Serial           uint64                 `json:"serial"`
	Lineage          string                 `json:"lineage"`
	Outputs          map[string]stateOutput `json:"outputs"`
	Resources        []stateResource        `json:"resources"`
	Encrypted        json.RawMessage        `json:"encrypted_data"` // by OpenTofu, in place of all else
}

type stateOutput struct {
	Value     json.RawMessage `json:"value"`
	Type      json.RawMessage `json:"type"`
	Sensitive bool            `json:"sensitive"`
}

type stateResource struct {
	Module    string          `json:"module"`
	Mode      string          `json:"mode"`
	Type      string          `json:"type"`
	Name      string          `json:"name"`
	Instances []stateInstance `json:"instances"`
}

type stateInstance struct {
	IndexKey any    `json:"index_key"`
	Status   string `json:"status"`
	Deposed  string `json:"deposed"`
}

// readState reads a state. An empty text is the state of a workspace in which nothing was made yet.
func readState(text []byte) (*stateFile, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return &stateFile{}, nil
	}
	var s stateFile
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("it is no state of a Terraform module: %w", err)
	}
	if len(s.Encrypted) > 0 {
		return nil, errors.New("OpenTofu has encrypted it, and vmctl reads plain states only")
	}
	if s.Version != 4 {
		return nil, errors.New("its format is unknown: it may be of another version of Terraform")
	}
	return &s, nil
}

// managed lists the resources that exist and are not shared, as Terraform calls them.
func (s *stateFile) managed(without shared) []string {
	var all []string
	for _, r := range s.Resources {
		if r.Mode != "managed" {
			continue
		}
		for _, i := range r.Instances {
			if !without.has(r.located(i)) {
				all = append(all, r.address(i))
			}
		}
	}
	slices.Sort(all)
	return all
}

// flawed lists the resources that Terraform would replace because their creation failed.
func (s *stateFile) flawed() []string {
	var all []string
	for _, r := range s.Resources {
		for _, i := range r.Instances {
			if i.flaw() == tainted {
				all = append(all, r.address(i))
			}
		}
	}
	slices.Sort(all)
	return all
}

// copies lists the instances of which a deposed copy is left.
func (s *stateFile) copies() []located {
	var all []located
	for _, r := range s.Resources {
		for _, i := range r.Instances {
			if at := r.located(i); i.flaw() == deposed && !slices.Contains(all, at) {
				all = append(all, at)
			}
		}
	}
	slices.SortFunc(all, func(a, b located) int { return strings.Compare(a.address, b.address) })
	return all
}

// The flaws of an instance: Terraform destroys it with its next apply.
const (
	tainted = "tainted" // its creation failed
	deposed = "deposed" // a replacement took its place, and its destruction failed
)

// flaw returns the flaw of an instance. "": it is whole.
func (i stateInstance) flaw() string {
	switch {
	case i.Deposed != "":
		return deposed
	case i.Status == tainted:
		return tainted
	default:
		return ""
	}
}

// located returns the place of an instance, deposed or not.
func (r stateResource) located(i stateInstance) located {
	return located{address: r.address(stateInstance{IndexKey: i.IndexKey}), base: r.address(stateInstance{})}
}

func (r stateResource) address(i stateInstance) string {
	var b strings.Builder
	if r.Module != "" {
		b.WriteString(r.Module + ".")
	}
	b.WriteString(r.Type + "." + r.Name)
	switch key := i.IndexKey.(type) {
	case string:
		fmt.Fprintf(&b, "[%q]", key)
	case float64:
		fmt.Fprintf(&b, "[%d]", int64(key))
	}
	if i.Deposed != "" {
		b.WriteString(" (deposed)")
	}
	return b.String()
}

// output returns the value of an output. cty.NilVal: there is none.
func (s *stateFile) output(name string) cty.Value {
	o, ok := s.Outputs[name]
	if !ok {
		return cty.NilVal
	}
	t, err := ctyjson.UnmarshalType(o.Type)
	if err != nil {
		return cty.NilVal
	}
	v, err := ctyjson.Unmarshal(o.Value, t)
	if err != nil {
		return cty.NilVal
	}
	return v
}

// outputNames lists the outputs.
func (s *stateFile) outputNames() []string { return slices.Sorted(maps.Keys(s.Outputs)) }
