package libvirt

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// tailBytes and tailLines limit the part of a log that a failure quotes.
const (
	tailBytes = 8 << 10
	tailLines = 8
)

// evidence collects QEMU's own state and the end of its log, to explain why a domain went
// wrong.
func (p *Provider) evidence(ctx context.Context, c connection, s observedDomain) []string {
	var all []string
	if s.power.on() {
		if out, err := c.Monitor(ctx, s.UUID, "info status"); err == nil {
			all = append(all, "QEMU says: "+strings.TrimSpace(out))
		}
	}
	log := p.qemuLog(s.Name)
	if lines := tailOfFile(log); len(lines) > 0 {
		all = append(all, "last lines of QEMU's log "+log+":")
		for _, line := range lines {
			all = append(all, "  "+line)
		}
	}
	return all
}

// qemuLog returns the path of libvirt's log of QEMU's messages; "": it may be on another machine.
func (p *Provider) qemuLog(name string) string {
	switch {
	case !p.location.Here || p.location.Test:
		return ""
	case p.location.System:
		return filepath.Join("/var/log/libvirt/qemu", name+".log")
	}
	cache := p.host.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		cache = filepath.Join(p.host.Getenv("HOME"), ".cache")
	}
	return filepath.Join(cache, "libvirt/qemu/log", name+".log")
}

// tailOfFile returns the last messages of QEMU in a log. It leaves out the command line, of
// which libvirt writes one argument a line. It returns nothing if the file cannot be read.
func tailOfFile(path string) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer closeQuietly(f)
	if info, err := f.Stat(); err != nil || info.Size() > tailBytes {
		if _, err := f.Seek(-tailBytes, io.SeekEnd); err != nil {
			return nil
		}
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil
	}
	return messages(text)
}

// messages returns the last lines of the last start. If they report an error, it returns the
// lines from there: a long dump may follow.
func messages(text []byte) []string {
	var all []string
	argument := false
	scanner := bufio.NewScanner(bytes.NewReader(text))
	for scanner.Scan() {
		line := scanner.Text()
		if strings.HasSuffix(line, `\`) {
			argument, all = true, nil // a newer start begins
			continue
		}
		if !argument && strings.TrimSpace(line) != "" {
			all = append(all, line)
		}
		argument = false
	}
	from := max(0, len(all)-tailLines)
	if i := slices.IndexFunc(all, func(line string) bool { return strings.Contains(line, "error") }); i >= 0 {
		from = i
	}
	return all[from:min(len(all), from+tailLines)]
}

func closeQuietly(f io.Closer) {
	_ = f.Close() //nolint:errcheck // it was only read
}

// bootLog names a guest's console log and quotes its end.
func (p *Provider) bootLog(ctx context.Context, c connection, s observedDomain) []string {
	log := s.configured.ConsoleLog
	if log == "" {
		return nil
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	all := []string{"the guest's boot log is " + log}
	f, err := p.locate(own, c, log)
	if err != nil {
		return all
	}
	text, _, err := c.Part(own, f.in.Name, f.name, -tailBytes, tailBytes)
	if err != nil {
		return all
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range lines[max(0, len(lines)-tailLines):] {
		if line = strings.TrimRight(line, "\r"); line != "" {
			all = append(all, "  "+line)
		}
	}
	return all
}
