package engine

import (
	"maps"
	"strconv"

	"vmctl/providers"
	"vmctl/spec"
)

// The labels that are the owner mark of an object.
const (
	labelPrefix     = "vmctl."
	labelLineage    = "vmctl.id"
	labelProject    = "vmctl.project"
	labelAddress    = "vmctl.address"
	labelToken      = "vmctl.token" // the ID that was chosen for the object before it was made
	labelName       = "vmctl.name"  // the name that it was made with: what bears this label on another name is a copy
	labelGeneration = "vmctl.generation"
	labelLabels     = "vmctl.labels" // of a container: the names of the labels of its block when it was made, as a list in JSON
)

// markLabels returns the labels of an object that is made: those of the spec and the owner mark.
func markLabels(p providers.Project, w providers.Work, name string, wanted map[string]string) map[string]string {
	all := maps.Clone(wanted)
	if all == nil {
		all = map[string]string{}
	}
	all[labelLineage], all[labelProject], all[labelAddress] = p.Lineage(), p.Name, w.Address.String()
	all[labelToken], all[labelName], all[labelGeneration] = string(w.Object), name, strconv.FormatUint(w.Generation, 10)
	return all
}

// recorded holds the facts of a record about an object.
type recorded struct {
	id        providers.ID
	address   spec.Address
	engineID  string // of a container; "": not known
	forgotten bool   // the state let go of it
}

// identity returns the ID of an object for the planner, and its owner mark. An object with a mark of
// vmctl has the ID that was chosen for it, any other one the engine's. A record beats a mark: whoever may
// make containers can forge one, and a label can never be edited.
func (s seen) identity(p providers.Project, records []recorded, isCopy bool) (providers.ID, *providers.Mark) {
	token := providers.ID(s.labels[labelToken])
	for _, r := range records {
		switch {
		case r.forgotten && (r.id == token && token != "" || string(r.id) == s.id):
			return r.id, nil
		case string(r.id) == s.id, r.id == token && token != "" && (r.engineID == s.id || !isCopy && s.hasOwnName()):
			return r.id, &providers.Mark{ID: p.Lineage(), Project: p.Name, Address: r.address, Of: r.id, Generation: s.generation()}
		}
	}
	if token == "" || s.labels[labelLineage] == "" {
		return providers.ID(s.id), nil
	}
	address, err := spec.ParseAddress(s.labels[labelAddress])
	if err != nil {
		return providers.ID(s.id), nil
	}
	m := &providers.Mark{ID: s.labels[labelLineage], Project: s.labels[labelProject], Address: address, Of: token, Generation: s.generation()}
	if isCopy || !s.hasOwnName() {
		return providers.ID(s.id), m
	}
	return token, m
}

// hasOwnName reports whether an object has the name that its mark was written for, or the one to which vmctl parks it.
func (s seen) hasOwnName() bool { return s.labels[labelName] == s.name || s.isParked() }

// isParked reports whether an object is a container that gave its name to its successor.
func (s seen) isParked() bool {
	return s.kind == spec.Container && s.labels[labelToken] != "" && s.name == parkingName(s.labels[labelName], s.labels[labelToken])
}

// parkingName returns the name of a container while its successor is made.
func parkingName(name, token string) string { return name + ".vmctl-" + token[:min(len(token), 8)] }

func (s seen) generation() uint64 {
	n, err := strconv.ParseUint(s.labels[labelGeneration], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
