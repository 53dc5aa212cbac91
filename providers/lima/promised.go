package lima

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"vmctl/internal/shellword"
	"vmctl/internal/sshx"
	"vmctl/providers"
	"vmctl/providers/machine"
)

// What a spec promises of a guest beside its SSH: forwarded ports, mounts, and scripts that end well. Lima itself calls a
// guest running without them.

const (
	portLimit   = 5 * time.Second  // the time in which the run before lets go of its ports
	scriptLimit = 10 * time.Second // the time in which the console shows the end of scripts that have ended
)

// portsAreFree fails if somebody else listens on a port of this host that the spec forwards: Lima would only log it. Those
// of a template are Lima's matter.
func (j *job) portsAreFree(ctx context.Context) error {
	for _, f := range forwardsOf(j.seen.doc, j.seen.mark.Auto) {
		if !f.Fixed() || !slices.Contains(j.seen.mark.Forwards, forwardKey(f)) {
			continue
		}
		for began := j.settings.Now(); ; {
			_, err := listenOnce(f, f.Host)
			if err == nil {
				break
			}
			if j.settings.Now().Sub(began) < portLimit && j.host.Sleep(ctx, pollInterval) == nil {
				continue
			}
			return &providers.Problem{
				Outcome: providers.Failed, Code: "port_taken", Seen: []string{err.Error()},
				Next: providers.Say(
					fmt.Sprintf("see who has it: ss -lnp 'sport = :%d'", f.Host),
					fmt.Sprintf("or let vmctl choose a free one: leave `host` out of that port_forward of %s", j.Address),
				),
				Err: fmt.Errorf("start %s: port %d of this host, to which its port %d is forwarded, is taken", j.Address, f.Host, f.Guest),
			}
		}
	}
	return nil
}

// keepsPromises fails if the guest, which has been set up, lacks a mount, or if one of the spec's
// scripts in it has failed. It returns what else went wrong, in words.
func (j *job) keepsPromises(ctx context.Context, t sshx.Target) ([]string, error) {
	failed, others, err := j.failedScripts(ctx)
	if err != nil {
		return nil, err
	}
	if len(failed) > 0 {
		return nil, &providers.Problem{
			Outcome: providers.Failed, Code: "script_failed", Seen: failed, Next: providers.Say("read the guest's boot log: " + j.path(j.Name, serialLog)),
			Err: fmt.Errorf("wait for SSH of %s: it lets vmctl in, and a script of its boot has failed", j.Address),
		}
	}
	lacking, err := j.lackingMounts(ctx, t)
	if err != nil || len(lacking) == 0 {
		return others, err
	}
	return nil, &providers.Problem{
		Outcome: providers.Failed, Code: "not_mounted", Seen: append(others, j.lastWords(j.Name)...),
		Next: providers.Say(
			"read the guest's boot log: "+j.path(j.Name, serialLog),
			"if the guest has no sshfs and cannot install it: write another `mountType` into the template",
		),
		Err: fmt.Errorf("wait for SSH of %s: it lets vmctl in, and nothing is mounted at %s", j.Address, strings.Join(lacking, ", ")),
	}
}

// lackingMounts returns the targets of the spec's mounts at which the guest has nothing mounted.
func (j *job) lackingMounts(ctx context.Context, t sshx.Target) ([]string, error) {
	if len(j.want.Mounts) == 0 {
		return nil, nil
	}
	targets := make([]string, len(j.want.Mounts))
	resolve := ""
	for i, m := range j.want.Mounts {
		targets[i] = m.Target
		if m.Target == "" {
			targets[i] = j.absolute(m.Source)
		}
		resolve += fmt.Sprintf("readlink -f %[1]s || echo %[1]s; ", shellword.Quote(targets[i]))
	}
	out, err := ask(ctx, t, resolve+"cat /proc/mounts")
	if err != nil {
		return nil, fail(err, "read the mounts of %s", j.Address)
	}
	lines := strings.Split(out, "\n")
	if len(lines) < len(targets) {
		return nil, fail(errors.New("its answer is cut short"), "read the mounts of %s", j.Address)
	}
	var mounted []string
	for _, line := range lines[len(targets):] {
		if fields := strings.Fields(line); len(fields) > 1 {
			mounted = append(mounted, strings.NewReplacer(`\040`, " ", `\011`, "\t", `\134`, `\`).Replace(fields[1]))
		}
	}
	var lacking []string
	for i, target := range targets {
		if !slices.Contains(mounted, lines[i]) && !slices.Contains(mounted, path.Clean(target)) {
			lacking = append(lacking, target)
		}
	}
	return lacking, nil
}

// ask runs a command in a guest, and returns its output.
func ask(ctx context.Context, t sshx.Target, command string) (string, error) {
	client, err := t.Connect(ctx)
	if err != nil {
		return "", err
	}
	defer client.Close()                                          //nolint:errcheck // the command has ended
	stop := context.AfterFunc(ctx, func() { _ = client.Close() }) //nolint:errcheck // it may be closed already
	defer stop()
	session, err := client.NewSession()
	if err != nil {
		return "", err
	}
	out, err := session.Output(command)
	return string(out), err
}

// serialLog is the console of an instance.
const serialLog = "serial.log"

// failedScripts returns what the console shows of scripts of the spec that have failed at this boot, and of those of
// Lima's own. A guest whose console shows none of Lima's words has none to show.
func (j *job) failedScripts(ctx context.Context) (failed, others []string, err error) {
	for began := j.settings.Now(); ; {
		text, err := tail(j.path(j.Name, serialLog))
		if err != nil {
			return nil, nil, fail(err, "read the console of %s", j.Name)
		}
		failed, others, ended := scriptsIn(string(text), j.seen.mark.sets(keyDisks))
		if ended || j.settings.Now().Sub(began) >= scriptLimit {
			return failed, others, nil
		}
		if err := j.pause(ctx, "its console has not shown the end of its scripts"); err != nil {
			return nil, nil, err
		}
	}
}

// scriptsIn returns the failures that the boot script of Lima v2.2.0 (boot.sh) has reported, each after the last words of
// the script: of the scripts that a spec has, which run in the folders provision.*, and those of the disks and mounts, and
// of Lima's others. ended: it has ended, or it does not write there.
//
// Where vmctl's own script mounts the disks, the failure of Lima's tells nothing: that one expects a partition on each disk, also
// on one that has no file system, and fails at the first that has none.
func scriptsIn(console string, mountsDisks bool) (failed, others []string, ended bool) {
	const warning = "| WARNING: Failed to execute "
	ended = true
	lines := strings.Split(strings.ReplaceAll(console, "\r", ""), "\n")
	for i, line := range lines {
		switch {
		case !strings.Contains(line, bootWord):
		case strings.Contains(line, bootEnds):
			ended = true
		case strings.Contains(line, bootBegins):
			ended = false
		case strings.Contains(line, warning):
			_, script, _ := strings.Cut(line, warning)
			if mountsDisks && strings.Contains(script, disksScript) {
				continue
			}
			words := script + " has failed"
			if said := lastSaid(lines[:i]); said != "" {
				words += ": " + said
			}
			if isPromised(script) {
				failed = append(failed, words)
			} else {
				others = append(others, words)
			}
		}
	}
	return failed, others, ended
}

// The words of Lima's boot script on the console: what each of its lines has, that a script begins, and that all have ended.
const bootWord, bootBegins, bootEnds = "LIMA ", "| Executing /", "| Exiting with code "

// disksScript ends the name of Lima's script that formats and mounts disks.
const disksScript = "-lima-disks.sh"

// isPromised reports whether a spec relies on a script: it is its own, or mounts its disks and folders.
func isPromised(script string) bool {
	for _, part := range []string{"/provision.", disksScript, "-lima-mounts.sh"} {
		if strings.Contains(script, part) {
			return true
		}
	}
	return false
}

// lastSaid returns the last two lines that are of a script; "": it has said nothing.
func lastSaid(lines []string) string {
	const most = 2
	var said []string
	for i := len(lines) - 1; i >= 0 && len(said) < most && !strings.Contains(lines[i], bootWord); i-- {
		if line := strings.TrimSpace(lines[i]); line != "" {
			said = append([]string{line}, said...)
		}
	}
	return strings.Join(said, "; ")
}

// mountTypeOf returns the mountType of an instance whose template has none: Lima would take 9p, which the kernels of many
// guests lack. "": Lima knows better.
func mountTypeOf(vm machine.VM, doc map[string]any) string {
	if _, has := doc[keyMountTypesUnsupported]; has || len(vm.Mounts) == 0 || otherDriver(doc) != "" {
		return ""
	}
	return "reverse-sshfs"
}
