//go:build linux

package engine_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// wanted is a container of the random edits, as its block has it.
type wanted struct {
	state   string
	memory  int // in MiB
	mode    string
	restart string
}

// crowd is a spec with containers, which random edits change.
type crowd struct {
	*project

	random *rand.Rand
	all    map[string]wanted // by label
	next   int               // of the modes: no two are alike
}

// Random edits of 20 containers and random acts behind vmctl's back: one apply makes of each what the files say, and then nothing
// is left to do. VMCTL_ENGINE_EDITS is the number of edits, and VMCTL_ENGINE_SEED repeats those of a seed.
func TestRandomEdits(t *testing.T) {
	edits, seed := number(t, "VMCTL_ENGINE_EDITS", 8), number(t, "VMCTL_ENGINE_SEED", rand.IntN(1<<30))
	t.Logf("VMCTL_ENGINE_SEED=%d VMCTL_ENGINE_EDITS=%d", seed, edits)
	c := &crowd{project: projectOf(t, sharedDaemon(t), quick), random: rand.New(rand.NewPCG(uint64(seed), 0)), all: map[string]wanted{}}
	for i := range 20 {
		c.all[fmt.Sprintf("c%d", i)] = c.fresh()
	}
	c.write20()
	c.applies()
	c.check("made")
	for i := range edits {
		what := c.change()
		c.write20()
		c.applies()
		c.check(fmt.Sprintf("edit %d, %s", i, what))
		if t.Failed() {
			return
		}
	}
	c.run(0, "destroy", "--auto-approve")
	if got := slices.Concat(c.names(), c.d.ids()); len(got) > 0 {
		t.Errorf("destroy left %q", got)
	}
}

// number returns the number in a variable.
func number(t *testing.T, name string, other int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return other
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func (c *crowd) pick(all ...string) string { return all[c.random.IntN(len(all))] }

func (c *crowd) fresh() wanted {
	c.next++
	return wanted{"running", 16 + c.random.IntN(8), fmt.Sprintf("m%d", c.next), "no"}
}

// change edits one block, or acts on one container past vmctl, and says what it did.
func (c *crowd) change() string {
	name := c.pick(slices.Sorted(maps.Keys(c.all))...)
	w := c.all[name]
	path := "/containers/demo." + name
	switch what := c.pick("memory", "mode", "restart", "state", "remove", "add", "removed by hand", "stopped by hand", "paused by hand", "limited by hand"); what {
	case "memory":
		w.memory = 16 + c.random.IntN(48)
		c.all[name] = w
		return name + " memory"
	case "mode":
		w.mode = c.fresh().mode
		c.all[name] = w
		return name + " mode"
	case "restart":
		w.restart = c.pick("no", "always", "unless-stopped", "on-failure")
		c.all[name] = w
		return name + " restart"
	case "state":
		w.state = c.pick("running", "created", "paused")
		c.all[name] = w
		return name + " state " + w.state
	case "remove":
		delete(c.all, name)
		added := fmt.Sprintf("n%d", c.next)
		c.all[added] = c.fresh()
		return name + " gives way to " + added
	case "add":
		w.memory, w.mode = 16+c.random.IntN(48), c.fresh().mode
		c.all[name] = w
		return name + " memory and mode"
	case "removed by hand":
		c.d.must("DELETE", path+"?force=1", "")
		return name + " " + what
	case "stopped by hand":
		c.d.must("POST", path+"/stop?t=30", "")
		return name + " " + what
	case "paused by hand":
		if w.state == "running" {
			c.d.must("POST", path+"/pause", "")
		}
		return name + " " + what
	default:
		c.d.must("POST", path+"/update", `{"Memory":68157440,"MemorySwap":136314880}`)
		return name + " " + what
	}
}

// write20 writes the spec of all containers.
func (c *crowd) write20() {
	base, block, _ := strings.Cut(quick, `container "web"`)
	var b strings.Builder
	b.WriteString(base)
	for _, name := range slices.Sorted(maps.Keys(c.all)) {
		w := c.all[name]
		b.WriteString(`container "` + name + `"` + strings.NewReplacer("\n  cpus    = 0.3", "", "32MiB", fmt.Sprintf("%dMiB", w.memory), `"one"`, strconv.Quote(w.mode),
			"\n  mount", fmt.Sprintf("\n  state   = %q\n  restart = %q\n\n  mount", w.state, w.restart)).Replace(block))
	}
	c.main = b.String()
	c.edit()
}

// check demands that the engine has the containers of the files, and no others.
func (c *crowd) check(when string) {
	c.t.Helper()
	var want []string
	for _, name := range slices.Sorted(maps.Keys(c.all)) {
		want = append(want, "/demo."+name)
		w, now := c.all[name], read[container](c.d, "/containers/demo."+name+"/json")
		state := now.State.Status
		if state == "exited" {
			state = "created"
		}
		if state != w.state || now.HostConfig.Memory != int64(w.memory)<<20 || !slices.Contains(now.Config.Env, "MODE="+w.mode) || now.HostConfig.RestartPolicy.Name != w.restart {
			c.t.Errorf("%s: %s is %+v, want %+v", when, name, now, w)
		}
	}
	slices.Sort(want)
	if got := c.names(); !slices.Equal(got, want) {
		c.t.Errorf("%s: there are %q, want %q", when, got, want)
	}
}
