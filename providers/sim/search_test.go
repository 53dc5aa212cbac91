package sim_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"vmctl/internal/real"
	"vmctl/providers"
	"vmctl/providers/providertest/box"
	"vmctl/providers/sim"
	"vmctl/search"
	"vmctl/search/desk"
	"vmctl/spec"
)

var (
	survey   = flag.Bool("search.survey", false, "count the laws that are broken, and go on")
	worldsIn = flag.String("search.dir", "", "where worlds are made, in memory")
)

// row J55, its general half: of the laws
func TestSecrets(t *testing.T) { search.Secrets(t, searched()) }

func searched() search.Host {
	var boxes strikes
	return search.Host{
		Survey: *survey, Dir: *worldsIn,
		Type: sim.Type(sim.Host{Path: os.Getenv("PATH")}), Inside: map[spec.Kind]providers.Type{box.Kind: box.Type(boxes.strike), desk.Kind: desk.Type(boxes.strike)}, Strike: boxes.set,
		Block: func(faults []search.Fault) string {
			var b strings.Builder
			b.WriteString("provider \"sim\" \"here\" {\n  weightless = true\n")
			for _, f := range faults {
				if isOfBoxes(f) {
					continue
				}
				fmt.Fprintf(&b, "  fault {\n    op    = %q\n    kind  = %q\n    times = 1\n  }\n", f.Op, f.Kind)
			}
			b.WriteString("}\n")
			return b.String()
		},
		Faults: faults(),
		ExternalChanges: []search.ExternalChange{
			{Name: "end a VM", Do: onVM(func(f map[string]any) string {
				run, runs := f["run"].(map[string]any)
				if !runs {
					return ""
				}
				run["ended"] = true
				return "ends"
			})},
			{Name: "unmark a VM", Do: onVM(func(f map[string]any) string { delete(f, "owner"); return "loses its mark" })},
			{Name: "change a VM", Do: onVM(func(f map[string]any) string {
				c, whole := f["config"].(map[string]any)
				if !whole {
					return ""
				}
				c["cpus"] = 7
				return "gets 7 CPUs"
			})},
			{Name: "delete a VM", Do: func(dir string, pick func(int) int) (string, error) {
				return onFile(dir, "vms", ".json", pick, func(path string) (string, error) { return "is deleted", os.Remove(path) })
			}},
			{Name: "copy a VM", Do: func(dir string, pick func(int) int) (string, error) {
				return onFile(dir, "vms", ".json", pick, copyVM)
			}},
			{Name: "grow a disk", Do: func(dir string, pick func(int) int) (string, error) {
				return onFile(dir, "disks", ".disk", pick, func(path string) (string, error) { return "grows", os.Truncate(path, 64<<20) })
			}},
			{Name: "delete a disk", Do: func(dir string, pick func(int) int) (string, error) {
				return onFile(dir, "disks", ".disk", pick, func(path string) (string, error) { return "is deleted", os.Remove(path) })
			}},
			{Name: "unmark a disk", Do: func(dir string, pick func(int) int) (string, error) {
				return onFile(dir, "disks", ".mark", pick, func(path string) (string, error) { return "is deleted", os.Remove(path) })
			}},
			{Name: "close a box", Do: onBox(func(f map[string]any) string { f["Open"] = false; return "is closed" })},
			{Name: "write into a box", Do: onBox(func(f map[string]any) string { f["Content"] = "theirs"; return "has another content" })},
			{Name: "unmark a box", Do: onBox(func(f map[string]any) string { delete(f, "Owner"); return "loses its mark" })},
			{Name: "delete a box", Do: func(dir string, pick func(int) int) (string, error) {
				return pickBox(dir, pick, func(path string) (string, error) { return "is deleted", os.RemoveAll(filepath.Dir(path)) })
			}},
			{Name: "work at a desk", Do: atWork},
			{Name: "take a name", Do: func(dir string, pick func(int) int) (string, error) {
				name := []string{"n1", "n2", "demo.a"}[pick(3)]
				if _, err := os.Lstat(filepath.Join(dir, "sim", "vms", name+".json")); err == nil {
					return "", nil
				}
				return "makes " + name, makeVM(dir, name, "theirs-"+name)
			}},
		},
		Work: workIn, AtWork: atWork,
		Make: func(dir, name string) error { return makeVM(dir, name, foundID+name) },
		Unmanaged: func(dir string, letGo map[string]bool) (map[string]string, error) {
			all := map[string]string{}
			files, err := filepath.Glob(filepath.Join(dir, "sim", "vms", "*.json"))
			for _, path := range files {
				content, readErr := os.ReadFile(path)
				err = errors.Join(err, readErr)
				var vm struct {
					ID    string
					Owner *struct{}
				}
				err = errors.Join(err, json.Unmarshal(content, &vm))
				free := vm.Owner == nil && letGo[vm.ID] && !strings.HasPrefix(vm.ID, foundID) // it may be imported again
				if free || strings.Contains(string(content), `"theirs-`) || strings.HasSuffix(path, "-copy.json") {
					all[filepath.Base(path)] = string(content)
				}
			}
			return all, err
		},
		Folders: func(dir string) providers.Settings {
			return providers.Settings{Dir: filepath.Join(dir, "sim"), Keys: filepath.Join(dir, "keys")}
		},
	}
}

const foundID = "found-of-"

// makeVM makes a VM as somebody else would.
func makeVM(dir, name, id string) error {
	path := filepath.Join(dir, "sim", "vms", name+".json")
	text := fmt.Sprintf(`{"format":1,"id":%q,"name":%q,"weightless":true,"config":{"cpus":1,"memory":2147483648,"accel":"auto"}}`, id, name)
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
}

// faults returns the faults that strike a weightless VM without a delay.
func faults() []search.Fault {
	var all []search.Fault
	for _, op := range []string{"define", "redefine", "detach", "start", "stop", "delete", "grow", "unmark"} {
		all = append(all, search.Fault{Op: op, Kind: "fail"}, search.Fault{Op: op, Kind: "partial"})
	}
	return append(all, search.Fault{Op: "wait_ready", Kind: "fail"}, search.Fault{Op: "wait_ready", Kind: "die"}, search.Fault{Op: "start", Kind: "die"},
		search.Fault{Op: "clear", Kind: "fail"}, search.Fault{Op: "box make", Kind: "fail"}, search.Fault{Op: "box open", Kind: "fail"},
		search.Fault{Op: "box close", Kind: "fail"}, search.Fault{Op: "box write", Kind: "fail"}, search.Fault{Op: "box remove", Kind: "fail"})
}

// isOfBoxes reports whether a fault strikes boxes.
func isOfBoxes(f search.Fault) bool { return strings.HasPrefix(f.Op, "box ") }

// strikes holds the faults that strike boxes, each once.
type strikes struct {
	mu  sync.Mutex
	ops []string
}

func (s *strikes) set(faults []search.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ops = nil
	for _, f := range faults {
		if isOfBoxes(f) {
			s.ops = append(s.ops, strings.TrimPrefix(f.Op, "box "))
		}
	}
}

func (s *strikes) strike(op string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.ops, op)
	if i < 0 {
		return nil
	}
	s.ops = slices.Delete(s.ops, i, i+1)
	return errors.New("injected fault")
}

// onFile changes one of the files of a host.
func onFile(dir, folder, suffix string, pick func(int) int, do func(path string) (string, error)) (string, error) {
	all, err := filepath.Glob(filepath.Join(dir, "sim", folder, "*"+suffix))
	if err != nil || len(all) == 0 {
		return "", err
	}
	path := all[pick(len(all))]
	did, err := do(path)
	if did == "" || err != nil {
		return "", err
	}
	return filepath.Base(path) + " " + did, nil
}

func onVM(do func(map[string]any) string) func(string, func(int) int) (string, error) {
	return func(dir string, pick func(int) int) (string, error) {
		return onFile(dir, "vms", ".json", pick, func(path string) (string, error) {
			content, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			var f map[string]any
			if err := json.Unmarshal(content, &f); err != nil {
				return "", err
			}
			did := do(f)
			if did == "" {
				return "", nil
			}
			if content, err = json.Marshal(f); err != nil {
				return "", err
			}
			return did, os.WriteFile(path, content, 0o600)
		})
	}
}

// pickBox changes one of the boxes of all guests.
func pickBox(dir string, pick func(int) int, do func(path string) (string, error)) (string, error) {
	var all []string
	err := filepath.WalkDir(filepath.Join(dir, "sim"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && e.Name() == "box" {
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
	did, err := do(path)
	return strings.TrimPrefix(path, dir) + " " + did, err
}

// desks returns the desks in the VMs of a host: those with vmctl's mark in VMs with that mark, or all.
func desks(dir string, marked bool) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "sim", "vms", "*.json"))
	var all []string
	for _, path := range files {
		var vm struct {
			ID    providers.ID
			Owner *struct{}
		}
		content, readErr := os.ReadFile(path)
		if err = errors.Join(err, readErr, json.Unmarshal(content, &vm)); err != nil {
			return nil, err
		}
		if marked && vm.Owner == nil {
			continue
		}
		found, globErr := filepath.Glob(filepath.Join(sim.HomePath(filepath.Join(dir, "sim"), vm.ID), "desks", "*", "box"))
		err = errors.Join(err, globErr)
		for _, desk := range found {
			var f struct{ Owner *struct{} }
			content, readErr := os.ReadFile(desk)
			if err = errors.Join(err, readErr, json.Unmarshal(content, &f)); err != nil {
				return nil, err
			}
			if f.Owner != nil || !marked {
				all = append(all, filepath.Dir(desk))
			}
		}
	}
	return all, err
}

// workIn returns the work at the desks, with the folder of each.
func workIn(dir string, seen bool) (map[string]string, error) {
	all := map[string]string{}
	folders, err := desks(dir, seen)
	for _, folder := range folders {
		content, readErr := os.ReadFile(filepath.Join(folder, "work"))
		if readErr != nil && !errors.Is(readErr, fs.ErrNotExist) {
			return nil, readErr
		}
		for _, line := range strings.Fields(string(content)) {
			all[line] = strings.TrimPrefix(folder, dir)
		}
	}
	return all, err
}

// atWork leaves work at a desk.
func atWork(dir string, pick func(int) int) (string, error) {
	all, err := desks(dir, false)
	if err != nil || len(all) == 0 {
		return "", err
	}
	folder := all[pick(len(all))]
	text, err := os.ReadFile(filepath.Join(folder, "work"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	line := fmt.Sprintf("%s-%d", strings.ReplaceAll(strings.TrimPrefix(folder, dir), "/", "_"), len(text))
	return line + " is left", os.WriteFile(filepath.Join(folder, "work"), append(text, line+"\n"...), 0o600)
}

func onBox(do func(map[string]any) string) func(string, func(int) int) (string, error) {
	return func(dir string, pick func(int) int) (string, error) {
		return pickBox(dir, pick, func(path string) (string, error) {
			content, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			var f map[string]any
			if err := json.Unmarshal(content, &f); err != nil {
				return "", err
			}
			did := do(f)
			if content, err = json.Marshal(f); err != nil {
				return "", err
			}
			return did, os.WriteFile(path, append(content, '\n'), 0o600)
		})
	}
}

func copyVM(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	name := strings.TrimSuffix(filepath.Base(path), ".json")
	next := filepath.Join(filepath.Dir(path), name+"-copy.json")
	if _, err := os.Lstat(next); !errors.Is(err, fs.ErrNotExist) || strings.Contains(name, "copy") {
		return "", nil
	}
	var f map[string]any
	if err := json.Unmarshal(content, &f); err != nil {
		return "", err
	}
	f["name"], f["id"] = name+"-copy", fmt.Sprint(f["id"], "-copy")
	delete(f, "run")
	if c, ok := f["config"].(map[string]any); ok {
		delete(c, "disks")
		delete(c, "forwards")
	}
	if content, err = json.Marshal(f); err != nil {
		return "", err
	}
	return "is copied", os.WriteFile(next, content, 0o600)
}

// row X13
func TestEditsOfSpecs(t *testing.T) { search.Edits(t, cases(150, 600)) }

// row X13
func TestWorldsOfOthers(t *testing.T) { search.Worlds(t, cases(60, 200)) }

// row X15, of VMs, disks and boxes
func TestLostStates(t *testing.T) { search.LostState(t, cases(60, 200)) }

// Every kill point of fixed cases.
//
// row X13
func TestEveryKillPoint(t *testing.T) {
	real.Long(t)
	count := 60
	if testing.Short() {
		count = 5
	}
	if kills := search.KillPoints(t, searched(), count); kills < count {
		t.Errorf("%d cases had %d kill points", count, kills)
	}
}

// cases returns a host with a number of cases: few in short runs, many otherwise.
func cases(few, many int) search.Host {
	host := searched()
	host.Cases = many
	if testing.Short() {
		host.Cases = few
	}
	return host
}

// The search finds each guard that is broken on purpose, one for each law.
func TestTheSearchFindsBrokenGuards(t *testing.T) {
	for _, guard := range []search.Guard{
		search.BreakEffect, search.BreakStart, search.BreakForeign, search.BreakVerdict, search.BreakStop, search.BreakObserve,
		search.BreakBytes, search.BreakRelease, search.BreakWork,
	} {
		t.Run("law "+string(guard), func(t *testing.T) {
			host := searched()
			host.Break = guard
			if law, what := search.Broken(t, host, 1000); law != string(guard) {
				t.Errorf("the search says that law %q is broken, and it is %s:\n%s", law, guard, what)
			}
		})
	}
	if law, what := search.Broken(t, searched(), 20); law != "" {
		t.Errorf("nothing is broken, and the search says that law %s is:\n%s", law, what)
	}
}
