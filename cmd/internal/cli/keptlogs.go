package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	var files []string
	for _, k := range kept {
		files = append(files, k.Files...)
	}
	return a.logFiles(ctx, addr, files, r.tail)
}

// hostLogs shows the logs of the processes that run a VM.
func (a *app) hostLogs(ctx context.Context, r logsRequest) (err error) {
	s, err := a.observe(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.world.Close()) }()
	v, err := a.logged(s, r)
	if err != nil {
		return err
	}
	logger, ok := providers.Ability[providers.HostLogger](v.system.Provider)
	if !ok {
		return newProblem(classFailed, "no_log", "read the logs of the processes of "+v.address.String()+": "+v.system.Ref.String()+" has none, its system keeps them")
	}
	var files []string
	for _, f := range logger.HostLogs(*v.object) {
		if _, err := os.Stat(f.Path); !errors.Is(err, fs.ErrNotExist) {
			files = append(files, f.Path)
		}
	}
	if len(files) == 0 {
		return newProblem(classFailed, "no_log", "read the logs of the processes of "+v.address.String()+": there are none: it was never started")
	}
	return a.logFiles(ctx, v.address, files, r.tail)
}

// logFiles shows logs of a VM, each after its path; tail counts the last lines, below 0: all.
func (a *app) logFiles(ctx context.Context, addr spec.Address, files []string, tail int) error {
	all := a.logText(addr)
	for _, path := range files {
		all.write(fmt.Appendf(nil, "==> %s <==\n", path))
		c := console{address: addr, reader: logFile(path)}
		from, err := c.tail(ctx, tail)
		if err == nil {
			err = c.copy(ctx, from, all.write)
		}
		if err != nil {
			return err
		}
		all.write([]byte("\n"))
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

// logFile reads a file as if it were a console.
type logFile string

var _ providers.ConsoleReader = logFile("")

// Console implements providers.ConsoleReader.
func (path logFile) Console(_ context.Context, _ providers.Object, from int64, most int) (part providers.Console, err error) {
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
