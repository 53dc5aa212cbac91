package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"vmctl/providers"
	"vmctl/providers/keptlog"
	"vmctl/spec"
)

// keptLogs shows the logs that are kept of the VMs of a name, also if nothing else knows the name by now.
func (a *app) keptLogs(ctx context.Context, r logsRequest) error {
	p, err := a.openExisting()
	if err != nil {
		return err
	}
	addr, kept, err := keptOf(p, r.name)
	if err != nil {
		return err
	}
	all := a.logText(addr)
	for _, k := range kept {
		for _, path := range k.Files {
			all.write(fmt.Appendf(nil, "==> %s <==\n", path))
			c := console{address: addr, reader: keptFile(path)}
			from, err := c.tail(ctx, r.tail)
			if err == nil {
				err = c.copy(ctx, from, all.write)
			}
			if err != nil {
				return err
			}
			all.write([]byte("\n"))
		}
	}
	all.end()
	return nil
}

// keptOf returns the kept logs of the VM that a name means: an address of the spec, or one that it no longer has.
func keptOf(p *project, name string) (spec.Address, []keptlog.Kept, error) {
	addr, err := vmOf(p, name)
	if err != nil {
		for _, text := range []string{name, string(spec.VM) + "." + name} {
			gone, unread := spec.ParseAddress(text)
			if unread != nil || gone.Kind != spec.VM {
				continue
			}
			if kept, err := keptlog.List(p.keptLogs(), gone); err != nil || len(kept) > 0 {
				return gone, kept, err
			}
		}
		return addr, nil, err
	}
	kept, err := keptlog.List(p.keptLogs(), addr)
	if err == nil && len(kept) == 0 {
		err = newProblem(classFailed, "no_log", "read the kept logs of "+addr.String()+": there are none: it has never failed, and was never removed with --keep-logs")
	}
	return addr, kept, err
}

// keptFile reads a file as if it were a console.
type keptFile string

var _ providers.ConsoleReader = keptFile("")

// Console implements providers.ConsoleReader.
func (path keptFile) Console(_ context.Context, _ providers.Object, from int64, most int) (part providers.Console, err error) {
	f, err := os.Open(string(path))
	if err != nil {
		return part, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return part, err
	}
	start, length := providers.PartOf(info.Size(), from, most)
	text, err := io.ReadAll(io.NewSectionReader(f, start, length))
	return providers.Console{Text: text, Start: start}, err
}
