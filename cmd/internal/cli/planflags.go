package cli

import (
	"time"

	"github.com/spf13/pflag"

	"vmctl/planner"
	"vmctl/spec"
	"vmctl/state"
)

// planFlags narrow a plan and allow what it may do.
type planFlags struct {
	targets, excludes          []string
	allowReplace, allowDestroy []string
	allowInterrupt             []string
	verbose                    bool
	kept                       bool // the variables are in a plan file
}

func (f *planFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.targets, "target", nil, "only `ADDR` and what it needs (when destroying: and what needs it)")
	flags.StringArrayVar(&f.excludes, "exclude", nil, "leave out `ADDR` and what needs it (when destroying: and what it needs)")
	flags.StringArrayVar(&f.allowReplace, "allow-replace", nil, "allow the replacement of `ADDR`")
	flags.StringArrayVar(&f.allowDestroy, "allow-destroy", nil, "allow destroying `ADDR` despite prevent_destroy")
	f.registerInterrupt(flags)
	flags.BoolVar(&f.verbose, "verbose", false, "show every detail")
}

func (f *planFlags) registerInterrupt(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.allowInterrupt, "allow-interrupt", nil, "allow taking `ADDR` down while somebody works in it")
}

// applyFlags say how a plan is carried out.
type applyFlags struct {
	approved    bool
	parallelism int
	keepGoing   bool
	lockTimeout time.Duration
}

func (f *applyFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.approved, "auto-approve", false, "do not ask")
	flags.IntVar(&f.parallelism, "parallelism", 10, "at most `N` steps run side by side")
	flags.BoolVar(&f.keepGoing, "keep-going", false, "after a failure, carry out the steps that do not depend on it")
	f.registerLock(flags)
}

func (f *applyFlags) registerLock(flags *pflag.FlagSet) {
	f.lockTimeout = -1
	flags.Var(waitFlag{&f.lockTimeout}, "lock-timeout", "wait at most `DURATION`, such as 30s, for the run lock (default: as the spec says)")
	flags.Lookup("lock-timeout").DefValue = "" // help shows no default
}

func (f *applyFlags) check() error {
	if f.parallelism < 1 {
		return rejected("usage", "read --parallelism: it has to be at least 1")
	}
	return nil
}

// wait returns the longest time to wait for the run lock.
func (f *applyFlags) wait(s spec.Settings) time.Duration {
	if f.lockTimeout >= 0 {
		return f.lockTimeout
	}
	return s.LockTimeout
}

// options returns the planner's options for the flags.
func (a *app) options(p *project, s *state.Snapshot, f planFlags) (planner.Options, error) {
	o := planner.Options{Types: a.types, Project: p.owner}
	var err error
	if o.Scope.Targets, err = addresses(p, s, f.targets); err != nil {
		return o, err
	}
	if o.Scope.Excludes, err = addresses(p, s, f.excludes); err != nil {
		return o, err
	}
	if o.Allow.Replace, err = addressSet(p, s, f.allowReplace); err != nil {
		return o, err
	}
	if o.Allow.Destroy, err = addressSet(p, s, f.allowDestroy); err != nil {
		return o, err
	}
	o.Allow.Interrupt, err = addressSet(p, s, f.allowInterrupt)
	return o, err
}
