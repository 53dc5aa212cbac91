package lima

import (
	"slices"

	"vmctl/internal/yamltext"
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// claims returns the claims of an instance beside those of its attributes: on its name, and on the host ports and the disks
// that its template sets. The definition with which it runs counts until it stops.
func (p *Provider) claims(s *instance, disks map[string]*observedDisk) []providers.Claim {
	all := []providers.Claim{nameClaim(s.name)}
	docs, names := []map[string]any{s.doc}, []string(nil)
	if s.run != nil {
		if started, err := yamltext.Parse(s.run.Definition); err == nil {
			docs = append(docs, started)
		}
	}
	for _, doc := range docs {
		names = append(names, namesOf(doc)...)
		if !s.mark.sets(keyForwards) {
			all = append(all, without(templatePorts(doc), all)...)
		}
	}
	for _, found := range s.drivers {
		names = append(names, p.attachedTo(found.Argv)...)
	}
	for _, name := range names {
		if d := disks[name]; d != nil && !s.mark.sets(keyDisks) {
			all = append(all, without([]providers.Claim{machine.DiskClaim(d.id)}, all)...)
		}
	}
	return all
}

// claims returns the claims of the wanted instance. Disks that its template names are those that Observe found.
func (r *recipe) claims() []providers.Claim {
	all := machine.Claims(nameClaim(machine.Name(r.change)), r.want, r.change.Uses)
	template, err := yamltext.Parse(r.want.Template)
	if err != nil { // there is none
		return all
	}
	if len(r.want.Forwards) == 0 {
		template[keyPlain] = r.want.Plain
		all = append(all, templatePorts(template)...)
	}
	for _, name := range r.templateDisks() {
		all = append(all, machine.DiskClaim(r.p.diskID(name)))
	}
	return all
}

// diskID returns the ID of a disk that Observe found. One that it did not find has the ID of a disk without a mark.
func (p *Provider) diskID(name string) providers.ID {
	if found := p.diskIDs.Load(); found != nil && (*found)[name] != "" {
		return (*found)[name]
	}
	return unmarkedID(spec.Disk, name)
}

// templateDisks returns the names of the additional disks of a template whose block has none.
func (r *recipe) templateDisks() []string {
	template, err := yamltext.Parse(r.want.Template)
	if err != nil || len(r.want.Disks) > 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(namesOf(template))))
}

// templatePorts returns the claims on the host ports that a template forwards: in plain mode those that are static.
// Ranges of ports have none.
func templatePorts(doc map[string]any) []providers.Claim {
	var all []providers.Claim
	plain, _ := doc[keyPlain].(bool)
	list, _ := doc[keyForwards].([]any)
	for _, entry := range list {
		e, _ := entry.(map[string]any)
		if static, _ := e["static"].(bool); plain && !static {
			continue
		}
		for _, f := range forwardsOf(map[string]any{keyForwards: []any{entry}}, nil) {
			protocols := []string{f.Protocol}
			if text(e["proto"], "any") == "any" { // Lima's default
				protocols = []string{machine.TCP, machine.UDP}
			}
			for _, f.Protocol = range protocols {
				all = append(all, without([]providers.Claim{f.Claim()}, all)...)
			}
		}
	}
	return all
}

func without(all, these []providers.Claim) []providers.Claim {
	return slices.DeleteFunc(slices.Clone(all), func(c providers.Claim) bool { return slices.Contains(these, c) })
}
