package machine

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
)

// Judge decides how an edit of an attribute applies.
type Judge = func(before, after cty.Value, running bool) providers.Verdict

// Live returns the judge of an attribute that is changed in place, whether the object runs or
// not.
func Live(reason string) Judge {
	return func(cty.Value, cty.Value, bool) providers.Verdict {
		return providers.Verdict{Applies: providers.Live, Reason: reason}
	}
}

// AtStart returns the judge of an attribute that an object reads when it starts.
func AtStart(reason string) Judge {
	return func(_, _ cty.Value, running bool) providers.Verdict {
		if running {
			return providers.Verdict{Applies: providers.Restart, Reason: reason}
		}
		return providers.Verdict{Applies: providers.Live, Reason: "it is not running: takes effect at the next start"}
	}
}

// AtCreation returns the judge of an attribute that only counts when the object is made.
func AtCreation(reason string) Judge {
	return func(cty.Value, cty.Value, bool) providers.Verdict {
		return providers.Verdict{Applies: providers.Replace, Reason: reason}
	}
}

// Grows judges the size of a disk.
func Grows(before, after cty.Value, _ bool) providers.Verdict {
	if ctyread.Known(before) && ctyread.Known(after) && before.Type() == cty.Number && after.Type() == cty.Number && after.LessThan(before).True() {
		return providers.Verdict{Applies: providers.Refused, Reason: "shrinking a disk would cut off what is at its end"}
	}
	return providers.Verdict{Applies: providers.Live, Reason: "it is grown in its place, in use or not"}
}

// ForwardsAtStart returns the judge of forwarded ports that an object reads when it starts.
// It refuses invalid ones.
func ForwardsAtStart(reason string) Judge {
	return func(before, after cty.Value, running bool) providers.Verdict {
		if _, err := DecodeForwards(after); err != nil {
			return providers.Verdict{Applies: providers.Refused, Reason: err.Error()}
		}
		return AtStart(reason)(before, after, running)
	}
}

// Disks judges additional disks. A disk can be attached while the VM runs. To remove a disk,
// the VM must be off, since the guest may be using the disk. To change the order of the
// disks, it must be off too, since the guest would find its disks in another order.
func Disks(before, after cty.Value, running bool) providers.Verdict {
	if _, err := DecodeDisks(after); err != nil {
		return providers.Verdict{Applies: providers.Refused, Reason: err.Error()}
	}
	had, has := diskNames(before), diskNames(after)
	for _, disk := range had {
		if !slices.Contains(has, disk) {
			return AtStart(fmt.Sprintf("its guest may be using %s, which is taken away while it is off", disk))(before, after, running)
		}
	}
	kept := slices.DeleteFunc(slices.Clone(has), func(disk string) bool { return !slices.Contains(had, disk) })
	if !slices.Equal(kept, had) || len(had) > 0 && has[0] != had[0] {
		return AtStart("the guest finds its disks in another order")(before, after, running)
	}
	return providers.Verdict{Applies: providers.Live, Reason: "a disk is attached, running or not"}
}

// DisksAtStart returns the judge of additional disks that an object gets when it starts. It refuses
// invalid ones.
func DisksAtStart(reason string) Judge {
	return func(before, after cty.Value, running bool) providers.Verdict {
		if _, err := DecodeDisks(after); err != nil {
			return providers.Verdict{Applies: providers.Refused, Reason: err.Error()}
		}
		return AtStart(reason)(before, after, running)
	}
}

func diskNames(v cty.Value) []string {
	var all []string
	for _, e := range ctyread.List(v) {
		all = append(all, ctyread.Text(e, "disk"))
	}
	return all
}
