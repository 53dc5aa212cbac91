package libvirt

import (
	"context"
	"errors"
	"fmt"

	"vmctl/providers"
)

var _ providers.ConsoleReader = (*Provider)(nil)

// Console implements providers.ConsoleReader: libvirt keeps the output of a guest's serial
// console in a volume, until the next start. The volume is read through libvirt, so that a
// remote host's guest is like any other.
func (p *Provider) Console(ctx context.Context, o providers.Object, from int64, most int) (providers.Console, error) {
	c, err := p.connect(ctx)
	if err != nil {
		return providers.Console{}, err
	}
	ref, err := c.Domain(ctx, string(o.ID))
	if err != nil {
		return providers.Console{}, err
	}
	s, err := observeDomain(ctx, c, ref) // before the text, so that its last words are read
	if err != nil {
		return providers.Console{}, err
	}
	file := s.configured.ConsoleLog
	if file == "" {
		return providers.Console{}, &providers.Problem{
			Outcome: providers.Failed, Code: "no_console_log",
			Next: providers.Say("watch it as it writes: virsh -c " + p.location.URI + " console " + o.Name),
			Err:  errors.New("its domain keeps no log of its console: it has no serial device with a log file"),
		}
	}
	f, err := p.locate(ctx, c, file)
	if err == nil {
		text, start, err := c.Part(ctx, f.in.Name, f.name, from, most)
		if errors.Is(err, errAbsent) {
			return providers.Console{More: s.power.on()}, nil // it has not been started yet
		}
		return providers.Console{Text: text, Start: start, More: s.power.on()}, err
	}
	if hidden := (*providers.Problem)(nil); !errors.Is(err, errAbsent) && !errors.As(err, &hidden) {
		return providers.Console{}, err
	}
	return providers.Console{}, &providers.Problem{
		Outcome: providers.Failed, Code: "no_console_log", Next: providers.Say("read it on that host: less " + file),
		Err: fmt.Errorf("its console is in %s, and no pool that is active has that file", file),
	}
}
