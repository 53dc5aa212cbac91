package engine

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// create makes the container of the step with all that it needs.
func (j *job) create(ctx context.Context, name string, labels map[string]string) ([]string, error) {
	host, err := j.hostConfig()
	if err != nil {
		return nil, err
	}
	config := j.config(labels)
	if config.Labels[labelLabels], err = ownLabels(j.Want); err != nil {
		return nil, err
	}
	kept, err := j.others(ctx)
	if err == nil && kept != nil {
		err = j.keep(ctx, kept, config, &host.Resources)
	}
	if err != nil {
		return nil, err
	}
	for port := range host.PortBindings {
		if config.ExposedPorts == nil {
			config.ExposedPorts = network.PortSet{}
		}
		config.ExposedPorts[port] = struct{}{}
	}
	o := client.ContainerCreateOptions{Name: name, Config: config, HostConfig: host}
	if all := j.endpoints(); len(all) > 0 { // older engines take one network in this call
		host.NetworkMode = container.NetworkMode(all[0].network)
		o.NetworkingConfig = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{all[0].network: {Aliases: all[0].aliases}}}
	}
	r, err := j.p.c.ContainerCreate(ctx, o)
	if err != nil {
		return nil, err
	}
	j.p.removed.Delete(j.Address)
	return r.Warnings, j.attach(ctx, r.ID)
}

// config returns what the container is.
func (j *job) config(labels map[string]string) *container.Config {
	w := j.Want
	c := &container.Config{
		Image: string(j.used(ctyread.Text(w, "image")).ID), Labels: labels, Cmd: list(w, "command"), Entrypoint: list(w, "entrypoint"),
		User: ctyread.Text(w, "user"), WorkingDir: ctyread.Text(w, "workdir"), Hostname: ctyread.Text(w, "hostname"),
	}
	env := texts(w, "env")
	for _, name := range slices.Sorted(maps.Keys(env)) {
		c.Env = append(c.Env, name+"="+env[name])
	}
	if h := ctyread.Attr(w, "healthcheck"); ctyread.Known(h) {
		c.Healthcheck = &container.HealthConfig{
			Test:     append([]string{"CMD"}, list(h, "command")...),
			Interval: ctyread.Seconds(h, "interval", 0), Timeout: ctyread.Seconds(h, "timeout", 0),
			StartPeriod: ctyread.Seconds(h, "start_period", 0), Retries: int(ctyread.Uint(h, "retries")), //nolint:gosec // a small number
		}
	}
	grace := int(stopPolicy(j.Policy).Grace / time.Second)
	c.StopTimeout = &grace // for the engine's own end
	return c
}

// hostConfig returns how the container runs.
func (j *job) hostConfig() (*container.HostConfig, error) {
	w := j.Want
	h := &container.HostConfig{RestartPolicy: restartPolicy(w), Resources: resources(w)}
	for _, p := range ctyread.List(ctyread.Attr(w, "port")) {
		port, err := network.ParsePort(fmt.Sprintf("%d/%s", ctyread.Uint(p, "container"), ctyread.Text(p, "protocol")))
		if err != nil {
			return nil, err
		}
		ip, err := netip.ParseAddr(ctyread.Text(p, "host_ip"))
		if err != nil {
			return nil, err
		}
		if h.PortBindings == nil {
			h.PortBindings = network.PortMap{}
		}
		h.PortBindings[port] = append(h.PortBindings[port], network.PortBinding{HostIP: ip, HostPort: strconv.FormatUint(ctyread.Uint(p, "host"), 10)})
	}
	for _, m := range ctyread.List(ctyread.Attr(w, "mount")) {
		h.Mounts = append(h.Mounts, mount.Mount{
			Type: mount.TypeVolume, Source: j.usedName(ctyread.Text(m, "volume")), Target: ctyread.Text(m, "target"), ReadOnly: ctyread.True(m, "read_only"),
		})
	}
	return h, nil
}

func restartPolicy(w cty.Value) container.RestartPolicy {
	return container.RestartPolicy{Name: container.RestartPolicyMode(ctyread.Text(w, "restart"))}
}

// resources returns the limits. A memory limit includes swap, always: engines differ in what they add to one alone.
func resources(w cty.Value) container.Resources {
	r := container.Resources{Memory: int64(ctyread.Uint(w, "memory"))} //nolint:gosec // a size in bytes
	r.MemorySwap = r.Memory
	if n := ctyread.Number(w, "cpus"); n != nil {
		nano := new(big.Float).Mul(n, big.NewFloat(1e9))
		r.NanoCPUs, _ = nano.Add(nano, big.NewFloat(0.5)).Int64()
	}
	return r
}

// endpoint is a network that a container is to be on.
type endpoint struct {
	network string
	aliases []string
}

func (j *job) endpoints() []endpoint {
	var all []endpoint
	for _, n := range ctyread.List(ctyread.Attr(j.Want, "network")) {
		all = append(all, endpoint{j.usedName(ctyread.Text(n, "network")), list(n, "aliases")})
	}
	return all
}

// attach attaches the container to the networks that it is not on yet.
func (j *job) attach(ctx context.Context, id string) error {
	all := j.endpoints()
	if len(all) == 0 {
		return nil
	}
	now, err := j.p.inspect(ctx, id)
	if err != nil {
		return err
	}
	for _, e := range all {
		if slices.Contains(now.networks, e.network) {
			continue
		}
		_, err := j.p.c.NetworkConnect(ctx, e.network, client.NetworkConnectOptions{Container: id, EndpointConfig: &network.EndpointSettings{Aliases: e.aliases}})
		if err != nil && !errdefs.IsConflict(err) {
			return fmt.Errorf("attach it to network %s: %w", e.network, err)
		}
	}
	return nil
}

// used returns the resource at an address.
func (j *job) used(address string) providers.Used {
	a, err := spec.ParseAddress(address)
	if err != nil {
		return providers.Used{}
	}
	return j.Uses[a]
}

// usedName returns the name in the engine of the volume or the network at an address.
func (j *job) usedName(address string) string { return engineName(j.used(address).Name) }

// list returns an attribute that is a list of texts.
func list(v cty.Value, name string) []string {
	var all []string
	for _, item := range ctyread.List(ctyread.Attr(v, name)) {
		all = append(all, item.AsString())
	}
	return all
}

// texts returns an attribute that is a map of texts.
func texts(v cty.Value, name string) map[string]string {
	m := ctyread.KnownAttr(v, name)
	if m == cty.NilVal {
		return nil
	}
	all := map[string]string{}
	for key, value := range m.AsValueMap() {
		if ctyread.Known(value) {
			all[key] = value.AsString()
		}
	}
	return all
}
