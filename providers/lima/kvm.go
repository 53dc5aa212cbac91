package lima

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vmctl/internal/yamltext"
	"vmctl/providers"
	"vmctl/providers/machine"
)

// emulates reports whether QEMU emulates the CPUs of an instance with that accelerator. KVM that failed
// once is not tried again until the machine is started anew.
func (p *Provider) emulates(accel string) bool {
	switch accel {
	case machine.AccelTCG:
		return true
	case machine.AccelKVM:
		return false
	}
	return p.host.KVM != "" && (!opens(p.host.KVM) || p.failedKVM())
}

// opens reports whether this process may use a device.
func opens(device string) bool {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// kvmFailure is the note of a failure of KVM.
type kvmFailure struct {
	Boot string `json:"boot"` // of the machine
	Why  string `json:"why"`
}

func (p *Provider) kvmFile() string { return filepath.Join(p.home, configDir, ".vmctl-kvm.json") }

// bootID returns an identifier of this boot of the machine; "": there is none.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// failedKVM reports whether KVM has failed since the machine was started.
func (p *Provider) failedKVM() bool {
	var f kvmFailure
	text, err := os.ReadFile(p.kvmFile())
	return err == nil && json.Unmarshal(text, &f) == nil && f.Boot != "" && f.Boot == bootID()
}

// triesKVM reports whether the step tries KVM, which may work or not.
func (j *job) triesKVM() bool {
	return j.host.KVM != "" && j.want.Accel == machine.AccelAuto && !j.emulates(j.want.Accel)
}

// kvmTime is the time for which a guest on KVM is watched after its start: where the device opens and
// does not work, QEMU ends or its guest stops at once.
const kvmTime = 2 * time.Second

// watch fails if the guest stops within a moment after its start.
func (j *job) watch(ctx context.Context) error {
	for began := j.settings.Now(); j.settings.Now().Sub(began) < kvmTime; {
		s, err := j.readInstance(ctx, j.Name, j.find(ctx))
		switch {
		case err != nil:
			return err
		case s.state == providers.StateBroken:
			return errors.New(s.reason)
		case s.state == providers.StateOff || s.state == providers.StateEnding:
			return errors.New("QEMU ended at once")
		}
		if err := j.host.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
	return nil
}

// whyNotKVM returns what was said of KVM when a start that tried it failed, which is tried again without it then; "":
// nothing. Only the state of the guest and QEMU's own words count: those of Lima name files and instances.
func (j *job) whyNotKVM(err error) string {
	if err == nil {
		return ""
	}
	if said := err.Error(); strings.HasSuffix(said, stateInternalError) {
		return said
	}
	for _, said := range j.linesOfQEMU(j.Name) {
		if words := j.withoutPaths(said); kvmPattern.MatchString(words) && !kvmWarning.MatchString(words) {
			return strings.TrimPrefix(said, wordsOfQEMU)
		}
	}
	return ""
}

// stateInternalError ends the reason of an instance that KVM has given up.
const stateInternalError = "in the state internal-error"

// withoutPaths leaves out the paths of files, which may have the name of KVM in them.
func (j *job) withoutPaths(said string) string {
	words := strings.Fields(strings.ReplaceAll(said, j.home, ""))
	return strings.Join(slices.DeleteFunc(words, func(word string) bool {
		return strings.Contains(word, "/") && !strings.Contains(word, j.host.KVM)
	}), " ")
}

// fitToKVM gives the instance an emulated CPU if it is to start without KVM and was defined for it: Lima would take the
// machine's own CPU, which only KVM has. That KVM does not work may have been found out since.
func (j *job) fitToKVM(ctx context.Context) error {
	if _, has := j.seen.doc[keyOptions]; has || j.seen.wsl != nil || !j.emulates(j.want.Accel) {
		return nil
	}
	return j.emulateCPU(ctx)
}

// emulateCPU adds an emulated CPU to the definition of the instance, as compose does where KVM does not work.
func (j *job) emulateCPU(ctx context.Context) error {
	doc, err := yamltext.Parse(j.seen.text)
	if err != nil {
		return err
	}
	m := *j.seen.mark
	if _, has := doc[keyOptions]; !has {
		doc[keyOptions] = emulatedCPU()
		m.Keys = append(slices.Clone(m.Keys), keyOptions)
		slices.Sort(m.Keys)
	}
	text, err := yamltext.Marshal(doc)
	if err == nil {
		err = writeFile(j.path(j.Name, defsFile), text)
	}
	if err == nil {
		err = writeJSON(j.path(j.Name, markName), m)
	}
	if err == nil {
		err = j.observe(ctx)
	}
	return err
}

// emulatedCPU returns the options of a VM that runs without KVM.
func emulatedCPU() map[string]any {
	return map[string]any{"qemu": map[string]any{"cpuType": map[string]any{architecture(): "max"}}}
}

// fallBack notes that KVM has failed, and prepares another start, without it.
func (j *job) fallBack(ctx context.Context, why string) ([]string, error) {
	j.log(providers.Progress{Text: fmt.Sprintf("%s can be opened, and KVM does not work (%s): starting again with TCG", j.host.KVM, why)})
	if err := j.endStarted(ctx); err != nil {
		return nil, err
	}
	if err := writeJSON(j.kvmFile(), kvmFailure{Boot: bootID(), Why: why}); err != nil {
		return nil, err
	}
	if err := j.observe(ctx); err != nil {
		return nil, err
	}
	err := j.emulateCPU(ctx)
	return []string{"accel = \"auto\": " + j.host.KVM + " can be opened, and KVM did not work (" + why + "), TCG does"}, err
}
