package cli

import (
	"maps"
	"slices"
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
	allowInterrupt, allowDirty []string
	replace                    []string // replaced even without an edit
	revert                     []string // only these become again what was applied
	verbose                    bool
	noWait                     bool // for what nothing else in the plan needs
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

func (f *planFlags) registerReplace(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.replace, "replace", nil, "replace the object of `ADDR`, even without an edit that needs it")
}

func (f *planFlags) registerWait(flags *pflag.FlagSet) {
	flags.Var(notFlag{&f.noWait}, "wait", "wait until each VM is ready; --wait=false: only where something else in the plan needs it")
	flags.Lookup("wait").NoOptDefVal = "true"
}

func (f *planFlags) registerInterrupt(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.allowInterrupt, "allow-interrupt", nil, "allow taking `ADDR` down while somebody works in it")
	flags.StringArrayVar(&f.allowDirty, "allow-dirty", nil, "allow losing the work that exists only in `ADDR`")
}

// applyFlags say how a plan is carried out.
type applyFlags struct {
	approved    bool
	parallelism int
	keepGoing   bool
	keepLogs    bool
	wake        bool   // starts what is off and holds up a removal
	reach       string // the digest of what the plan may reach; "": anything
	lockTimeout time.Duration
	timeout     time.Duration // of the whole command; 0: only the steps' own
}

func (f *applyFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.approved, "auto-approve", false, "do not ask")
	flags.IntVar(&f.parallelism, "parallelism", 10, "at most `N` steps run side by side")
	flags.BoolVar(&f.keepGoing, "keep-going", false, "after a failure, carry out the steps that do not depend on it")
	flags.Var(waitFlag{&f.timeout}, "timeout", "give up after `DURATION`, such as 1m (exit code 4); 0: never")
	flags.Lookup("timeout").DefValue = "" // help shows no default
	flags.BoolVar(&f.keepLogs, "keep-logs", false, "keep the logs of VMs that are removed; vm logs --kept shows them")
	f.registerLock(flags)
}

func (f *applyFlags) registerLock(flags *pflag.FlagSet) {
	f.lockTimeout = -1
	flags.Var(waitFlag{&f.lockTimeout}, "lock-timeout", "wait at most `DURATION`, such as 30s, for the run lock (default: as the spec says)")
	flags.Lookup("lock-timeout").DefValue = "" // help shows no default
}

func (f *applyFlags) registerWake(flags *pflag.FlagSet) {
	flags.BoolVar(&f.wake, "wake", false, "start VMs that are off and are to be removed, to see whether work is in them that exists nowhere else")
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
	o := planner.Options{Types: a.types, Project: p.owner, NoWait: f.noWait}
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
	if o.Replace, err = addressSet(p, s, f.replace); err != nil {
		return o, err
	}
	if o.Allow.Destroy, err = addressSet(p, s, f.allowDestroy); err != nil {
		return o, err
	}
	if o.Allow.Dirty, err = anyAddressSet(p, s, f.allowDirty); err != nil {
		return o, err
	}
	if o.Revert, err = addressSet(p, s, f.revert); err != nil {
		return o, err
	}
	if len(f.revert) > 0 {
		o.Scope = planner.Scope{Targets: slices.SortedFunc(maps.Keys(o.Revert), spec.Address.Compare), Alone: true}
		for _, addr := range o.Scope.Targets {
			if _, declared := p.config.Resource(addr); !declared {
				return o, newProblem(classRefused, "not_reverted", "drift --revert "+addr.String()+": its block is not in the files, so an apply destroys its object", "put the block back first")
			}
		}
	}
	o.Allow.Interrupt, err = addressSet(p, s, f.allowInterrupt)
	return o, err
}
