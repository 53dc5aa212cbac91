package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/atomicfile"
	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// networkFile is one network.
type networkFile struct {
	Format   int          `json:"format"`
	ID       providers.ID `json:"id"`
	Name     string       `json:"name"`
	Owner    *owner       `json:"owner,omitempty"`
	Prefix   netip.Prefix `json:"cidr"`
	Internal bool         `json:"internal,omitempty"`
	// Leases has the addresses in use by what is no VM of the host. vmctl never writes any.
	Leases []netip.Addr `json:"leases,omitempty"`
}

// placed is a network that a VM is defined with. ID is the ID that the network had then.
type placed struct {
	Address spec.Address `json:"address,omitzero"`
	ID      providers.ID `json:"id,omitempty"`
	Name    string       `json:"name"`
	IP      netip.Addr   `json:"ip"`
}

const claimNetworkName = "network name"

func networkNameClaim(name string) providers.Claim {
	return providers.Claim{Kind: claimNetworkName, Key: name}
}

func (p *Provider) networkPath(name string) string { return p.path(networksDir, name+vmSuffix) }

// readNetwork reads a network's file. A missing file is fs.ErrNotExist.
func (p *Provider) readNetwork(name string) (networkFile, error) {
	var f networkFile
	path := p.networkPath(name)
	if err := readJSON(path, &f); err != nil {
		return f, err
	}
	switch {
	case f.Format != fileFormat:
		return f, fmt.Errorf("read %s: it has format %d, and this vmctl knows format %d", path, f.Format, fileFormat)
	case f.Name != name || f.ID == "":
		return f, fmt.Errorf("read %s: it is the file of the network %q (%s)", path, f.Name, f.ID)
	}
	return f, nil
}

// seen returns the network in a spec's words.
func (f networkFile) seen() machine.SeenNetwork {
	return machine.SeenNetwork{
		Network: machine.Network{Prefix: f.Prefix, Internal: f.Internal}, ID: f.ID, Name: f.Name, Mark: f.Owner.mark(),
		Claims: []providers.Claim{networkNameClaim(f.Name)}, Leases: f.Leases,
	}
}

// reportNetworks puts the networks into the inventory.
func (v *viewer) reportNetworks() {
	names, err := v.named(networksDir, vmSuffix)
	if err != nil {
		v.inv.Partial[spec.Network] = providers.Unread(err)
		return
	}
	for _, name := range names {
		f, err := v.readNetwork(name)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was deleted meanwhile
		case err != nil:
			v.inv.Unknown = append(v.inv.Unknown, providers.Unknown{Kind: spec.Network, ID: f.ID, Name: name, Reason: err.Error()})
		default:
			v.networks[f.ID] = f
			v.inv.Objects = append(v.inv.Objects, f.seen().Object())
		}
	}
}

// hideAddresses notes in each network that a VM which could not be read may have an address there. A VM whose record has its ID
// does not count: its addresses are in the record.
func (v *viewer) hideAddresses() {
	why := ""
	if partial := v.inv.Partial[spec.VM]; partial != nil {
		why = "a VM may have one, and they could not all be listed: " + partial.Error()
	}
	for _, u := range v.inv.Unknown {
		if u.Kind == spec.VM && !v.known.isRecorded(u) {
			why = fmt.Sprintf("VM %q may have one, and could not be read: %s", u.Name, u.Reason)
			break
		}
	}
	for i := range v.inv.Objects {
		if o := &v.inv.Objects[i]; o.Kind == spec.Network && why != "" {
			o.Unreadable["addresses"] = why
		}
	}
}

// calledNetwork returns the planner's name of a network: its present address, or its own name.
func (v *viewer) calledNetwork(n placed) string {
	if one, ok := v.known.byID[n.ID]; ok && one.Kind == spec.Network {
		return one.Address.String()
	}
	f, there := v.networks[n.ID]
	if !there {
		return n.Name + " (gone)"
	}
	for _, one := range v.known.imports {
		if one.Kind == spec.Network && f.Owner == nil && v.means(string(one.Import), spec.Network, f.ID, f.Name) {
			return one.Address.String()
		}
	}
	if f.Owner != nil && f.Owner.ID == v.settings.Project.Lineage() {
		return f.Owner.Address.String()
	}
	return f.Name
}

// subnets returns the networks that the simulated host is in, by its block.
func (p *Provider) subnets() []netip.Prefix {
	var all []netip.Prefix
	for _, text := range ctyread.List(ctyread.Attr(p.settings.Attrs, "subnets")) {
		if prefix, err := netip.ParsePrefix(text.AsString()); err == nil {
			all = append(all, prefix)
		}
	}
	return all
}

func (p *Provider) networkSteps(c providers.Change) ([]providers.Step, error) {
	if makes := c.Action == providers.Create || c.Action == providers.ReplaceIt; makes {
		if err := checkName(c.Name); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Address, err)
		}
	}
	return machine.NetworkRecipe(c, machine.NetworkAbilities{
		Policy: machine.DecodePolicy(c.Policy), Change: fileTimeout, Wanted: []providers.Claim{networkNameClaim(c.Name)},
		Leaves: func(_, name string) []string { return []string{"the file " + p.networkPath(name)} },
	}), nil
}

// networkJob is a step on a network.
type networkJob struct {
	*task
	want machine.Network
	seen *networkFile // the network when the step began; nil: there was none
}

// Verb returns the operation of the step.
func (j *networkJob) Verb() (guard.Verb, error) {
	act, known := map[string]machine.Act{
		opDefine: j.define, opRedefine: j.redefine, opDelete: j.delete, opUnmark: j.letGo,
	}[j.Op]
	if !known {
		panic("unknown operation " + j.Op)
	}
	var seen *machine.SeenNetwork
	if j.seen != nil {
		s := j.seen.seen()
		seen = &s
	}
	return machine.NetworkVerb(j.Work, seen, act), nil
}

// Look reads the network that the step is about.
func (j *networkJob) Look(context.Context) (*guard.Seen, error) {
	f, err := j.readNetwork(j.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		j.seen = nil
		return nil, nil
	case err != nil:
		return nil, fail(err, "read the network %s", j.Name)
	case f.ID != j.Object && j.Op == opDefine && f.Owner != nil && f.Owner.ID == j.settings.Project.Lineage() && f.Owner.Address == j.Address:
		return nil, machine.MadeElsewhere(j.Work, "network", j.Name, f.ID)
	case f.ID != j.Object && j.Op == opDefine:
		return nil, &providers.Problem{
			Outcome: providers.Unsafe, Code: "name_taken",
			Next: providers.Say("look at it: "+j.networkPath(j.Name), fmt.Sprintf("set another name in the block of %s", j.Address)),
			Err:  fmt.Errorf("%s %s: a network of the name %s exists already (%s), and it is not the one to be made", j.Op, j.Address, j.Name, f.ID),
		}
	case f.ID != j.Object: // another network has the name, and this one is gone
		j.seen = nil
		return nil, nil
	}
	j.seen = &f
	return f.seen().Guarded(), nil
}

// Guard names the step and its network.
func (j *networkJob) Guard() guard.Guard {
	return guard.Guard{Work: j.Work, Project: j.settings.Project, Thing: "network", Look: func(now guard.Seen) string { return j.networkPath(now.Name) }}
}

// Values returns the attributes of the network that the host sets.
func (j *networkJob) Values(context.Context) (map[string]cty.Value, error) {
	return j.seen.seen().Values(), nil
}

func (j *networkJob) define(context.Context) (*guard.Outcome, error) {
	return j.save(networkFile{ID: j.Object, Name: j.Name, Prefix: j.want.Prefix, Internal: j.want.Internal, Owner: j.mark()})
}

func (j *networkJob) redefine(context.Context) (*guard.Outcome, error) {
	f := *j.seen
	f.Owner = j.mark()
	return j.save(f)
}

func (j *networkJob) letGo(context.Context) (*guard.Outcome, error) {
	f := *j.seen
	f.Owner = nil
	return j.save(f)
}

func (j *networkJob) mark() *owner {
	p := j.settings.Project
	return &owner{ID: p.Lineage(), Project: p.Name, Address: j.Address, Of: j.Object, Generation: j.Generation}
}

func (j *networkJob) save(f networkFile) (*guard.Outcome, error) {
	f.Format = fileFormat
	if err := j.write(j.networkPath(f.Name), f); err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	return guard.Did(providers.Done), nil
}

// delete removes the network, unless a VM is in it.
func (j *networkJob) delete(ctx context.Context) (*guard.Outcome, error) {
	var users []string
	unread, err := j.eachPlaced(ctx, func(vm string, n placed) {
		if n.ID == j.Object && !slices.Contains(users, vm) {
			users = append(users, vm)
		}
	})
	if err := cmp.Or(err, unread); err != nil {
		return nil, fail(err, "%s %s: see who is in it", j.Op, j.Name)
	}
	if len(users) > 0 {
		return nil, machine.NetworkInUse(j.Work, users)
	}
	if err := errors.Join(atomicfile.Remove(j.networkPath(j.Name)), j.sweep()); err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	return guard.Did(providers.Done), nil
}

// eachPlaced calls f with each VM of the host and each network that it is defined or runs with. It passes over VMs that cannot be
// read, and returns an error about the first one.
func (p *Provider) eachPlaced(ctx context.Context, f func(vm string, n placed)) (unread, err error) {
	names, err := p.named(vmsDir, vmSuffix)
	if err != nil {
		return nil, err
	}
	for _, r := range p.readAll(names) {
		if r.err != nil {
			unread = cmp.Or(unread, fmt.Errorf("VM %s may be in any network: %w", r.name, r.err))
			continue
		}
		var all []placed
		if r.Config != nil {
			all = slices.Clone(r.Config.Networks)
		}
		run, err := p.runnerOf(r.vmFile).readRun(r.vmFile)
		switch {
		case err != nil:
			unread = cmp.Or(unread, fmt.Errorf("VM %s may be in any network: %w", r.name, err))
		case run != nil && len(run.With.Networks) > 0 && p.goesOn(ctx, r.vmFile, run):
			all = append(all, run.With.Networks...)
		}
		for _, n := range all {
			f(r.name, n)
		}
	}
	return unread, nil
}

// goesOn reports whether a run that is recorded may go on. The record of a run that vmctl did not see end stays until the
// VM is started or deleted.
func (p *Provider) goesOn(ctx context.Context, f vmFile, run *runFile) bool {
	if fate, _ := p.recorded(run.Process); fate == recordAlive {
		return true // without a search of all processes
	}
	r := p.runnerOf(f)
	seen := r.observe(ctx, f, r.find(ctx, f.Name))
	return seen.on()
}

// networksThere fails unless every network of the wanted VM exists and is the wanted one, and its address there is free. The plan
// has seen to it that no VM which cannot be read has the address.
func (j *job) networksThere(ctx context.Context) error {
	if len(j.want.Networks) == 0 {
		return nil
	}
	for _, n := range j.want.Networks {
		f, err := j.readNetwork(n.Name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return &providers.Problem{
				Outcome: providers.Failed, Code: "no_network", Next: providers.Vmctl("plan"),
				Err: fmt.Errorf("%s %s: its network %s is gone", j.Op, j.Address, n.Name),
			}
		case err != nil:
			return fail(err, "%s %s: read its network %s", j.Op, j.Address, n.Name)
		case f.ID != n.ID:
			return &providers.Problem{
				Outcome: providers.Stale, Code: "stale_plan", Next: providers.Vmctl("plan"),
				Err: fmt.Errorf("%s %s: %s is another network (%s) than it was (%s)", j.Op, j.Address, n.Name, f.ID, n.ID),
			}
		case slices.Contains(f.Leases, n.IP) && !j.has(n):
			return machine.AddressTaken(j.Work, n.IP, n.Name, "a lease of the network")
		}
	}
	var taken error
	_, err := j.eachPlaced(ctx, func(vm string, n placed) { //nolint:errcheck // the plan has judged those that cannot be read
		same := func(w placed) bool { return w.ID == n.ID && w.IP == n.IP }
		if vm != j.Name && taken == nil && slices.ContainsFunc(j.want.Networks, same) {
			taken = machine.AddressTaken(j.Work, n.IP, n.Name, "VM "+vm)
		}
	})
	if err != nil {
		return fail(err, "%s %s: see who has its addresses", j.Op, j.Address)
	}
	return taken
}

// has reports whether the VM has an address already: a lease of it is the VM's own.
func (j *job) has(n placed) bool {
	return j.seen != nil && j.seen.Config != nil && slices.ContainsFunc(j.seen.Config.Networks, func(w placed) bool { return w.ID == n.ID && w.IP == n.IP })
}
