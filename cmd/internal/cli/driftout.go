package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/cmd/internal/view"
	"vmctl/executor"
	"vmctl/internal/atomicfile"
	"vmctl/planner"
	"vmctl/spec"
	"vmctl/state"
)

// adoption is the drift of resources whose blocks are in one file, to be written there.
type adoption struct {
	name string // the path by which the spec knows the file
	text []byte
	was  []byte
	mode os.FileMode
	all  map[spec.Address][]spec.Adopted
}

// adoptDrift writes the drift of resources into their blocks, and into their records.
func (a *app) adoptDrift(ctx context.Context, r driftRequest) error {
	p, err := a.openExisting()
	if err != nil {
		return err
	}
	if p.flawed != nil {
		return p.flawed
	}
	snapshot, holder, err := a.readBeside(ctx, p)
	if err != nil {
		return err
	}
	addrs, err := addresses(p, snapshot, r.adopt)
	if err != nil {
		return err
	}
	files := p.config
	a.onlyRecorded(p, snapshot)
	found, err := a.findDrift(ctx, p, snapshot, holder)
	if err != nil {
		return err
	}
	doc := view.AdoptDocument{FormatVersion: view.FormatVersion, Adopted: []view.AdoptEntry{}}
	adoptions, err := a.adoptions(files, found, addrs, &doc)
	if err != nil {
		return err
	}
	if err := a.writeAdoptions(files, adoptions); err != nil {
		return err
	}
	if doc.Pending, err = a.recordAdopted(ctx, addrs); err != nil {
		return fmt.Errorf("the files are written, and the records are not: %w", err)
	}
	a.show(doc, func(s view.Screen) { view.Adopt(s, doc, a.commandLine("plan", planFlags{})) })
	return nil
}

// adoptions returns the new text of each file. It changes none.
func (a *app) adoptions(files *spec.Config, found planner.Drift, addrs []spec.Address, doc *view.AdoptDocument) ([]*adoption, error) {
	var all []*adoption
	for _, addr := range addrs {
		refuse := func(why string, next ...string) error {
			return newProblem(classRefused, "not_adopted", "drift --adopt "+addr.String()+": nothing was written: "+why, next...)
		}
		resource, declared := files.Resource(addr)
		if !declared || files.Recorded(addr) {
			return nil, refuse("its block is not in the files, so the next apply destroys its object", "put the block back first")
		}
		at := slices.IndexFunc(all, func(one *adoption) bool { return one.name == resource.Range.Filename })
		if at < 0 {
			one, err := readAdoption(resource.Range.Filename)
			if err != nil {
				return nil, err
			}
			all, at = append(all, one), len(all)
		}
		for _, item := range found.Unread {
			if item.Address == addr {
				return nil, refuse("it could not be read: " + item.Evidence)
			}
		}
		for _, item := range found.Items {
			switch {
			case item.Address != addr:
				continue
			case item.Path == "":
				return nil, refuse("it is "+string(item.Kind)+", which no block can say: "+item.Evidence,
					"to take it back: "+a.commandLine("drift", planFlags{}, "--revert="+addr.String(), "--out=FILE"))
			case item.Is != cty.NilVal && item.Is.ContainsMarked():
				return nil, refuse(item.Path+" is sensitive, and vmctl writes no sensitive value into a file", "change it yourself")
			}
			all[at].all[addr] = append(all[at].all[addr], spec.Adopted{Path: item.Path, Value: item.Is})
			doc.Adopted = append(doc.Adopted, view.AdoptEntry{
				Address: addr.String(), Path: item.Path, Value: view.Plain(item.Is), File: a.short(all[at].name), Kind: addr.Kind, Is: item.Is,
			})
		}
		if len(all[at].all[addr]) == 0 {
			continue
		}
		text, err := spec.Adopt(all[at].text, all[at].name, addr, all[at].all[addr])
		if err != nil {
			return nil, refuse(err.Error())
		}
		all[at].text = text
	}
	return all, nil
}

func readAdoption(name string) (*adoption, error) {
	one := &adoption{name: name, all: map[spec.Address][]spec.Adopted{}}
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("drift --adopt: %w", err)
	}
	one.mode = info.Mode().Perm()
	if one.was, err = os.ReadFile(name); err != nil {
		return nil, fmt.Errorf("drift --adopt: %w", err)
	}
	one.text = one.was
	return one, nil
}

// writeAdoptions writes files whose spec was read again and says what was adopted. Else it writes
// none.
func (a *app) writeAdoptions(files *spec.Config, all []*adoption) error {
	source := files.Source()
	source.Variables = "" // the inputs give them
	for _, one := range all {
		source.Files[filepath.Base(one.name)] = string(one.text)
	}
	config, diags := a.readSpec(&source)
	if diags.HasErrors() {
		return newProblem(classRefused, "not_adopted", "drift --adopt: nothing was written: the spec would have mistakes: "+summaries(diags))
	}
	for _, one := range all {
		for addr, adopted := range one.all {
			r, _ := config.Resource(addr)
			for _, value := range adopted {
				if !planner.SameAt(r.Want, value.Path, value.Value) {
					return newProblem(classRefused, "not_adopted", fmt.Sprintf("drift --adopt %s: nothing was written: %s would not become what it is", addr, value.Path), "change its block yourself")
				}
			}
		}
	}
	for _, one := range all {
		if bytes.Equal(one.text, one.was) {
			continue
		}
		file := one.name
		if real, err := filepath.EvalSymlinks(file); err == nil {
			file = real // the file is replaced, not the link to it
		}
		if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, one.was) {
			return newProblem(classRefused, "changed_meanwhile", "drift --adopt: "+a.short(one.name)+" was changed meanwhile: it was not written", a.commandLine("drift", planFlags{})+" shows what is left")
		}
		if err := atomicfile.Write(file, one.text, one.mode); err != nil {
			return fmt.Errorf("drift --adopt: %w", err)
		}
	}
	return nil
}

// recordAdopted brings the records of resources up to date with their files and objects, where no
// object has to change for it. pending: one has to.
func (a *app) recordAdopted(ctx context.Context, addrs []spec.Address) (pending bool, err error) {
	p, err := a.open()
	if err != nil {
		return false, err
	}
	journal, err := p.store.Open(ctx, state.Owner{Command: "vmctl drift --adopt", Wait: p.config.Settings.LockTimeout})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	plan, world, err := planner.Make(ctx, a.opener(p), p.config, journal.Snapshot(), planner.Options{
		Types: a.types, Project: p.owner, DigestKey: p.key, Scope: planner.Scope{Targets: addrs, Alone: true}, NoWait: true,
	})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	if plan.Forbidden() || len(plan.Deferred) > 0 || slices.ContainsFunc(plan.Steps, func(s planner.Step) bool { return !s.Record }) {
		return true, nil
	}
	run, err := newID(a.env.Rand)
	if err != nil {
		return false, err
	}
	me, err := a.self("vmctl drift")
	if err != nil {
		return false, err
	}
	summary, err := executor.Apply(ctx, executor.Run{
		Plan: plan, World: world, Journal: journal, Resolve: a.resolver(p.config), ID: run, DigestKey: p.key,
		Gate:        gate{folder: p.busy(), me: me, addresses: p.visitorAddresses(journal.Snapshot()), orphans: p.orphanJobs, closed: &closedVMs{all: map[spec.Address]*closedVM{}}},
		Parallelism: 1, Now: a.env.Now, Watch: func(executor.Event) {},
	})
	if err == nil && !summary.OK() {
		err = errors.New("a record could not be written")
	}
	return false, err
}

// revertDrift keeps a plan that makes resources again what was applied, and applies no edit.
func (a *app) revertDrift(ctx context.Context, r driftRequest) error {
	if err := a.checkOut(r.out); err != nil {
		return err
	}
	return a.plan(ctx, planRequest{flags: planFlags{revert: r.revert}, out: r.out, look: planLook{format: "text"}})
}

// checkWaysOut fails unless the flags of one way out are there, or none.
func (r driftRequest) checkWaysOut() error {
	next := []string{"to keep drift: vmctl drift --adopt=ADDR", "to take it back: vmctl drift --revert=ADDR --out=FILE"}
	switch {
	case len(r.adopt) > 0 && len(r.revert) > 0:
		return rejected("usage", "drift takes --adopt or --revert, and not both", next...)
	case len(r.revert) > 0 && r.out == "":
		return rejected("usage", "drift --revert="+strings.Join(r.revert, ",")+" needs --out=FILE: it keeps a plan, and changes nothing", next...)
	case r.out != "" && len(r.revert) == 0:
		return rejected("usage", "drift: --out is for --revert", next...)
	case len(r.adopt)+len(r.revert) > 0 && (r.format != "text" || r.ignore != ""):
		return rejected("usage", "drift: --adopt and --revert take neither --format nor --ignore-file", next...)
	default:
		return nil
	}
}
