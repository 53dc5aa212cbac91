package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/zclconf/go-cty/cty"
)

// others holds what others than vmctl have set of a container: labels, and limits that no attribute is about. Its successor gets it.
type others struct {
	labels map[string]string
	limits container.Resources
	unsure bool // the image is gone: some labels may be those of the image
}

// succeeded is the argument of the removal of a container whose successor is made after it.
type succeeded struct {
	labels []string // that the record of it has
}

// Words implements providers.Args.
func (succeeded) Words() [][2]string { return nil }

// labelNames lists the labels that a spec or a record has.
func labelNames(values cty.Value) []string {
	return slices.AppendSeq([]string{}, maps.Keys(texts(values, "labels")))
}

// ownLabels returns the text of the label that lists the labels of a spec.
func ownLabels(want cty.Value) (string, error) {
	names := labelNames(want)
	slices.Sort(names)
	text, err := json.Marshal(names)
	return string(text), err
}

// others returns what others have set of the container that the one of the step succeeds: of the one that this run has removed, or of
// one that waits under its parking name. nil: there is none.
func (j *job) others(ctx context.Context) (*others, error) {
	var err error
	if j.before, err = j.predecessors(ctx); err != nil {
		return nil, err
	}
	if noted, is := j.p.removed.Load(j.Address); is {
		o, _ := noted.(*others)
		return o, nil
	}
	r, _ := j.Args.(replacing)
	var last *seen
	for i, s := range j.before {
		switch {
		case r.old != "" && s.labels[labelToken] == string(r.old):
			return j.othersOf(ctx, s.id, r.labels)
		case r.old == "" && (last == nil || s.generation() > last.generation()): // left by a run that was killed
			last = &j.before[i]
		}
	}
	if last == nil {
		return nil, nil
	}
	return j.othersOf(ctx, last.id, nil)
}

// noteOthers notes what others have set of the container that is removed, for the successor that this run makes.
func (j *job) noteOthers(ctx context.Context, recorded []string) error {
	o, err := j.othersOf(ctx, j.seen.id, recorded)
	if err == nil && o != nil {
		j.p.removed.Store(j.Address, o)
	}
	return err
}

// othersOf returns what others have set of a container. Labels of vmctl are those that its record has, and those that it lists itself:
// the record of a run that was killed may be lost. nil: the container is gone.
func (j *job) othersOf(ctx context.Context, id string, recorded []string) (*others, error) {
	var now struct {
		Image      string
		Config     struct{ Labels map[string]string }
		HostConfig container.Resources
	}
	err := j.p.c.getInto(ctx, "/containers/"+url.PathEscape(id)+"/json", &now)
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("see what others have set of it: %w", err)
	}
	var ours []string
	_ = json.Unmarshal([]byte(now.Config.Labels[labelLabels]), &ours) //nolint:errcheck // without that label, the record tells alone
	ours = append(ours, recorded...)
	ofImage, err := j.p.imageLabels(ctx, now.Image)
	o := others{labels: map[string]string{}, limits: now.HostConfig, unsure: isAbsent(err)}
	if err != nil && !o.unsure {
		return nil, err
	}
	for name, value := range now.Config.Labels {
		inherited, is := ofImage[name]
		if !slices.Contains(ours, name) && !strings.HasPrefix(name, labelPrefix) && (!is || inherited != value) {
			o.labels[name] = value
		}
	}
	return &o, nil
}

// imageLabels returns the labels of an image, which its containers bear, too.
func (p *Objects) imageLabels(ctx context.Context, id string) (map[string]string, error) {
	var image struct {
		Config struct{ Labels map[string]string }
	}
	if err := p.c.getInto(ctx, "/images/"+url.PathEscape(id)+"/json", &image); err != nil {
		return nil, fmt.Errorf("read the labels of its image: %w", err)
	}
	return image.Config.Labels, nil
}

// keep gives a container what others have set of its predecessor, unless the spec says otherwise.
func (j *job) keep(ctx context.Context, o *others, config *container.Config, limits *container.Resources) error {
	var ofImage map[string]string
	if o.unsure {
		var err error
		if ofImage, err = j.p.imageLabels(ctx, config.Image); err != nil {
			return err
		}
	}
	for name, value := range o.labels {
		_, isSet := config.Labels[name]
		if _, inherits := ofImage[name]; !isSet && !inherits {
			config.Labels[name] = value
		}
	}
	l := o.limits
	if limits.NanoCPUs == 0 { // an engine takes one of both
		limits.CPUPeriod, limits.CPUQuota = l.CPUPeriod, l.CPUQuota
	}
	if limits.Memory == 0 || l.MemoryReservation <= limits.Memory { // an engine refuses any other one
		limits.MemoryReservation = l.MemoryReservation
	}
	limits.CPUShares = l.CPUShares
	limits.CpusetCpus, limits.CpusetMems = l.CpusetCpus, l.CpusetMems
	limits.BlkioWeight, limits.PidsLimit = l.BlkioWeight, l.PidsLimit
	return nil
}
