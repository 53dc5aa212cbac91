package view

import (
	"fmt"
	"strings"
	"time"

	"vmctl/state"
)

// ActionDocument is the last action on a container as JSON.
type ActionDocument struct {
	Action  string     `json:"action"`  // start | stop | pause | unpause | restart
	Result  string     `json:"result"`  // succeeded | failed | running | unknown: its end was not recorded
	Message string     `json:"message"` // why it failed
	Began   time.Time  `json:"began"`
	Ended   *time.Time `json:"ended"` // null: not recorded
}

// The results of an action.
const (
	actionSucceeded = "succeeded"
	actionFailed    = "failed"
	actionRunning   = "running"
	actionUnknown   = "unknown"
)

// ActionJSON returns the last action of a record as JSON. holder holds the run lock; nil: nobody does.
func ActionJSON(last *state.Action, holder *state.Holder) *ActionDocument {
	if last == nil {
		return nil
	}
	d := &ActionDocument{Action: last.Command[strings.LastIndex(last.Command, " ")+1:], Message: last.Failed, Began: last.Began.UTC()}
	switch isAtIt := holder != nil && holder.Command == "vmctl "+last.Command && !holder.Since.After(last.Began); {
	case last.Ended.IsZero() && isAtIt:
		d.Result = actionRunning
	case last.Ended.IsZero():
		d.Result = actionUnknown
	case last.Failed != "":
		d.Result = actionFailed
	default:
		d.Result = actionSucceeded
	}
	if !last.Ended.IsZero() {
		ended := last.Ended.UTC()
		d.Ended = &ended
	}
	return d
}

// actionText returns the last action in words; "" if there is none.
func actionText(d *ActionDocument) string {
	if d == nil {
		return ""
	}
	began := d.Began.Format(time.RFC3339)
	switch d.Result {
	case actionRunning:
		return fmt.Sprintf("%s, running since %s", d.Action, began)
	case actionUnknown:
		return fmt.Sprintf("%s of %s: its end was not recorded", d.Action, began)
	case actionFailed:
		return fmt.Sprintf("%s failed at %s: %s", d.Action, d.Ended.Format(time.RFC3339), d.Message)
	default:
		return fmt.Sprintf("%s succeeded at %s", d.Action, d.Ended.Format(time.RFC3339))
	}
}
