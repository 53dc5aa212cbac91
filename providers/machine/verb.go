package machine

import (
	"cmp"
	"context"
	"slices"

	"vmctl/providers"
	"vmctl/providers/guard"
)

// Act does one operation.
type Act = func(context.Context) (*guard.Outcome, error)

// Verb returns the verb of an operation of Recipe on a VM as it was seen; nil: there is none. The
// kit knows what the VM has to be before, and whether the goal is true already. wanted reports
// whether its definition is as wanted.
func Verb(w providers.Work, s *Seen, wanted func(context.Context) (bool, error), act Act) guard.Verb {
	v := guard.Verb{Act: act}
	state := func(is bool) Act {
		return guard.If(func() bool { return s != nil && is }, "it is "+cmp.Or(s.words(), providers.StateOff))
	}
	running := s != nil && s.State == providers.StateRunning
	switch w.Op {
	case OpDefine:
		v.Need, v.Done = guard.Making, ifWanted(wanted, "it exists")
	case OpRedefine:
		v.Done = ifWanted(wanted, "it is as wanted")
	case OpDetach:
		v.Done = guard.If(func() bool { return s != nil && !s.holdsAny(w.Frees) }, "it has none of them")
	case OpUnmark:
		v.Done = guard.If(func() bool { return s == nil || s.Mark == nil }, "it bears no mark")
	case OpStart:
		v.Done = state(running)
	case OpStop, OpRecover:
		v.Done = state(s != nil && s.State == providers.StateOff)
	case OpDelete:
		v.Need = guard.Removing
	}
	return v
}

// DiskVerb returns the verb of an operation of DiskRecipe on a disk as it was seen, as Verb does.
func DiskVerb(w providers.Work, s *SeenDisk, wanted func(context.Context) (bool, error), act Act) guard.Verb {
	v := guard.Verb{Act: act}
	switch w.Op {
	case OpDefine:
		v.Need, v.Done = guard.Expected, ifWanted(wanted, "it exists")
	case OpGrow:
		v.Done = ifWanted(wanted, "it is as large as wanted")
	case OpRedefine:
		v.Done = guard.If(func() bool { return s != nil && IsMarked(w, s.Mark) }, "its mark is as wanted")
	case OpUnlock:
		v.Done = guard.If(s.IsFree, "nobody who is gone holds it")
	case OpUnmark:
		v.Done = guard.If(func() bool { return s == nil || s.Mark == nil }, "it bears no mark")
	case OpDelete:
		v.Need = guard.Removing
	}
	return v
}

// IsMarked reports whether a mark is the one that a step writes.
func IsMarked(w providers.Work, m *providers.Mark) bool {
	return m != nil && m.Address == w.Address && m.Generation == w.Generation
}

func ifWanted(wanted func(context.Context) (bool, error), why string) Act {
	return func(ctx context.Context) (*guard.Outcome, error) {
		if is, err := wanted(ctx); err != nil || !is {
			return nil, err
		}
		return guard.Did(providers.AlreadyTrue, why), nil
	}
}

func (s *Seen) words() string {
	if s == nil {
		return ""
	}
	return cmp.Or(s.Words, s.State)
}

func (s *Seen) holdsAny(claims []providers.Claim) bool {
	return slices.ContainsFunc(s.Holds(), func(c providers.Claim) bool { return slices.Contains(claims, c) })
}
