package planner

import (
	"fmt"
	"maps"
	"slices"

	"vmctl/internal/shellword"
	"vmctl/providers"
	"vmctl/spec"
)

// parents blocks the end of a disk that a VM keeps using, and of a VM with what is
// inside of it that is to be kept.
func (d *differ) parents() {
	users, inside := d.recordedUsers()
	for _, a := range slices.SortedFunc(maps.Keys(d.decided), spec.Address.Compare) {
		c := d.decided[a]
		if c.Blocked != nil || !d.scope[a] || c.Action != providers.Destroy && c.Action != providers.ReplaceIt {
			continue
		}
		for _, user := range users[a] {
			if a.Kind == spec.Disk && d.keepsUsing(user, c) {
				d.keep(c, user, fmt.Sprintf("%s uses it, and this plan does not change that", user))
			}
		}
		for _, child := range inside[a] {
			if d.staysInside(child, c) {
				d.keep(c, child, fmt.Sprintf("%s is inside of it, and is to be kept", child))
			}
		}
		for _, child := range inside[a] {
			if c.Blocked != nil && d.decided[child].Action == providers.Release { // it stays up
				d.decided[child].Action = providers.NoOp
			}
		}
	}
}

// recordedUsers are, by address, those that use it by their records, and those that
// are inside of it; sorted.
func (d *differ) recordedUsers() (users, inside map[spec.Address][]spec.Address) {
	users, inside = map[spec.Address][]spec.Address{}, map[spec.Address][]spec.Address{}
	for _, a := range slices.SortedFunc(maps.Keys(d.state.Records), spec.Address.Compare) {
		r := d.state.Records[a]
		for _, used := range r.Uses {
			users[used] = append(users[used], a)
		}
		if (r.Inside != spec.Address{}) {
			inside[r.Inside] = append(inside[r.Inside], a)
		}
	}
	return users, inside
}

// keepsUsing reports whether a VM goes on with a disk that is about to end. What
// does not exist any more uses nothing.
func (d *differ) keepsUsing(user spec.Address, disk *Change) bool {
	c := d.decided[user]
	lost := c.Object == nil && c.Action != providers.Forget && (c.Blocked == nil || c.Blocked.Kind != Unknown)
	switch {
	case user.Kind != spec.VM, lost:
		return false
	case !d.scope[user], c.Blocked != nil:
		return true
	case c.Action == providers.Forget:
		return c.ID == "" // its object stays as it is
	case c.Action == providers.Destroy, c.Action == providers.ReplaceIt:
		return false
	case disk.Action == providers.ReplaceIt:
		return false // it takes the next one
	default:
		return slices.Contains(c.Needs, disk.Address)
	}
}

// staysInside reports whether something inside of a VM is to outlive it.
func (d *differ) staysInside(child spec.Address, vm *Change) bool {
	c := d.decided[child]
	switch {
	case vm.Action == providers.ReplaceIt:
		return isPrevented(c.Policy) && !d.options.Allow.Destroy[child]
	case c.Action == providers.Forget:
		return false
	default:
		return !d.scope[child] || c.Blocked != nil
	}
}

func (d *differ) keep(c *Change, other spec.Address, why string) {
	if c.Blocked != nil {
		return
	}
	next := fmt.Sprintf("take %s in: leave out --target and --exclude, or name it, too: --target=%s", other, shellword.Quote(other.String()))
	if d.scope[other] {
		next = fmt.Sprintf("see what the plan says of %s", other)
	}
	c.Blocked = &Block{Kind: Blocked, Reason: why, Next: []string{next}}
}
