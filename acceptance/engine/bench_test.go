//go:build linux

package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	moby "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// BenchmarkThirty compares vmctl with a bare program on the same client: 30 containers of a real engine are made and started, looked
// at while nothing is to do, and stopped and removed.
func BenchmarkThirty(b *testing.B) {
	const number = 30
	d := newDaemon(b)
	p := projectOf(b, d, quick)
	p.run(0, "apply", "--auto-approve", "--target=image.box")
	base, block, _ := strings.Cut(quick, `container "web"`)
	var text strings.Builder
	text.WriteString(strings.Replace(base, "volume \"data\" {\n  engine = engine.here\n}\n", "", 1))
	block = block[:strings.Index(block, "\n  mount")] + "}\n"
	block = strings.Replace(block, ">>/data/log", "", 1)
	for i := range number {
		fmt.Fprintf(&text, "container \"c%d\"%s", i, block)
	}
	p.main = text.String()
	p.edit()
	c, err := client.New(client.WithHost("unix://" + d.socket()))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }() //nolint:errcheck // it is idle
	bare := program{b: b, c: c, number: number}
	watching := bare
	watching.watch = 500 * time.Millisecond
	for name, acts := range map[string]map[string]func(){
		"vmctl": {
			"up":   func() { p.run(0, "apply", "--auto-approve") },
			"noop": func() { p.run(0, "apply", "--auto-approve") },
			"down": func() { p.run(0, "destroy", "--auto-approve", "--exclude=image.box", "--exclude=engine.here") },
		},
		"bare, with vmctl's look after each start": {"up": watching.up, "noop": watching.look, "down": watching.down},
		"bare": {"up": bare.up, "noop": bare.look, "down": bare.down},
	} {
		b.Run(name, func(b *testing.B) {
			took := map[string]time.Duration{}
			for range b.N {
				for _, act := range []string{"up", "noop", "down"} {
					start := time.Now()
					acts[act]()
					took[act] += time.Since(start)
				}
			}
			for act, sum := range took {
				b.ReportMetric(sum.Seconds()/float64(b.N), act+"-s")
			}
		})
	}
}

// program is a bare program on the client of vmctl.
type program struct {
	b      *testing.B
	c      *client.Client
	number int
	watch  time.Duration // after each start, as vmctl waits to see whether the container ends at once
}

// each acts on each container, ten at a time, as vmctl does.
func (p program) each(act func(ctx context.Context, name string) error) {
	slots := make(chan struct{}, 10)
	var all sync.WaitGroup
	for i := range p.number {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := act(p.b.Context(), fmt.Sprintf("bare%d", i)); err != nil {
				p.b.Error(err)
			}
		})
	}
	all.Wait()
}

func (p program) up() {
	p.each(func(ctx context.Context, name string) error {
		made, err := p.c.ContainerCreate(ctx, client.ContainerCreateOptions{
			Name:       name,
			Config:     &moby.Config{Image: "demo/box:1", Cmd: []string{"sh", "-c", "trap 'exit 0' TERM; echo begun ; sleep 1000 & wait"}, Env: []string{"MODE=one"}},
			HostConfig: &moby.HostConfig{Resources: moby.Resources{Memory: 32 << 20, MemorySwap: 64 << 20, NanoCPUs: 300_000_000}},
		})
		if err != nil {
			return err
		}
		if _, err := p.c.ContainerStart(ctx, made.ID, client.ContainerStartOptions{}); err != nil {
			return err
		}
		time.Sleep(p.watch)
		_, err = p.c.ContainerInspect(ctx, made.ID, client.ContainerInspectOptions{})
		return err
	})
}

func (p program) look() {
	if _, err := p.c.ContainerList(p.b.Context(), client.ContainerListOptions{All: true}); err != nil {
		p.b.Error(err)
	}
	p.each(func(ctx context.Context, name string) error {
		_, err := p.c.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
		return err
	})
}

func (p program) down() {
	p.each(func(ctx context.Context, name string) error {
		if _, err := p.c.ContainerStop(ctx, name, client.ContainerStopOptions{}); err != nil {
			return err
		}
		_, err := p.c.ContainerRemove(ctx, name, client.ContainerRemoveOptions{})
		return err
	})
}
