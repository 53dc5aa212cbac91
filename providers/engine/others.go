package engine

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/moby/moby/api/types/container"

	"vmctl/internal/ctyread"
)

// others holds what others than vmctl have set of a container: labels, and limits that the spec does not have. Its successor gets it.
type others struct {
	labels map[string]string
	limits container.Resources
}

// others returns what others have set of the container that is replaced: of the one that waits for its successor, or of the one that
// this run has removed. nil: nothing is replaced.
func (j *job) others(ctx context.Context) (*others, error) {
	r, waits := j.Args.(replacing)
	if !waits {
		noted, _ := j.p.removed.LoadAndDelete(j.Address)
		o, _ := noted.(*others)
		return o, nil
	}
	all, err := j.predecessors(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.labels[labelToken] == string(r.old) {
			return j.othersOf(ctx, s.id)
		}
	}
	return nil, nil
}

// noteOthers notes what others have set of the container that is removed, for a successor that this run makes.
func (j *job) noteOthers(ctx context.Context) error {
	o, err := j.othersOf(ctx, j.seen.id)
	if err == nil && o != nil {
		j.p.removed.Store(j.Address, o)
	}
	return err
}

// othersOf returns what others have set of a container. nil: it is gone.
func (j *job) othersOf(ctx context.Context, id string) (*others, error) {
	var now struct {
		Image      string
		Config     struct{ Labels map[string]string }
		HostConfig container.Resources
	}
	err := j.p.c.getInto(ctx, "/containers/"+id+"/json", &now)
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("see what others have set of it: %w", err)
	}
	ofImage, err := j.p.imageLabels(ctx, now.Image)
	if err != nil {
		return nil, err
	}
	o := others{labels: map[string]string{}, limits: now.HostConfig}
	ours := texts(j.Prior, "labels")
	for name, value := range now.Config.Labels {
		_, isOurs := ours[name]
		if inherited, is := ofImage[name]; !isOurs && !strings.HasPrefix(name, labelPrefix) && (!is || inherited != value) {
			o.labels[name] = value
		}
	}
	if ctyread.Known(ctyread.Attr(j.Prior, "memory")) {
		o.limits.Memory, o.limits.MemorySwap = 0, 0
	}
	if ctyread.Known(ctyread.Attr(j.Prior, "cpus")) {
		o.limits.NanoCPUs, o.limits.CPUPeriod, o.limits.CPUQuota = 0, 0, 0
	}
	return &o, nil
}

// imageLabels returns the labels of an image, which its containers bear, too. An image that is gone has none.
func (p *Objects) imageLabels(ctx context.Context, id string) (map[string]string, error) {
	var image struct {
		Config struct{ Labels map[string]string }
	}
	err := p.c.getInto(ctx, "/images/"+url.PathEscape(id)+"/json", &image)
	if err != nil && !isAbsent(err) {
		return nil, fmt.Errorf("read the labels of its image: %w", err)
	}
	return image.Config.Labels, nil
}

// keep gives a container what others have set of its predecessor, unless the spec or its image say otherwise.
func (o *others) keep(config *container.Config, ofImage map[string]string, limits *container.Resources) {
	for name, value := range o.labels {
		if _, set := config.Labels[name]; set {
			continue
		}
		if _, set := ofImage[name]; !set {
			config.Labels[name] = value
		}
	}
	l := o.limits
	if limits.Memory == 0 {
		limits.Memory, limits.MemorySwap = l.Memory, l.MemorySwap
	}
	if limits.NanoCPUs == 0 {
		limits.NanoCPUs, limits.CPUPeriod, limits.CPUQuota = l.NanoCPUs, l.CPUPeriod, l.CPUQuota
	}
	if limits.Memory == 0 || l.MemoryReservation <= limits.Memory { // an engine refuses any other one
		limits.MemoryReservation = l.MemoryReservation
	}
	limits.CPUShares = cmp.Or(limits.CPUShares, l.CPUShares)
	limits.CpusetCpus, limits.CpusetMems = l.CpusetCpus, l.CpusetMems
	limits.BlkioWeight, limits.PidsLimit = l.BlkioWeight, l.PidsLimit
}
