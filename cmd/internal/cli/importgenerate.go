package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"vmctl/cmd/internal/view"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

type generateDocument struct {
	FormatVersion string   `json:"format_version"`
	Addresses     []string `json:"addresses"`
	Provider      string   `json:"provider"`
	File          string   `json:"file"` // "": none was written
	Text          string   `json:"text"`
}

// generate writes blocks for an object that no file declares yet.
func (a *app) generate(ctx context.Context, r importRequest) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	addr, err := a.newAddress(p.config, r)
	if err != nil {
		return err
	}
	if err := a.checkNewFile(r.out); err != nil {
		return err
	}
	refs, err := a.places(p.config, r.provider)
	if err != nil {
		return err
	}
	f, err := a.finding(ctx, p, refs, finding{to: addr, id: r.id})
	if err != nil {
		return err
	}
	text, addrs, err := a.blocksOf(ctx, p, f)
	if err != nil {
		return err
	}
	if err := a.loads(p.config, f.to, text); err != nil {
		return err
	}
	doc := generateDocument{FormatVersion: view.FormatVersion, Addresses: view.Addresses(addrs), Provider: f.provider.String(), Text: string(text)}
	if r.out == "" {
		a.show(doc, func(view.Screen) { a.stdout.keep(write(a.stdout, string(text))) })
		return nil
	}
	if err := writeNew(a.absolute(r.out), text); err != nil {
		return err
	}
	doc.File = r.out
	a.show(doc, func(s view.Screen) {
		view.Note(s, "Wrote "+strings.Join(view.Addresses(addrs), ", ")+" into "+r.out+".")
		view.Note(s, "Next: "+a.commandLine("plan", planFlags{}))
	})
	return nil
}

// loads fails if the spec cannot hold the generated blocks: the language or the provider
// cannot express the object.
func (a *app) loads(c *spec.Config, addr spec.Address, text []byte) error {
	source := c.Source()
	source.Variables = "" // the inputs give them
	source.Files[stubFile] = string(text)
	_, diags := a.readSpec(&source)
	if !diags.HasErrors() {
		return nil
	}
	e := newProblem(classFailed, "not_generated", "import --generate "+addr.String()+": nothing was written: no block can say what it is",
		"leave it to its own tools, or write its block by hand and then: "+a.commandLine("import", planFlags{})+" "+addr.String()+" ID")
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			e.Seen = append(e.Seen, d.Summary+": "+d.Detail)
		}
	}
	return e
}

// newAddress returns the address to import to. It fails if a block has that address, or if it
// is not the address of a single VM or disk.
func (a *app) newAddress(c *spec.Config, r importRequest) (spec.Address, error) {
	addr, err := spec.ParseAddress(r.address)
	switch _, declared := c.Resource(addr); {
	case err != nil:
		return addr, rejected("usage", "import --generate: "+err.Error())
	case addr.Kind != spec.VM && addr.Kind != spec.Disk:
		return addr, rejected("usage", "import --generate: blocks are written for VMs and disks, and "+r.address+" is neither")
	case addr.Key != "":
		return addr, rejected("usage", "import --generate: "+r.address+" is an instance of a for_each, whose block only you can write")
	case declared:
		return addr, rejected("declared", "import --generate: "+r.address+" is in the files already", a.importLine(addr, r.id)+" imports to it")
	default:
		return addr, nil
	}
}

// checkNewFile refuses a file that exists, and a name that is not one of a spec file.
func (a *app) checkNewFile(path string) error {
	switch {
	case path == "":
		return nil
	case !strings.HasSuffix(path, spec.Suffix):
		return rejected("out_refused", "read --out: "+path+" would not be read as a file of the spec", "let its name end in "+spec.Suffix)
	}
	if _, err := os.Lstat(a.absolute(path)); !errors.Is(err, fs.ErrNotExist) {
		return rejected("out_refused", "read --out: "+path+" exists already", "name a file that is not there yet")
	}
	return nil
}

func writeNew(path string, text []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("write the blocks: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(text)
	return err
}

// places lists the providers to search for an object: the named one, else all of the files,
// else the built-in one, which is the zero reference.
func (a *app) places(c *spec.Config, name string) ([]spec.ProviderRef, error) {
	var refs []spec.ProviderRef
	var names []string
	for _, p := range c.Providers {
		names = append(names, p.Ref.String())
		if name == "" || name == p.Ref.String() || "provider."+name == p.Ref.String() {
			refs = append(refs, p.Ref)
		}
	}
	switch {
	case len(refs) == 0 && name != "":
		return nil, rejected("usage", "read --provider "+quoted(name)+": the files have none of that name", "they have "+strings.Join(names, ", "))
	case len(refs) == 0:
		return []spec.ProviderRef{{}}, nil
	default:
		return refs, nil
	}
}

// finding is an object to generate a block for.
type finding struct {
	to       spec.Address
	id       string
	provider spec.ProviderRef
	object   providers.Object
}

// finding searches all providers for an object. It fails unless exactly one has it.
func (a *app) finding(ctx context.Context, p *project, refs []spec.ProviderRef, f finding) (finding, error) {
	var all []finding
	refused := newProblem(classRefused, "not_imported", "import --generate "+f.to.String()+": nothing was written")
	for _, ref := range refs {
		found, block, err := a.sought(ctx, p, finding{to: f.to, id: f.id, provider: ref}, nil)
		if err != nil {
			return f, err
		}
		if block == nil {
			all = append(all, found[0])
			continue
		}
		refused.Seen, refused.Next = append(refused.Seen, block.Error()), append(refused.Next, a.ownFlags(planFlags{}).Advice(block.Next)...)
	}
	switch len(all) {
	case 0:
		return f, refused
	case 1:
		return all[0], nil
	}
	e := newProblem(classRefused, "ambiguous", fmt.Sprintf("import --generate %s: %q is in several places", f.to, f.id))
	for _, one := range all {
		e.Next = append(e.Next, "say which: --provider="+one.provider.String())
	}
	return f, e
}

// sought observes as if the files had blocks for f and its disks, and returns them with their
// objects: f first, then the disks. block says why f has no object.
func (a *app) sought(ctx context.Context, p *project, f finding, disks []finding) (found []finding, block *planner.Block, err error) {
	all := append([]finding{f}, disks...)
	source := p.config.Source()
	source.Variables = ""
	imports := map[spec.Address]providers.ID{}
	var stub strings.Builder
	for _, one := range all {
		imports[one.to] = providers.ID(one.id)
		fmt.Fprintf(&stub, "%s %q {\n", one.to.Kind, one.to.Name)
		if f.provider != (spec.ProviderRef{}) {
			fmt.Fprintf(&stub, "  provider = %s\n", f.provider)
		}
		if one.to.Kind == spec.Disk {
			stub.WriteString("  size = \"1MiB\"\n")
		}
		stub.WriteString("}\n")
	}
	source.Files[stubFile] = stub.String()
	config, diags := a.readUnchecked(&source)
	if diags.HasErrors() {
		return nil, nil, a.mistakes(diags, config.Files())
	}
	snapshot, _, err := a.readBeside(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	as := *p
	as.config = config
	plan, world, err := planner.Make(ctx, a.opener(&as), config, snapshot, planner.Options{
		Types: a.types, Project: p.owner, Scope: planner.Scope{Targets: []spec.Address{f.to}, Alone: true}, Imports: imports,
	})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	at := slices.IndexFunc(plan.Changes, func(c planner.Change) bool { return c.Address == f.to })
	if at < 0 || plan.Changes[at].Object == nil {
		if at >= 0 && plan.Changes[at].Blocked != nil {
			return nil, plan.Changes[at].Blocked, nil
		}
		return nil, nil, fmt.Errorf("import --generate %s: nothing was found", f.to)
	}
	system := world.System(plan.Changes[at].System)
	for _, one := range all {
		id, ok := system.Inventory.Found[one.to]
		for _, o := range system.Inventory.Objects {
			if ok && o.ID == id && o.Kind == one.to.Kind {
				one.object, one.provider = o, f.provider
				found = append(found, one)
			}
		}
	}
	return found, nil, nil
}

// stubFile is the file name under which vmctl loads generated blocks before it writes them.
const stubFile = "\x00import" + spec.Suffix

// blocksOf returns the blocks of an object and of its disks that have no record, disks first,
// and the addresses of the blocks.
func (a *app) blocksOf(ctx context.Context, p *project, f finding) ([]byte, []spec.Address, error) {
	snapshot, _, err := a.readBeside(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	recorded := map[string]bool{}
	for _, r := range snapshot.Records {
		recorded[r.ID] = true
	}
	taken := map[spec.Address]bool{f.to: true}
	for _, addr := range known(p, snapshot) {
		taken[addr.Block()] = true
	}
	var disks []finding
	for _, c := range f.object.Holds {
		if f.to.Kind == spec.VM && c.Kind == providers.ClaimDisk && !recorded[c.Key] {
			disks = append(disks, finding{to: newDisk(f.to, c.Key, taken), id: c.Key})
		}
	}
	all := []finding{f}
	if len(disks) > 0 {
		var block *planner.Block
		if all, block, err = a.sought(ctx, p, f, disks); err == nil && block != nil {
			err = block.Problem
		}
		if err != nil {
			return nil, nil, err
		}
	}
	slices.Reverse(all) // the disks come before the VM that uses them
	var text bytes.Buffer
	var addrs []spec.Address
	for i, one := range all {
		block, err := spec.Generate(spec.Existing{To: one.to, ID: one.id, Provider: one.provider, BuiltIn: a.builtInType(), Attrs: a.shownOf(p, one)})
		if err != nil {
			return nil, nil, newProblem(classFailed, "not_generated", err.Error())
		}
		if i > 0 {
			text.WriteByte('\n')
		}
		text.Write(block)
		addrs = append(addrs, one.to)
	}
	return text.Bytes(), addrs, nil
}

// shownOf returns the attributes for an object's block: the observed ones, the name if vmctl
// would choose another, and whether the object runs.
func (a *app) shownOf(p *project, f finding) cty.Value {
	attrs := map[string]cty.Value{}
	if o := f.object.Now(); o != cty.NilVal && o.IsKnown() && !o.IsNull() {
		attrs = o.AsValueMap()
	}
	if attrs == nil {
		attrs = map[string]cty.Value{}
	}
	delete(attrs, "name")
	if f.object.Name != planner.ObjectName(p.owner, f.to) {
		attrs["name"] = cty.StringVal(f.object.Name)
	}
	if f.object.Running != nil {
		attrs["running"] = cty.BoolVal(*f.object.Running)
	}
	return cty.ObjectVal(attrs)
}

// newDisk returns a free address for a disk, and marks it as taken. Its label comes from the
// disk's file, else from the VM.
func newDisk(vm spec.Address, id string, taken map[spec.Address]bool) spec.Address {
	base := strings.TrimSuffix(filepath.Base(id), filepath.Ext(id))
	label := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, base), "_-")
	if label == "" || label[0] >= '0' && label[0] <= '9' {
		label = vm.Name + "_disk"
	}
	addr := spec.Address{Kind: spec.Disk, Name: label}
	for n := 2; taken[addr]; n++ {
		addr.Name = fmt.Sprintf("%s_%d", label, n)
	}
	taken[addr] = true
	return addr
}
