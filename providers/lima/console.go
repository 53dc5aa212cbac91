package lima

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"vmctl/providers"
	"vmctl/spec"
)

var (
	_ providers.ConsoleReader = (*Provider)(nil)
	_ providers.LogLister     = (*Provider)(nil)
	_ providers.HostLogger    = (*Provider)(nil)
)

// Console returns a part of the guest's console output, which Lima begins anew at each start.
func (p *Provider) Console(ctx context.Context, o providers.Object, from int64, most int) (providers.Console, error) {
	running := p.find(ctx).of[o.Name] // before the text, so that its last words are read
	path := p.console(o.Name)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return providers.Console{}, fmt.Errorf("it was never started: %w", providers.ErrNoConsole)
	}
	if err != nil {
		return providers.Console{}, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	info, err := f.Stat()
	if err != nil {
		return providers.Console{}, err
	}
	start, length := providers.PartOf(info.Size(), from, most)
	text, err := io.ReadAll(io.NewSectionReader(f, start, length))
	if err != nil {
		return providers.Console{}, fmt.Errorf("read %s: %w", path, err)
	}
	return providers.Console{Text: text, Start: start, More: len(running) > 0}, nil
}

// Logs implements providers.LogLister: the logs of the host agent, and the consoles of the run before.
func (p *Provider) Logs(_ spec.Address, o providers.Object) ([]providers.LogFile, error) {
	entries, err := os.ReadDir(p.dir(o.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []providers.LogFile
	console := p.console(o.Name)
	for _, e := range entries {
		path := p.path(o.Name, e.Name())
		if path != console && filepath.Ext(strings.TrimSuffix(e.Name(), ".1")) == ".log" {
			all = append(all, providers.LogFile{Name: e.Name(), Path: path})
		}
	}
	return all, err
}

// HostLogs implements providers.HostLogger: what the host agent reports, and its log, which has the last words of QEMU and
// ssh, too.
func (p *Provider) HostLogs(o providers.Object) []providers.LogFile {
	var all []providers.LogFile
	for _, name := range []string{eventsLog, agentLog} {
		all = append(all, providers.LogFile{Name: name, Path: p.path(o.Name, name)})
	}
	return all
}

// console returns the log of the first console that the guest has written to: which one it uses
// depends on its kernel.
func (p *Provider) console(name string) string {
	first := ""
	for _, file := range []string{"serial.log", "serialp.log", "serialv.log"} {
		path := p.path(name, file)
		info, err := os.Stat(path)
		if err == nil && info.Size() > 0 {
			return path
		}
		if err == nil {
			first = cmp.Or(first, path)
		}
	}
	return cmp.Or(first, p.path(name, "serial.log"))
}
