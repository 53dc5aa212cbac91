package lima

import (
	"context"
	"path/filepath"
	"strings"

	"vmctl/internal/sshx"
	"vmctl/internal/yamltext"
	"vmctl/providers"
)

// The host agent of Lima v2.2.0 reports a guest running once its own SSH has run some commands there, each of which it
// tries every three seconds. Where it sets nothing up after the boot scripts of the guest, the guest is ready before.

// readBoot adds whether the host agent of an instance sets nothing up in it, and whether its console shows then that its boot
// scripts have ended. One that was started by somebody else has no record of the definition it runs with: it is not asked.
func (p *Provider) readBoot(s *instance) {
	if s.events.running || s.state != providers.StateRunning || s.wsl != nil || s.run == nil || p.hasDefaults() {
		return
	}
	doc, err := yamltext.Parse(s.run.Definition)
	if err != nil || agentSetsUp(doc) {
		return
	}
	s.alone = true
	text, err := tail(p.path(s.name, serialLog))
	s.booted = err == nil && bootEnded(string(text))
}

// hasDefaults reports whether the home may add anything to each definition.
func (p *Provider) hasDefaults() bool {
	return exists(filepath.Join(p.home, configDir, "default.yaml")) || exists(filepath.Join(p.home, configDir, "override.yaml"))
}

// agentSetsUp reports whether the host agent has more to do for a definition than to wait for its guest: ports to forward,
// folders to mount, probes to run, files to copy, disks to free at the end. In a plain instance it has no agent in the
// guest.
func agentSetsUp(doc map[string]any) bool {
	if doc[keyPlain] != true || otherDriver(doc) != "" || text(doc[keyOS], osLinux) != osLinux {
		return true
	}
	for _, key := range []string{keyBase, keyMounts, keyDisks, keyProbes, keyCopies} {
		if list, isList := doc[key].([]any); doc[key] != nil && (!isList || len(list) > 0) {
			return true
		}
	}
	list, isList := doc[keyForwards].([]any)
	for _, entry := range list {
		if e, _ := entry.(map[string]any); e["ignore"] != true {
			return true
		}
	}
	return doc[keyForwards] != nil && !isList
}

// bootEnded reports whether the last word of Lima's boot script on a console is that it has ended.
func bootEnded(console string) bool {
	ended := false
	for line := range strings.Lines(console) {
		switch {
		case !strings.Contains(line, bootWord):
		case strings.Contains(line, bootEnds):
			ended = true
		case strings.Contains(line, bootBegins):
			ended = false
		}
	}
	return ended
}

// waitForBoot waits for the end of the boot scripts of a guest in which its host agent sets nothing up. It reports whether the
// guest lets vmctl in then, and says the same. Nobody logs in before: that would take the time of its processor from the
// scripts, twice, since its host agent tries to.
func (j *job) waitForBoot(ctx context.Context, t sshx.Target) (ready bool, err error) {
	for j.seen.alone && !j.seen.isSetUp() {
		if err := j.pause(ctx, "its boot scripts have not ended"); err != nil {
			return false, err
		}
	}
	return j.seen.booted && !j.seen.events.running && saysBooted(ctx, t), nil
}

// saysBooted reports whether the guest lets vmctl in, and itself says that the scripts of its present boot have ended. Its
// console also has those of an earlier one, if it has restarted itself. Lima's host agent asks for this file, too.
func saysBooted(ctx context.Context, t sshx.Target) bool {
	said, err := ask(ctx, t, "cat /run/lima-boot-done")
	return err == nil && strings.TrimSpace(said) != ""
}
