package sim_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vmctl/internal/real"
	"vmctl/providers"
	"vmctl/providers/engine"
	"vmctl/providers/sim"
	"vmctl/search"
	"vmctl/search/depot"
	"vmctl/spec"
)

// engineFault begins the names of the faults that strike engines.
const engineFault = "engine "

// searchedEngines returns a host whose VMs have container engines in place of boxes and desks. vmctl's own provider manages what is
// in these; the engines themselves are files.
func searchedEngines() search.Host {
	h, depots := searched(), &depot.Depots{}
	h.Inside = map[spec.Kind]providers.Type{}
	for _, t := range engine.Types(engine.Host{Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}) {
		if open := t.Open; t.Name == "engine" {
			t.Open = func(ctx context.Context, s providers.Settings) (providers.Provider, error) {
				dir := s.Dir
				s.Via = depots.Via(s.Via, func(vm providers.Object) string { return sim.HomePath(dir, vm.ID) })
				return open(ctx, s)
			}
		}
		for kind := range t.Kinds {
			h.Inside[kind] = t
		}
	}
	block := h.Block
	h.Block = func(all []search.Fault) string {
		return block(slices.DeleteFunc(slices.Clone(all), func(f search.Fault) bool { return strings.HasPrefix(f.Op, engineFault) }))
	}
	h.Strike = func(all []search.Fault) {
		var strikes []string
		for _, f := range all {
			if op, is := strings.CutPrefix(f.Op, engineFault); is {
				strikes = append(strikes, op)
			}
		}
		depots.Set(strikes)
	}
	h.Faults = slices.DeleteFunc(h.Faults, isOfBoxes)
	for _, request := range depot.Requests() {
		h.Faults = append(h.Faults, search.Fault{Op: engineFault + request}, search.Fault{Op: engineFault + "lost " + request})
	}
	h.ExternalChanges = slices.DeleteFunc(h.ExternalChanges, func(c search.ExternalChange) bool {
		return strings.HasSuffix(c.Name, "box") || strings.HasSuffix(c.Name, "desk")
	})
	h.ExternalChanges = append(h.ExternalChanges, inEngines()...)
	h.Work, h.AtWork = nil, nil
	unmanaged := h.Unmanaged
	h.Unmanaged = func(dir string, letGo map[string]bool) (map[string]string, error) {
		all, err := unmanaged(dir, letGo)
		if err == nil {
			all["requests about containers of others"] = strings.Join(depots.Touched(), "\n")
		}
		return all, err
	}
	return h
}

// inEngines lists what others do in engines.
func inEngines() []search.ExternalChange {
	container := func(do func(*depot.Contents, *depot.Container) string) func(string, func(int) int) (string, error) {
		return inEngine(func(c *depot.Contents, pick func(int) int) string {
			if len(c.Containers) == 0 {
				return ""
			}
			one := c.Containers[pick(len(c.Containers))]
			did := do(c, one)
			if did == "" {
				return ""
			}
			return one.Name + " " + did
		})
	}
	return []search.ExternalChange{
		{Name: "remove a container", Do: container(func(c *depot.Contents, one *depot.Container) string {
			c.Containers = slices.DeleteFunc(c.Containers, func(other *depot.Container) bool { return other == one })
			return "is removed"
		})},
		{Name: "end a container", Do: container(func(_ *depot.Contents, one *depot.Container) string { one.State = "exited"; return "ends" })},
		{Name: "pause a container", Do: container(func(_ *depot.Contents, one *depot.Container) string {
			if one.State != "running" {
				return ""
			}
			one.State = "paused"
			return "is paused"
		})},
		{Name: "limit a container", Do: container(func(_ *depot.Contents, one *depot.Container) string {
			one.Memory = 64 << 20
			return "gets another limit"
		})},
		{Name: "rename a container", Do: container(func(c *depot.Contents, one *depot.Container) string {
			if slices.ContainsFunc(c.Containers, func(other *depot.Container) bool { return other.Name == "renamed" }) {
				return ""
			}
			one.Name = "renamed"
			return "has this name now"
		})},
		{Name: "make a container", Do: inEngine(func(c *depot.Contents, pick func(int) int) string {
			name := []string{"aa", "theirs"}[pick(2)]
			for _, one := range c.Containers {
				if one.Name == name {
					return ""
				}
			}
			for _, image := range slices.Sorted(maps.Keys(c.Images)) {
				c.Made++
				theirs := &depot.Container{ID: fmt.Sprintf("f%063x", c.Made), Name: name, Image: c.Images[image], State: "running"}
				theirs.Volumes = slices.Sorted(maps.Keys(c.Volumes))
				c.Containers = append(c.Containers, theirs)
				return name + " is made of " + image
			}
			return ""
		})},
		{Name: "remove an image", Do: inEngine(func(c *depot.Contents, pick func(int) int) string {
			all := slices.DeleteFunc(slices.Sorted(maps.Keys(c.Images)), func(ref string) bool {
				return slices.ContainsFunc(c.Containers, func(one *depot.Container) bool { return one.Image == c.Images[ref] })
			})
			if len(all) == 0 {
				return ""
			}
			ref := all[pick(len(all))]
			delete(c.Images, ref)
			return ref + " is removed"
		})},
		{Name: "remove a volume", Do: inEngine(func(c *depot.Contents, pick func(int) int) string {
			all := slices.DeleteFunc(slices.Sorted(maps.Keys(c.Volumes)), func(name string) bool {
				return slices.ContainsFunc(c.Containers, func(one *depot.Container) bool { return slices.Contains(one.Volumes, name) })
			})
			if len(all) == 0 {
				return ""
			}
			name := all[pick(len(all))]
			delete(c.Volumes, name)
			return name + " is removed"
		})},
	}
}

// inEngine changes one of the engines of all VMs.
func inEngine(do func(c *depot.Contents, pick func(int) int) string) func(string, func(int) int) (string, error) {
	return func(dir string, pick func(int) int) (string, error) {
		var all []string
		err := filepath.WalkDir(filepath.Join(dir, "sim"), func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Name() == depot.File {
				all = append(all, path)
			}
			return err
		})
		if errors.Is(err, fs.ErrNotExist) || len(all) == 0 {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		path := all[pick(len(all))]
		c, err := depot.Read(path)
		if err != nil {
			return "", err
		}
		did := do(&c, pick)
		if did == "" {
			return "", nil
		}
		return "in " + filepath.Base(filepath.Dir(path)) + ": " + did, c.Write(path)
	}
}

func engineCases(few, many int) search.Host {
	h := searchedEngines()
	h.Cases = many
	if testing.Short() {
		h.Cases = few
	}
	return h
}

// row X13, of containers
func TestEditsOfContainers(t *testing.T) { search.Edits(t, engineCases(20, 300)) }

// row X13, of containers
func TestWorldsOfContainers(t *testing.T) { search.Worlds(t, engineCases(20, 200)) }

// row X15, of volumes and containers
func TestLostContainers(t *testing.T) { search.LostState(t, engineCases(20, 200)) }

// row X13, of containers
func TestEveryKillPointOfContainers(t *testing.T) {
	real.Long(t)
	count := 20
	if kills := search.KillPoints(t, searchedEngines(), count); kills < count {
		t.Errorf("%d cases had %d kill points", count, kills)
	}
}

// The search finds each guard of containers that is broken on purpose.
func TestTheSearchFindsBrokenGuardsOfContainers(t *testing.T) {
	for guard, want := range map[search.Guard]string{search.BreakPark: "2", search.BreakUse: "2", search.BreakRelease: "8"} {
		t.Run(string(guard), func(t *testing.T) {
			host := searchedEngines()
			host.Break = guard
			if law, what := search.Broken(t, host, 400); law != want {
				t.Errorf("the search says that law %q is broken, and it is %s:\n%s", law, want, what)
			}
		})
	}
}
