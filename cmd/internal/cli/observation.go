package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"

	"vmctl/cmd/internal/view"
	"vmctl/condition"
	"vmctl/internal/ctyread"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// observation holds the state and the observed world, for a command that changes nothing.
type observation struct {
	project      *project
	snapshot     *state.Snapshot
	holder       *state.Holder // of the run lock; nil: nobody
	world        *planner.World
	observations *planner.Observations
	options      planner.Options
	own          view.OwnFlags
}

// look opens the project, reads the state and observes. The caller closes the world.
func (a *app) observe(ctx context.Context) (s observation, err error) {
	p, err := a.openExisting()
	if err != nil {
		return s, err
	}
	return a.observeProject(ctx, p)
}

// openRecorded is openExisting, and adds the resources that only records name if the spec has
// mistakes.
func (a *app) openRecorded(ctx context.Context) (*project, error) {
	p, err := a.openExisting()
	if err != nil {
		return nil, err
	}
	snapshot, _, err := a.readBeside(ctx, p)
	if err != nil {
		return nil, err
	}
	a.addRecorded(p, snapshot)
	return p, nil
}

// observeProject reads the state of an open project and observes. The caller closes the world.
func (a *app) observeProject(ctx context.Context, p *project) (s observation, err error) {
	return a.observePart(ctx, p, func(*state.Snapshot) func(spec.Address) bool { return func(spec.Address) bool { return true } })
}

// observeAt is observeProject for a command that enters one resource: it looks into nothing but what that is inside of.
func (a *app) observeAt(ctx context.Context, p *project, addr spec.Address) (s observation, err error) {
	return a.observePart(ctx, p, func(snapshot *state.Snapshot) func(spec.Address) bool { return p.around(snapshot, addr) })
}

// around returns a function that tells an address, those that it had before, and what they are inside of from all others.
func (p *project) around(s *state.Snapshot, addr spec.Address) func(spec.Address) bool {
	kept := map[spec.Address]bool{}
	for todo := append(p.formerly(s, addr), addr); len(todo) > 0; todo = todo[1:] {
		one := todo[0]
		if kept[one] {
			continue
		}
		kept[one] = true
		r, _ := p.config.Resource(one)
		for _, outer := range []spec.Address{r.Inside, s.Records[one].Inside} {
			if (outer != spec.Address{}) {
				todo = append(todo, outer)
			}
		}
	}
	return func(a spec.Address) bool { return kept[a] }
}

// observePart is observeProject for some addresses of the project.
func (a *app) observePart(ctx context.Context, p *project, part func(*state.Snapshot) func(spec.Address) bool) (s observation, err error) {
	snapshot, holder, err := a.readBeside(ctx, p)
	if err != nil {
		return s, err
	}
	a.addRecorded(p, snapshot)
	o := planner.Options{Types: a.types, Project: p.owner, DigestKey: p.key}
	keep, seen := part(snapshot), *snapshot
	seen.Records = maps.Clone(seen.Records)
	maps.DeleteFunc(seen.Records, func(at spec.Address, _ state.Record) bool { return !keep(at) })
	world, err := planner.Observe(ctx, a.opener(p), p.config.Only(keep), &seen, o)
	if err != nil {
		return s, errors.Join(err, world.Close())
	}
	a.logObserved(ctx, world)
	return observation{project: p, own: a.ownFlags(planFlags{}), snapshot: snapshot, holder: holder, options: o, world: world, observations: world.Observations(&seen, p.owner)}, nil
}

// observedAddress holds one address's resource, record and object, and any problem with reading them.
type observedAddress struct {
	address  spec.Address
	resource *spec.Resource // nil: not in the spec
	record   *state.Record  // nil: none
	name     string         // of the object, or the one that it would get
	object   *providers.Object
	system   *planner.System
	own      view.OwnFlags
	foreign  string               // why the object of that name is not vmctl's; "" if it is, or if there is none
	unknown  *providers.Problem   // why the object could not be read; nil: it was
	action   *view.ActionDocument // the last one; nil: none
	isOff    spec.Address         // the VM around an engine, if it does not run; zero: it runs, or there is none
	// inapplicable says why nothing inside of the engine around it is managed, or read for good: the engine's type, or a VM that is to be
	// off; "": it is.
	inapplicable string
	begun        string // the step that a run began at it and has not ended; "": none
}

func (s observation) at(addr spec.Address) observedAddress {
	v := observedAddress{address: addr, own: s.own, name: planner.ObjectName(s.project.owner, addr)}
	if r, ok := s.project.config.Resource(addr); ok && !s.project.config.Recorded(addr) {
		v.resource = &r
		if name := ctyread.Text(r.Want, "name"); name != "" {
			v.name = name
		}
	}
	if r, ok := s.snapshot.Records[addr]; ok {
		v.record, v.name, v.action = &r, r.Name, view.ActionJSON(r.LastAction, s.holder)
	}
	found := s.observations.At(addr, v.name)
	v.system, v.unknown = found.System, found.Unknown
	switch found.Marking {
	case planner.Ours:
		v.object = found.Object
	case planner.Absent:
	case planner.Unmarked, planner.Foreign, planner.Copied, planner.Moved:
		v.object = found.Object
		if !found.Recorded {
			v.object = nil
			v.foreign = fmt.Sprintf("%q exists and is not vmctl's", v.name)
			if found.Marking == planner.Moved {
				v.foreign = fmt.Sprintf("%q exists and was moved to another address", v.name)
			}
		}
	default:
		panic("unknown marking " + string(found.Marking))
	}
	if v.object != nil {
		v.name = v.object.Name
	}
	v.begun = s.begun(addr)
	if inEngine(addr.Kind) && v.system != nil && (v.system.IsInapplicable() || v.system.Rests()) && v.unknown != nil {
		v.inapplicable = v.unknown.Error()
	}
	if vm, is := vmAround(s.project, addr); is && addr.Kind == spec.Engine {
		if o := s.at(vm).object; o == nil || o.Running != nil && !*o.Running {
			v.isOff = vm
		}
	}
	return v
}

// begun describes the step that a run has begun at an address and not ended; "" if there is
// none.
func (s observation) begun(addr spec.Address) string {
	for _, e := range s.snapshot.Interrupted {
		switch {
		case e.Address != addr:
		case s.holder != nil:
			return "another run is at it: " + e.Operation()
		default:
			return "an earlier run was cut short: " + e.Operation()
		}
	}
	return ""
}

// status returns the status of an address.
func (v observedAddress) status() view.ResourceStatus {
	s := view.ResourceStatus{Address: v.address, Object: v.name, Conditions: []view.ConditionDocument{}, LastAction: v.action}
	if v.system != nil {
		s.Provider = v.system.Ref.String()
	}
	switch {
	case v.inapplicable != "":
		s.State, s.Reason = notApplicable, v.inapplicable
	case v.unknown != nil:
		s.State, s.Reason, s.Next = "unknown", v.unknown.Error(), v.own.Advice(v.unknown.Next)
	case v.foreign != "":
		s.State, s.Reason = "missing", v.foreign
	case v.object == nil && v.record != nil:
		s.State, s.Reason = "missing", "recorded, and gone"
	case v.object == nil:
		s.State, s.Reason = "missing", "not made yet"
	default:
		s.ID = string(v.object.ID)
		for _, e := range ctyread.List(ctyread.Attr(v.object.Attrs, "network_interface")) {
			s.Networks = append(s.Networks, view.InNetwork{Network: ctyread.Text(e, "network"), Address: ctyread.Text(e, "address")})
		}
		s.State, s.Reason = runState(v.object)
		if !v.runs() {
			s.State, s.Reason = "present", ""
		}
		if s.State == "running" {
			s.Endpoint = endpoint(v.object)
		}
	}
	switch {
	case v.runs():
		s.Conditions = append(s.Conditions, view.ConditionJSON(v.runningCondition(s)))
	case v.address.Kind == spec.Engine:
		s.Conditions = append(s.Conditions, view.ConditionJSON(v.readyCondition()))
	}
	s.Reason = joined(s.Reason, v.begun)
	if v.object != nil && v.runs() {
		for _, f := range v.object.Findings {
			if f.Kind == providers.FindHeldLock {
				s.Reason, s.Next = joined(s.Reason, strings.Join(f.Evidence, "; ")), v.own.Advice(f.Next)
			}
		}
	}
	return s
}

// joined returns two reasons as one.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

func runState(o *providers.Object) (state, reason string) {
	switch {
	case o.Running == nil && o.Unreadable["running"] != "":
		return "unknown", o.Unreadable["running"]
	case o.Running == nil:
		return "unknown", "its run state was not read"
	case *o.Running:
		return "running", ""
	case o.State == providers.StatePaused:
		return "paused", ""
	case o.State == providers.StateEnding:
		return "ending", "it was told to shut down, and has not yet"
	case o.State == providers.StateBroken:
		return "broken", "something of it runs, and does not work"
	default:
		return "stopped", ""
	}
}

// runs reports whether the kind of an address runs or is off.
func (v observedAddress) runs() bool {
	_, is := spec.AttrAt(v.address.Kind, "running")
	return is
}

// runningCondition returns the run state of an object, as it was just observed.
func (v observedAddress) runningCondition(s view.ResourceStatus) condition.Condition {
	c := condition.Condition{
		Report:     condition.Report{Type: string(s.Address.Kind) + ".running", Status: condition.False, Message: s.Reason},
		Generation: v.generation(),
	}
	switch s.State {
	case "running":
		c.Status, c.Reason = condition.True, "Started"
	case "unknown":
		c.Status, c.Reason = condition.Unknown, "Unread"
	case "paused":
		c.Reason, c.Message = "Paused", "paused"
	case "ending":
		c.Reason = "Ending"
	case "broken":
		c.Reason = "Broken"
	case "missing":
		c.Reason = "Missing"
	default:
		c.Reason = condition.Stopped
	}
	if v.system != nil {
		c.Producer = v.system.Ref.Type
	}
	return c
}

// readyCondition returns whether an engine answers, as it was just observed.
func (v observedAddress) readyCondition() condition.Condition {
	c := condition.Condition{Report: condition.Report{Type: condition.EngineReady}, Generation: v.generation(), Producer: string(spec.Engine)}
	switch {
	case v.object != nil && v.isOff == (spec.Address{}) && v.hasNoAPI():
		c.Status, c.Reason = condition.NotApplicable, condition.NoProducer
		c.Message = joined("its type has no API that vmctl speaks", v.finding())
	case v.object != nil:
		c.Status, c.Reason = condition.True, condition.Ready
	case v.isOff != (spec.Address{}):
		c.Status, c.Reason, c.Message = condition.NotApplicable, condition.Stopped, v.isOff.String()+" is off"
	case v.unknown != nil:
		c.Status, c.Reason, c.Message = condition.Unknown, "Unread", v.unknown.Error()
	default:
		c.Status, c.Reason, c.Message = condition.False, "Missing", "vmctl has not connected to it"
	}
	return c
}

// generation returns the generation that the record of an address wants, 0 without one.
func (v observedAddress) generation() uint64 {
	if v.record == nil {
		return 0
	}
	return v.record.Generation
}

// endpoint returns the host and port of an object's SSH, "" if they are unknown.
func endpoint(o *providers.Object) string {
	address, port := ctyread.Text(o.Attrs, "address"), int(ctyread.Uint(o.Attrs, "ssh_port"))
	if len(ctyread.List(ctyread.Attr(o.Attrs, "network_interface"))) > 0 && address != "" { // its port is one of the host
		address = "127.0.0.1"
	}
	if address == "" || port == 0 {
		return ""
	}
	return net.JoinHostPort(address, strconv.Itoa(port))
}
