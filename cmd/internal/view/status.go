package view

import (
	"slices"
	"strings"

	"vmctl/condition"
	"vmctl/providers"
	"vmctl/spec"
)

// ResourceStatus is the observed status of one address.
type ResourceStatus struct {
	Address    spec.Address        `json:"address"`
	Provider   string              `json:"provider"`
	Object     string              `json:"object"`
	ID         string              `json:"id"`
	State      string              `json:"state"`              // running | stopped | paused | ending | broken | missing | unknown; present: a kind that does not run; not_applicable: inside of an engine of a type in which nothing is managed, or whose VM is to be off
	Reason     string              `json:"reason"`             // why the state is not the usual one
	Endpoint   string              `json:"endpoint"`           // address:port of SSH, "" while there is none
	Networks   []InNetwork         `json:"networks,omitempty"` // of a VM: those that it is in
	Conditions []ConditionDocument `json:"conditions"`
	Settled    ConditionDocument   `json:"settled"`               // true: nothing is left to do about it; else with the reason of what is in the way
	LastAction *ActionDocument     `json:"last_action,omitempty"` // of a command on this container alone
	Facts      *FactsDocument      `json:"facts,omitempty"`       // what the system tells of the object beside its attributes
	Next       []string            `json:"next,omitempty"`        // what to type or do about the state
}

// InNetwork is the place of a VM in a network, as JSON.
type InNetwork struct {
	Network string `json:"network"` // its address, else its name
	Address string `json:"address"` // "": not known
}

// FactsDocument holds what a system tells of an object beside its attributes, as JSON. All keys are always there.
type FactsDocument struct {
	Names    []string          `json:"names"`
	Image    string            `json:"image"`
	Path     string            `json:"path"`
	Ports    []string          `json:"ports"`
	Created  string            `json:"created"` // RFC 3339, "" for never or unknown, like the two below
	Started  string            `json:"started"`
	Ended    string            `json:"ended"`
	Digests  []string          `json:"digests"`
	Platform string            `json:"platform"`
	Size     *int64            `json:"size"` // bytes; null: it is not known
	Labels   map[string]string `json:"labels"`
}

// FactsJSON returns facts as JSON; nil: there are none.
func FactsJSON(f *providers.Facts) *FactsDocument {
	if f == nil {
		return nil
	}
	d := FactsDocument{
		Names: f.Names, Image: f.Image, Path: f.Path, Ports: f.Ports, Created: f.Created, Started: f.Started, Ended: f.Ended,
		Digests: f.Digests, Platform: f.Platform, Size: f.Size, Labels: f.Labels,
	}
	for _, list := range []*[]string{&d.Names, &d.Ports, &d.Digests} {
		if *list == nil {
			*list = []string{}
		}
	}
	if d.Labels == nil {
		d.Labels = map[string]string{}
	}
	return &d
}

// UndeclaredDocument is an object inside of an engine that no block and no record names, as JSON.
type UndeclaredDocument struct {
	Inside spec.Address   `json:"inside"`
	Kind   spec.Kind      `json:"kind"`
	Name   string         `json:"name"`
	ID     string         `json:"id"`
	State  string         `json:"state"`
	Facts  *FactsDocument `json:"facts"` // null: it is gone, or could not be read
}

// StatusDocument is `status` as JSON.
type StatusDocument struct {
	FormatVersion string            `json:"format_version"`
	Project       string            `json:"project"`
	ID            string            `json:"id"`
	Lock          string            `json:"lock"`    // the holder of the run lock, "" for nobody
	Settled       ConditionDocument `json:"settled"` // of all resources; else with the reason of the first that is not
	Resources     []ResourceStatus  `json:"resources"`
	// Undeclared has what is in the engines, and neither in the files nor in the state.
	Undeclared []UndeclaredDocument `json:"undeclared"`
}

// Status shows every resource with its state and its SSH endpoint.
func Status(s Screen, d StatusDocument) {
	p := &page{screen: s}
	if d.Lock != "" {
		p.put(0, 2, in(yellow, "Note:"), txt(" "+d.Lock+"."))
		p.blank()
	}
	if len(d.Resources) == 0 {
		p.put(0, 2, txt("Nothing is wanted and nothing is recorded."))
		p.flush()
		return
	}
	if p.narrow() {
		p.statusList(d.Resources)
	} else {
		p.statusTable(d.Resources)
	}
	var next []string
	for _, r := range d.Resources {
		next = append(next, r.Next...)
	}
	p.seenNext(nil, distinct(next), 0)
	p.settled(d.Settled)
	p.flush()
}

// settled says whether all resources are settled, or what is in the way.
func (p *page) settled(c ConditionDocument) {
	switch c.Status {
	case "":
	case string(condition.True):
		p.blank()
		p.put(0, 2, in(green, "Settled"), txt(": nothing is left to do."))
	default:
		p.blank()
		p.put(0, 2, in(yellow, "Not settled:"), txt(" "+c.Message+"."))
	}
}

// distinct returns the first of each group of equal lines.
func distinct(lines []string) []string {
	var all []string
	for _, line := range lines {
		if !slices.Contains(all, line) {
			all = append(all, line)
		}
	}
	return all
}

func (p *page) statusTable(all []ResourceStatus) {
	address, state, endpoint := len("RESOURCE"), len("STATE"), len("SSH")
	for _, r := range all {
		address = max(address, Width(Text(r.Address.String())))
		state = max(state, len(r.State))
		endpoint = max(endpoint, len(r.Endpoint))
	}
	hang := address + state + endpoint + 6
	p.put(0, hang, padded(in(dim, "RESOURCE"), address+1), txt(" "), padded(in(dim, "STATE"), state+1),
		txt(" "), padded(in(dim, "SSH"), endpoint+1), txt(" "), in(dim, "CONDITIONS"))
	for _, r := range all {
		where := r.Endpoint
		if where == "" {
			where = "-"
		}
		p.put(0, hang, padded(txt(r.Address.String()), address+1), txt(" "), padded(in(stateStyle(r.State), r.State), state+1),
			txt(" "), padded(txt(where), endpoint+1), txt(" "+conditionText(r)))
	}
}

func (p *page) statusList(all []ResourceStatus) {
	for _, r := range all {
		p.put(0, 2, whole(in(bold, r.Address.String())), txt("  "), in(stateStyle(r.State), r.State))
		if r.Endpoint != "" {
			p.put(2, 4, txt(r.Endpoint))
		}
		if text := conditionText(r); text != "" {
			p.put(2, 4, txt(text))
		}
	}
}

func stateStyle(state string) style {
	switch state {
	case "running", "present":
		return green
	case "missing", "unknown":
		return red
	default:
		return yellow
	}
}

// conditionText returns the reason of the state, the addresses in networks, and the conditions that do not follow from
// the state. It names no condition of an unknown state.
func conditionText(r ResourceStatus) string {
	text := r.Reason
	for _, in := range r.Networks {
		if text != "" {
			text += "; "
		}
		text += in.Network + " " + in.Address
	}
	for _, c := range r.Conditions {
		if strings.HasSuffix(c.Type, ".running") || strings.HasPrefix(c.Type, "spec.") || c.Status == "not_applicable" || r.State == "unknown" {
			continue
		}
		if text != "" {
			text += "; "
		}
		text += c.Type + " " + c.Status
		if c.Message != "" && c.Status != string(condition.True) {
			text += ": " + c.Message
		}
	}
	return text
}

// ShowDocument is `show` as JSON.
type ShowDocument struct {
	FormatVersion string          `json:"format_version"`
	Status        ResourceStatus  `json:"status"`
	Wanted        any             `json:"wanted"`   // null: not in the spec
	Observed      any             `json:"observed"` // null: absent or unknown
	Record        *RecordDocument `json:"record"`   // null: none
	Findings      []FindingEntry  `json:"findings"`
}

// RecordDocument is a record as JSON.
type RecordDocument struct {
	Provider   string              `json:"provider"`
	ID         string              `json:"id"`
	Name       string              `json:"name"`
	Generation uint64              `json:"generation"`
	Starts     int                 `json:"starts"`
	Replaced   int                 `json:"replaced"`
	LastStop   string              `json:"last_stop"`
	Spec       string              `json:"spec"`       // digest of the resolved spec of Generation
	Conditions []ConditionDocument `json:"conditions"` // as they were last reported
	Values     any                 `json:"values"`
	Policy     any                 `json:"policy"`
	Sensitive  []string            `json:"sensitive,omitempty"` // paths of the values of which only digests are recorded
	Uses       []string            `json:"uses"`
	Was        []string            `json:"was"` // earlier addresses; the object's mark may still name one
}
