package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"vmctl/cmd/internal/view"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

type cleanupDocument struct {
	FormatVersion string       `json:"format_version"`
	Engine        spec.Address `json:"engine"`
	Kind          spec.Kind    `json:"kind"`
	Name          string       `json:"name"`
	Result        string       `json:"result"`
}

// castoff is an object of an engine that the user names to be removed.
type castoff struct {
	engine spec.Address
	kind   spec.Kind
	name   string
}

// String returns the text that names the object.
func (c castoff) String() string { return c.engine.String() + "/" + string(c.kind) + "/" + c.name }

// castoffOf reads the name of an object of an engine. The names of images have slashes.
func castoffOf(p *project, text string) (castoff, error) {
	var c castoff
	engine := text
	for _, kind := range []spec.Kind{spec.Container, spec.Image, spec.Network, spec.Volume} {
		before, name, found := strings.Cut(text, "/"+string(kind)+"/")
		if found && name != "" && len(before) < len(engine) {
			engine, c.kind, c.name = before, kind, name
		}
	}
	if c.name != "" {
		var err error
		c.engine, err = oneOfKind(p, spec.Engine, engine)
		return c, err
	}
	return castoff{}, rejected("usage", "cleanup: "+quoted(text)+" names no object of an engine", "write it like engine.here/container/old; the kinds are container, image, network and volume")
}

// cleanupCastoff removes one object of an engine.
func (a *app) cleanupCastoff(ctx context.Context, text string, apply applyFlags) error {
	a.streams = false // it is one document
	p, err := a.open()
	if err != nil {
		return err
	}
	c, err := castoffOf(p, text)
	if err != nil {
		return err
	}
	return a.rewrite(ctx, p, a.lockOwner(p, "cleanup", lockWait{apply}), func(state.Journal) (err error) {
		s, err := a.observeProject(ctx, p)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.world.Close()) }()
		if err := s.at(c.engine).needsAPI("remove " + c.String()); err != nil {
			return err
		}
		system, o, err := a.findCastoff(s, c)
		if err != nil {
			return err
		}
		cleaner, err := a.mayGo(s, c, system, o)
		if err != nil {
			return err
		}
		if !apply.approved {
			err := a.ask(ctx, question{
				text: "Remove " + described(c, o) + "?", command: "cleanup", nothing: "cleanup: nothing was done: ",
				approve: a.commandLine("cleanup", planFlags{}, "--auto-approve", text),
			})
			if err != nil {
				return err
			}
		}
		how, err := cleaner.CleanUp(ctx, *o)
		if err != nil {
			return err
		}
		doc := cleanupDocument{view.FormatVersion, c.engine, c.kind, o.Name, "removed"}
		object := string(c.kind) + " " + o.Name + " of " + c.engine.String()
		said := "Removed " + object + "."
		if how == providers.AlreadyGone {
			doc.Result, said = "already_gone", "It was gone already: "+object+"."
		}
		a.show(doc, func(s view.Screen) { view.Note(s, said) })
		return nil
	})
}

// described describes an object in a question.
func described(c castoff, o *providers.Object) string {
	text := string(c.kind) + " " + o.Name + " of " + c.engine.String()
	if c.kind == spec.Volume {
		text += ", with all of its data"
	}
	return text
}

// findCastoff finds an object by its name or its ID. An image may be named without its registry.
func (a *app) findCastoff(s observation, c castoff) (*planner.System, *providers.Object, error) {
	var near []string
	for _, system := range s.world.Systems() {
		if system.Inside != c.engine {
			continue
		}
		for i := range system.Inventory.Objects {
			o := &system.Inventory.Objects[i]
			isImage := c.kind == spec.Image && slices.Contains([]string{"docker.io/" + c.name, "docker.io/library/" + c.name}, string(o.ID))
			switch {
			case o.Kind != c.kind:
			case o.Name == c.name, string(o.ID) == c.name, isImage:
				return system, o, nil
			default:
				near = append(near, o.Name)
			}
		}
		if why := system.Inventory.Partial[c.kind]; why != nil {
			return nil, nil, unreadCastoff(c, why)
		}
		e := newProblem(classFailed, "missing", "cleanup: "+c.String()+" does not exist", a.commandLine("status", planFlags{})+" shows what there is")
		if len(near) > 0 {
			e.Seen = []string{"there are " + strings.Join(near[:min(len(near), 10)], ", ")}
		}
		return nil, nil, e
	}
	if v := s.at(c.engine); v.unknown != nil {
		return nil, nil, unreadCastoff(c, v.unknown)
	}
	return nil, nil, newProblem(classFailed, "missing", "cleanup: "+c.engine.String()+" is not there, or the VM around it is off", a.commandLine("status", planFlags{}))
}

func unreadCastoff(c castoff, why *providers.Problem) error {
	e := newProblem(classRefused, "unknown", "cleanup: "+c.String()+" could not be read")
	e.Seen, e.err = []string{why.Error()}, why
	return e
}

// mayGo fails unless an object is nobody's, and nobody uses it.
func (a *app) mayGo(s observation, c castoff, system *planner.System, o *providers.Object) (providers.Cleaner, error) {
	cleaner, able := providers.Ability[providers.Cleaner](system.Provider)
	if !able {
		return nil, fmt.Errorf("cleanup: %s removes no objects", system.Ref)
	}
	refused := func(code, why string, next ...string) *problem {
		return newProblem(classRefused, code, "cleanup: "+c.String()+" stays: "+why, next...)
	}
	if o.Protected != "" {
		return nil, refused("retained", o.Protected)
	}
	declared := known(s.project, s.snapshot)
	for _, addr := range declared {
		if at := s.at(addr); at.object != nil && addr.Kind == o.Kind && at.system == system && at.object.ID == o.ID {
			return nil, refused("declared", "it is "+addr.String(), "to remove it, delete its block and apply: "+a.commandLine("plan", planFlags{}))
		}
	}
	if planner.MarkingOf(o, s.project.owner) == planner.Ours && slices.Contains(declared, o.Owner.Address) { // by another block of its engine
		return nil, refused("declared", "it is "+o.Owner.Address.String(), "to remove it, delete its block and apply: "+a.commandLine("plan", planFlags{}))
	}
	if o.Owner != nil && planner.MarkingOf(o, s.project.owner) == planner.Foreign {
		return nil, refused("not_ours", "it is "+o.Owner.Address.String()+" of the project "+quoted(o.Owner.Project), "destroy it there")
	}
	steps, err := system.Provider.Steps(providers.Change{Address: spec.Address{Kind: o.Kind, Name: "cleanup"}, Kind: o.Kind, Action: providers.Destroy, Name: o.Name, ID: o.ID, Object: o})
	if err != nil {
		return nil, err
	}
	for _, step := range steps {
		if step.Phase == providers.PhaseDown {
			return nil, refused("retained", "it is "+o.State, "stop it first, with what started it")
		}
		if user := userOf(system, o, step.Takes); user != nil {
			return nil, refused("retained", string(user.Kind)+" "+user.Name+" uses it", "remove that first, if nobody needs it: "+
				a.commandLine("cleanup", planFlags{}, castoff{c.engine, user.Kind, user.Name}.String()))
		}
	}
	if why := system.Inventory.Partial[spec.Container]; why != nil && o.Kind != spec.Container {
		e := refused("unknown", "the containers that may use it could not be read")
		e.Seen = []string{why.Error()}
		return nil, e
	}
	return cleaner, nil
}

// userOf returns the object that holds a claim which the removal of another one takes; nil: none does.
func userOf(system *planner.System, o *providers.Object, takes []providers.Claim) *providers.Object {
	for i := range system.Inventory.Objects {
		user := &system.Inventory.Objects[i]
		holds := slices.Concat(user.Holds, user.HoldsUp)
		if user != o && slices.ContainsFunc(takes, func(t providers.Claim) bool { return slices.Contains(holds, t) }) {
			return user
		}
	}
	return nil
}
