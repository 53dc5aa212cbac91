package state

import (
	"fmt"
	"time"

	"vmctl/condition"
)

// conditionFile is a condition of a record in a file, under its type.
type conditionFile struct {
	Status     condition.Status `json:"status"`
	Reason     string           `json:"reason,omitempty"`
	Message    string           `json:"message,omitempty"`
	Terminal   bool             `json:"terminal,omitempty"`
	Generation *uint64          `json:"generation,omitempty"` // nil: that of the record
	Since      time.Time        `json:"since,omitzero"`
	Producer   string           `json:"producer,omitempty"` // "": the provider type of the record
}

// conditionsFile returns the conditions of a record as they are in a file.
func conditionsFile(r Record) map[string]conditionFile {
	if len(r.Conditions) == 0 {
		return nil
	}
	all := make(map[string]conditionFile, len(r.Conditions))
	for _, c := range r.Conditions {
		f := conditionFile{Status: c.Status, Reason: c.Reason, Message: c.Message, Terminal: c.Terminal, Since: c.Since}
		if c.Generation != r.Generation {
			f.Generation = &c.Generation
		}
		if c.Producer != r.Provider.Type {
			f.Producer = c.Producer
		}
		all[c.Type] = f
	}
	return all
}

// readConditions returns the conditions of a record whose provider is known.
func (r Record) readConditions(f recordFile) (condition.Set, error) {
	var all condition.Set
	for kind, c := range readyUpgraded(f).Conditions {
		switch c.Status {
		case condition.True, condition.False, condition.Unknown, condition.NotApplicable:
		default:
			return nil, fmt.Errorf("its condition %s has the unknown status %q", kind, c.Status)
		}
		stamp := condition.Stamp{Generation: f.Generation, At: c.Since, Producer: c.Producer}
		if c.Generation != nil {
			stamp.Generation = *c.Generation
		}
		if stamp.Producer == "" {
			stamp.Producer = r.Provider.Type
		}
		all = all.With(condition.Report{Type: kind, Status: c.Status, Reason: c.Reason, Message: c.Message, Terminal: c.Terminal}, stamp)
	}
	return all, nil
}

// readyUpgraded returns a record of a build that knew no conditions with its readiness as one: the VM
// was ready as its record says, since a time that nobody wrote down.
func readyUpgraded(f recordFile) recordFile {
	if f.Ready && f.Conditions == nil {
		f.Conditions = map[string]conditionFile{condition.SSHReady: {Status: condition.True, Reason: condition.Ready}}
	}
	f.Ready = false
	return f
}
