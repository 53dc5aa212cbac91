package engine

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"vmctl/internal/ctyread"
	"vmctl/internal/parallel"
	"vmctl/providers"
	"vmctl/spec"
)

var _ providers.Describer = (*Objects)(nil)

// Describe implements providers.Describer. It asks the engine about each object, several at a time.
func (p *Objects) Describe(ctx context.Context, all []providers.Object) []*providers.Facts {
	facts := make([]*providers.Facts, len(all))
	parallel.Do(inFlight, len(all), func(i int) {
		raw, err := p.c.get(ctx, detailPath(all[i]))
		if err != nil {
			return
		}
		if f := describe(all[i].Kind, raw); f != nil {
			facts[i] = f
		}
	})
	return facts
}

// detailPath returns the path of all that an engine tells of an object.
func detailPath(o providers.Object) string {
	switch o.Kind { //nolint:exhaustive // an engine has no other kinds
	case spec.Container:
		return "/containers/" + url.PathEscape(ctyread.Text(o.Attrs, "container_id")) + "/json?size=1"
	case spec.Image:
		return "/images/" + url.PathEscape(ctyread.Text(o.Attrs, "image_id")) + "/json"
	case spec.Volume:
		return "/volumes/" + url.PathEscape(o.Name)
	case spec.Network:
		return "/networks/" + url.PathEscape(o.Name)
	default:
		panic("unknown kind " + string(o.Kind))
	}
}

// describe reads an answer part by part: one that is not as it should be leaves the others as they are. nil: it is no object.
func describe(kind spec.Kind, raw json.RawMessage) *providers.Facts {
	all := fieldsOf(raw)
	if all.flaw != nil {
		return nil
	}
	f := &providers.Facts{}
	var name string
	switch kind { //nolint:exhaustive // an engine has no other kinds
	case spec.Container:
		config, state := all.within("Config"), all.within("State")
		all.read("Name", &name)
		f.Names = named(strings.TrimPrefix(name, "/"))
		config.read("Image", &f.Image)
		config.read("Labels", &f.Labels)
		all.read("Path", &f.Path)
		all.read("Platform", &f.Platform)
		f.Size = all.size("SizeRw")
		f.Created, f.Started, f.Ended = all.time("Created"), state.time("StartedAt"), state.time("FinishedAt")
		for _, b := range boundPorts(all.within("NetworkSettings")) {
			f.Ports = append(f.Ports, b.String())
		}
	case spec.Image:
		all.read("RepoTags", &f.Names)
		all.read("RepoDigests", &f.Digests)
		all.read("Id", &f.Image)
		f.Size = all.size("Size")
		all.within("Config").read("Labels", &f.Labels)
		f.Platform, f.Created = platform(all), all.time("Created")
	case spec.Volume:
		all.read("Name", &name)
		f.Names = named(name)
		all.read("Mountpoint", &f.Path)
		all.read("Labels", &f.Labels)
		f.Created = all.time("CreatedAt")
	case spec.Network:
		all.read("Name", &name)
		f.Names = named(name)
		all.read("Labels", &f.Labels)
		f.Created = all.time("Created")
	default:
		panic("unknown kind " + string(kind))
	}
	return f
}

func named(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// platform returns the platform of an image, like "linux/arm/v7".
func platform(image *fields) string {
	var parts [3]string
	for i, name := range []string{"Os", "Architecture", "Variant"} {
		image.read(name, &parts[i])
	}
	return strings.Join(slices.DeleteFunc(parts[:], func(part string) bool { return part == "" }), "/")
}

// size returns a number of bytes; nil: it is missing, or no such number.
func (f *fields) size(name string) *int64 {
	n := int64(-1)
	if f.read(name, &n); n < 0 {
		return nil
	}
	return &n
}

// time returns a time in UTC; "": it is missing, or the one that an engine writes for never.
func (f *fields) time(name string) string {
	var text string
	f.read(name, &text)
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Year() <= 1 {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}
