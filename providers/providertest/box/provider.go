package box

import (
	"context"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// Provider manages the boxes of one place: a VM, or a box.
type Provider struct {
	settings providers.Settings
	strike   func(op string) error // nil: no step fails on demand
	kind     spec.Kind
	folder   string // of all boxes in a place
}

var (
	_ providers.Provider = (*Provider)(nil)
	_ providers.Host     = (*Provider)(nil)
)

// Close implements providers.Provider. The guest is not the provider's own.
func (p *Provider) Close() error { return nil }

// Observe implements providers.Provider.
func (p *Provider) Observe(ctx context.Context, q providers.Query) (providers.Inventory, error) {
	inv := providers.Inventory{Partial: map[spec.Kind]*providers.Problem{}, Found: map[spec.Address]providers.ID{}}
	all, err := p.files(ctx)
	if err != nil {
		inv.Partial[p.kind] = providers.Unread(fmt.Errorf("%s gives no answer: %w", p.settings.Via.Address, err))
		return inv, ctx.Err()
	}
	for _, f := range all {
		inv.Objects = append(inv.Objects, p.object(f))
	}
	slices.SortFunc(inv.Objects, func(a, b providers.Object) int { return compare(a.Name, b.Name) })
	inv.FindImports(q)
	return inv, ctx.Err()
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func claim(label string) providers.Claim { return providers.Claim{Kind: "label", Key: label} }

func (p *Provider) object(f file) providers.Object {
	state := providers.StateOff
	if f.Open {
		state = providers.StateRunning
	}
	o := providers.Object{
		Kind: p.kind, ID: f.ID, Name: f.Name, Owner: f.Owner.mark(), Running: &f.Open, State: state,
		Attrs: cty.ObjectVal(map[string]cty.Value{
			"id": cty.StringVal(string(f.ID)), "label": cty.StringVal(f.Label),
			"content": cty.StringVal(f.Content), "paint": cty.StringVal(f.Paint),
		}),
		Holds: []providers.Claim{claim(f.Label)}, Unreadable: map[string]string{}, Fingerprint: p.fingerprint(f),
	}
	if f.Work != "" {
		o.Dirty = []providers.Dirt{{Sort: "work", Items: strings.Fields(f.Work)}}
	}
	if f.Owner != nil && f.Owner.Of != f.ID {
		o.Findings = []providers.Finding{{
			Kind: providers.FindCopy, Object: f.Name, Address: f.Owner.Address, Action: "left alone",
			Evidence: []string{"its mark was written for " + string(f.Owner.Of)},
		}}
	}
	return o
}

func (o *owner) mark() *providers.Mark {
	if o == nil {
		return nil
	}
	return &providers.Mark{ID: o.ID, Project: o.Project, Address: o.Address, Of: o.Of, Generation: o.Generation}
}

func (p *Provider) fingerprint(f file) string {
	var print guard.Print
	print.Add("id", string(f.ID))
	print.Add("label", f.Label)
	print.Add("open", fmt.Sprint(f.Open))
	print.Add("content", guard.Keyed(p.settings.Digest, f.Content))
	print.Add("paint", f.Paint)
	print.Add("work", f.Work)
	print.AddMark(f.Owner.mark())
	return print.String()
}

// Steps implements providers.Provider.
func (p *Provider) Steps(c providers.Change) ([]providers.Step, error) { return Steps(c), nil }

// Steps returns the steps of a change of a box.
func Steps(c providers.Change) []providers.Step {
	s := steps{change: c}
	wantsOpen := ctyread.True(c.Want, "running")
	isOpen := c.Object != nil && c.Object.Running != nil && *c.Object.Running
	switch c.Action {
	case providers.Create:
		s.make()
		s.open(wantsOpen)
	case providers.ReplaceIt:
		s.close(isOpen)
		s.remove()
		s.make()
		s.open(wantsOpen)
	case providers.Update, providers.Import, providers.Recover:
		s.write()
	case providers.RestartIt:
		s.close(isOpen)
		s.write()
		s.open(wantsOpen)
	case providers.Start:
		s.write()
		s.open(true)
	case providers.Stop:
		s.close(true)
		s.write()
	case providers.Destroy:
		if shape, _ := spec.Shape(c.Kind); shape.Work && c.Ends {
			s.add(opCheck, providers.PhaseFree, c.Object.ID).Checks = true
		}
		s.close(isOpen)
		s.remove()
	case providers.Release:
		if isOpen {
			s.add(opClose, providers.PhaseRelease, c.Object.ID)
		}
		if isOpen && wantsOpen {
			s.add(opOpen, providers.PhaseResume, c.Object.ID)
		}
	case providers.Forget:
		if c.Object != nil {
			s.add(guard.OpUnmark, providers.PhaseFree, c.Object.ID) // while the VM still runs
		}
	case providers.Adopt, providers.NoOp:
	default:
		panic("unknown action " + string(c.Action))
	}
	return s.all
}

// The operations on a box; guard.OpUnmark is another.
const (
	opMake   = "make"
	opOpen   = "open"
	opClose  = "close"
	opWrite  = "write"
	opRemove = "remove"
	opCheck  = "check" // that there is no work in it, before it ends with what it is inside of
)

// steps collects the steps of a change.
type steps struct {
	change providers.Change
	all    []providers.Step
}

func (s *steps) add(op string, phase providers.Phase, id providers.ID) *providers.Step {
	s.all = machine.Append(s.all, s.change, providers.Step{Op: op, Words: words[op], Phase: phase, Object: id, Name: s.change.Name, Timeout: timeout})
	return &s.all[len(s.all)-1]
}

func (s *steps) make() {
	step := s.add(opMake, providers.PhaseMake, s.change.ID)
	step.Takes = []providers.Claim{claim(ctyread.Text(s.change.Want, "label"))}
	step.Leaves = []string{"a box without a file in it"}
}

func (s *steps) open(really bool) {
	if really {
		s.add(opOpen, providers.PhaseUp, s.change.ID)
	}
}

func (s *steps) close(really bool) {
	if really {
		s.add(opClose, providers.PhaseDown, s.change.Object.ID).Risk = providers.Downtime
	}
}

func (s *steps) write() {
	if s.change.Alters() {
		s.add(opWrite, providers.PhaseChange, s.change.ID)
	}
}

func (s *steps) remove() {
	step := s.add(opRemove, providers.PhaseRemove, s.change.Object.ID)
	step.Risk, step.Frees = providers.DataLoss, s.change.Object.Holds
}

// Enter implements providers.Host: the inside of a box is a folder in the guest around it.
func (p *Provider) Enter(_ context.Context, o providers.Object, _ cty.Value) (providers.Guest, error) {
	if o.Running == nil || !*o.Running {
		return nil, fmt.Errorf("box %s is closed", o.Name)
	}
	return folder{around: p.settings.Via, dir: path.Join(p.folder, ctyread.Text(o.Attrs, "label"), "in")}, nil
}

// folder is the inside of a box. It enters the guest around it anew for each call.
type folder struct {
	around *providers.Via
	dir    string
}

// Run implements providers.Guest.
func (f folder) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	g, err := f.around.Enter(ctx)
	if err != nil {
		return providers.Output{}, err
	}
	if !path.IsAbs(c.Dir) {
		c.Dir = path.Join(f.dir, c.Dir)
	}
	return g.Run(ctx, c)
}

// Dial implements providers.Guest.
func (f folder) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	g, err := f.around.Enter(ctx)
	if err != nil {
		return nil, err
	}
	if network == "unix" && !path.IsAbs(address) {
		address = path.Join(f.dir, address)
	}
	return g.Dial(ctx, network, address)
}

// Close implements providers.Guest.
func (folder) Close() error { return nil }
