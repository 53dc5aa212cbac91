package cli

import (
	"context"

	"vmctl/cmd/internal/view"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// describe adds what the systems inside of engines tell of their objects: to the status of each resource, and of each object that
// is neither in the files nor in the state.
func (s observation) describe(ctx context.Context, doc *view.StatusDocument) {
	doc.Undeclared = []view.UndeclaredDocument{}
	places := map[*planner.System]map[objectKey]int{} // the resource of each object
	for i, r := range doc.Resources {
		v := s.at(r.Address)
		if v.object == nil || v.system == nil {
			continue
		}
		if places[v.system] == nil {
			places[v.system] = map[objectKey]int{}
		}
		places[v.system][objectKey{v.object.Kind, v.object.ID}] = i
	}
	for _, system := range s.world.Systems() {
		facts := describe(ctx, system, system.Inventory.Objects)
		if facts == nil {
			continue
		}
		for i, o := range system.Inventory.Objects {
			told := view.FactsJSON(facts[i])
			if at, is := places[system][objectKey{o.Kind, o.ID}]; is {
				doc.Resources[at].Facts = told
				continue
			}
			doc.Undeclared = append(doc.Undeclared, view.UndeclaredDocument{
				Inside: system.Inside, Kind: o.Kind, Name: o.Name, ID: string(o.ID), State: o.State, Facts: told,
			})
		}
	}
}

// objectKey names an object of one system.
type objectKey struct {
	kind spec.Kind
	id   providers.ID
}

// describe returns what a system tells of objects, in their order; nil: it is none that tells anything.
func describe(ctx context.Context, system *planner.System, all []providers.Object) []*providers.Facts {
	if system.Provider == nil {
		return nil
	}
	describer, is := providers.Ability[providers.Describer](system.Provider)
	if !is {
		return nil
	}
	return describer.Describe(ctx, all)
}
