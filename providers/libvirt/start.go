package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

// A guest that cannot run is paused or ended by QEMU soon after it starts. One whose processors
// are emulated is known to run once they have run for a moment; on KVM, a later instruction may
// still be too much for the host.
const (
	watchFor   = 1500 * time.Millisecond
	watchEvery = 20 * time.Millisecond
	hasRun     = 50 * time.Millisecond // processor time
)

// start brings the domain up, from off or paused.
func (j *job) start(ctx context.Context) (*guard.Outcome, error) {
	if j.seen.power.on() {
		return j.resume(ctx)
	}
	evidence, err := j.boot(ctx)
	if err != nil {
		return nil, err
	}
	return j.started(ctx, evidence)
}

// started returns the result of a start. It does not fail if the ports cannot be recorded:
// the guest runs.
func (j *job) started(ctx context.Context, evidence []string) (*guard.Outcome, error) {
	if err := j.observe(ctx); err != nil {
		return nil, err
	}
	if j.seen != nil && j.seen.power.on() && !j.foreign() {
		if err := j.keepPorts(ctx); err != nil {
			evidence = append(evidence, "its host ports could not be kept for the next start: "+err.Error())
		}
	}
	return guard.Did(providers.Done, evidence...), nil
}

// runs fails unless the guest runs after the step.
func (j *job) runs(ctx context.Context) error {
	switch {
	case j.seen == nil:
		return fail(errAbsent, "%s", j.doing())
	case j.seen.power.State != providers.StateRunning:
		return j.wentWrong(ctx, j.seen.power)
	}
	return nil
}

func (j *job) resume(ctx context.Context) (*guard.Outcome, error) {
	words, did := j.seen.power.Words, "resumed"
	var err error
	switch j.seen.power.Reason {
	case byUser:
		err = j.Resume(ctx, j.seen.UUID)
	case asleep:
		did = "woken"
		err = j.Wake(ctx, j.seen.UUID)
	case asUsual, broke, inTransition, inPassing, byRequest, byForce, withMemory, endsSoon:
		return nil, &providers.Problem{
			Outcome: providers.Unsafe, Code: "broken", Seen: j.evidence(ctx, j.connection, *j.seen),
			Next: providers.Vmctl("plan"),
			Err:  fmt.Errorf("start %s: it is %s", j.Address, words),
		}
	}
	if err != nil {
		return nil, fail(err, "go on with %s, which is %s", j.Name, words)
	}
	if err := j.watch(ctx); err != nil {
		return nil, err
	}
	return guard.Did(providers.Done, "it was "+words+": "+did), nil
}

// boot starts a domain that is off. It falls back to TCG if the spec leaves the choice and
// KVM does not work.
func (j *job) boot(ctx context.Context) ([]string, error) {
	domainType := j.seen.configured.Virtualized
	if domainType == typeKVM && j.isAuto() && j.kvmBroke() != "" {
		domainType = typeTCG
	}
	err := j.bootOn(ctx, domainType)
	if err == nil || domainType != typeKVM || !j.isAuto() || !accelTrouble(err) {
		return nil, err
	}
	return j.fallBack(ctx, err)
}

// isAuto reports whether the mark leaves the accelerator to vmctl.
func (j *job) isAuto() bool {
	o := j.seen.mark()
	return o.Accel == machine.AccelAuto && !o.Imported
}

// fallBack starts a domain on TCG after a failure of KVM, and remembers the failure until
// this machine is booted again.
func (j *job) fallBack(ctx context.Context, cause error) ([]string, error) {
	why := cause.Error()
	var broken *bootError
	if errors.As(cause, &broken) {
		why = broken.words
	}
	j.say("KVM does not work here (%s): starting again with TCG", why)
	if now, err := j.Power(ctx, j.seen.UUID); err != nil || now.on() { // else QEMU has ended by itself
		if err := j.Destroy(ctx, j.seen.UUID); err != nil {
			j.say("forcing it off reported: %v", err)
		}
	}
	if err := j.bootOn(ctx, typeTCG); err != nil {
		return nil, err
	}
	evidence := []string{"accel = \"auto\": KVM did not work (" + why + "), TCG does"}
	if err := j.rememberKVM(why); err != nil {
		evidence = append(evidence, "that could not be remembered: "+err.Error())
	}
	return evidence, nil
}

// bootOn starts a domain on one accelerator and watches it for a moment. It asks again for
// the host ports that the kernel chose before, as long as they are free.
func (j *job) bootOn(ctx context.Context, domainType string) error {
	if j.foreign() {
		if err := j.Start(ctx, j.seen.UUID); err != nil {
			return j.notStarted(ctx, err)
		}
		return j.watch(ctx)
	}
	ports := j.recordedPorts()
	if machine.ArgsOf(j.Step).NewPorts {
		ports = append([]machine.Forward{sshForward(0)}, j.seen.configured.wantedForwards()...)
	}
	for {
		if err := j.edit(ctx, "prepare "+j.Name+" for its start", retarget(domainType, ports)); err != nil {
			return err
		}
		err := j.Start(ctx, j.seen.UUID)
		if err == nil {
			return j.watch(ctx)
		}
		taken, ok := takenPort(j.lastWords(err))
		if !ok || !taken.Fixed() {
			return j.notStarted(ctx, err)
		}
		i := slices.Index(ports, taken)
		if i < 0 || i > 0 && j.seen.configured.wantedForwards()[i-1].Fixed() {
			return j.portTaken(taken)
		}
		j.say("host port %d is taken by now: another one is chosen", taken.Host)
		ports[i].Host = 0
	}
}

// lastWords returns QEMU's messages about a failed start. libvirt does not always wait for
// them: then it only reports that nobody answers, and QEMU's log has the rest.
func (j *job) lastWords(err error) string {
	words := err.Error()
	if strings.Contains(words, "monitor") { // QEMU was there: the log's end is its own
		words += "\n" + strings.Join(tailOfFile(j.qemuLog(j.Name)), "\n")
	}
	return words
}

// bootError is the failure of a guest that cannot run on, perhaps because of its accelerator.
type bootError struct {
	*providers.Problem
	words string
}

// Unwrap returns the failure.
func (e *bootError) Unwrap() error { return e.Problem }

func (j *job) notStarted(ctx context.Context, cause error) error {
	f := fail(cause, "start %s", j.Address)
	if f.Code == "libvirt" {
		f.Code = "start_failed"
	}
	f.Seen = append(f.Seen, j.evidence(ctx, j.connection, *j.seen)...)
	if f.Code == "no_virtlogd" {
		return f
	}
	f.Next = j.afterBoot()
	if j.locked(f, j.diskFiles()...).Code == "disk_in_use" {
		return f
	}
	return &bootError{Problem: f, words: cause.Error()}
}

// diskFiles returns the files of the domain's disks.
func (j *job) diskFiles() []string {
	var all []string
	for _, d := range j.seen.configured.disks(j.sameFiles()) {
		all = append(all, d.file())
	}
	return all
}

// watch observes a guest in its first moments, and fails if it goes wrong. If the change waits
// for its SSH next, that step observes it.
func (j *job) watch(ctx context.Context) error {
	if j.policy.Wait && !j.foreign() {
		return nil
	}
	before, err := j.Ran(ctx, j.seen.UUID)
	if err != nil {
		return fail(err, "watch %s start", j.Name)
	}
	for waited := time.Duration(0); waited < watchFor; waited += watchEvery {
		if err := j.sleep(ctx, watchEvery); err != nil {
			return fail(err, "watch %s start", j.Name)
		}
		now, err := j.Power(ctx, j.seen.UUID)
		if err != nil {
			return fail(err, "watch %s start", j.Name)
		}
		if now.lost() {
			return j.wentWrong(ctx, now)
		}
		if ran, err := j.Ran(ctx, j.seen.UUID); err == nil && ran-before >= hasRun && j.seen.configured.Virtualized == typeTCG {
			return nil
		}
	}
	return nil
}

// wentWrong returns the failure of a guest that should run and does not.
func (j *job) wentWrong(ctx context.Context, now power) error {
	s := *j.seen
	s.power = now
	f := &providers.Problem{
		Outcome: providers.Failed, Code: "guest_stopped",
		Seen: append(j.evidence(ctx, j.connection, s), j.bootLog(ctx, j.connection, s)...),
		Next: j.afterBoot(),
		Err:  fmt.Errorf("%s: the guest is %s", j.doing(), now.Words),
	}
	if now.Reason != broke { // it ended by itself, or somebody ended it
		return f
	}
	return &bootError{Problem: f, words: now.Words}
}

// afterBoot returns advice for a guest that cannot run on.
func (j *job) afterBoot() []providers.Advice {
	var next []providers.Advice
	if j.seen.configured.Virtualized == typeKVM && !j.isAuto() {
		next = append(next, providers.Say(fmt.Sprintf("if KVM does not work here: accel = \"auto\" in %s", j.Address))...)
	}
	if log := j.qemuLog(j.Name); log != "" {
		next = append(next, providers.Say("see QEMU's log: "+log)...)
	}
	return next
}

// doing describes the step in words.
func (j *job) doing() string {
	if j.Op == opWaitSSH {
		return fmt.Sprintf("wait for SSH of %s", j.Address)
	}
	return fmt.Sprintf("%s %s", j.Op, j.Address)
}

// accelTrouble reports whether another accelerator may work better.
func accelTrouble(err error) bool {
	var broken *bootError
	return errors.As(err, &broken)
}
