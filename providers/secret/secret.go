// Package secret stands between vmctl and a provider: the provider gets sensitive values as they are, and only
// when it carries out a step; whatever it says comes back without them. No provider has to know that a
// value is sensitive.
package secret

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"vmctl/condition"
	"vmctl/internal/mask"
	"vmctl/providers"
	"vmctl/spec"
)

// Open opens a provider of a type. The settings and later values may be marked as sensitive. The texts of
// these values are added to m, which removes them from all that the provider says.
func Open(ctx context.Context, t providers.Type, s providers.Settings, m *mask.Masker) (providers.Provider, error) {
	m.Add(spec.Texts(s.Attrs)...)
	s.Attrs = spec.Revealed(s.Attrs)
	p, err := t.Open(ctx, s)
	if err != nil {
		return nil, masked(err, m)
	}
	return &wrapper{p, m}, nil
}

type wrapper struct {
	providers.Provider
	masker *mask.Masker
}

var _ providers.Wrapper = (*wrapper)(nil)

// Unwrap returns the provider.
func (w *wrapper) Unwrap() providers.Provider { return w.Provider }

// Observe gives the provider no sensitive value.
func (w *wrapper) Observe(ctx context.Context, q providers.Query) (providers.Inventory, error) {
	q.Known = slices.Clone(q.Known)
	for i := range q.Known {
		k := &q.Known[i]
		k.Prior, k.Want = spec.Hidden(k.Prior), spec.Hidden(k.Want)
	}
	var inv providers.Inventory
	err := providers.Contain(func() (err error) {
		inv, err = w.Provider.Observe(ctx, q)
		return err
	})
	w.inventory(&inv)
	return inv, masked(err, w.masker)
}

// inventory masks the words of an inventory.
func (w *wrapper) inventory(inv *providers.Inventory) {
	for _, problems := range []map[spec.Kind]*providers.Problem{inv.Partial, inv.Missing} {
		for kind, p := range problems {
			problems[kind] = problem(p, w.masker)
		}
	}
	inv.Blind = problem(inv.Blind, w.masker)
	for i := range inv.Unknown {
		u := &inv.Unknown[i]
		u.Reason, u.Next = w.masker.Text(u.Reason), advice(u.Next, w.masker)
	}
	for name, fact := range inv.Host {
		inv.Host[name] = w.masker.Text(fact)
	}
	for i := range inv.Objects {
		o := &inv.Objects[i]
		for path, why := range o.Unreadable {
			o.Unreadable[path] = w.masker.Text(why)
		}
		for j := range o.Findings {
			f := &o.Findings[j]
			f.Evidence, f.Action, f.Next = w.masker.Texts(f.Evidence), w.masker.Text(f.Action), advice(f.Next, w.masker)
		}
	}
}

// Steps gives the provider no sensitive value: steps are pure data, and kept in plans.
func (w *wrapper) Steps(c providers.Change) ([]providers.Step, error) {
	c.Prior, c.Want = spec.Hidden(c.Prior), spec.Hidden(c.Want)
	c.Edits = slices.Clone(c.Edits)
	for i := range c.Edits {
		c.Edits[i].Before, c.Edits[i].After = spec.Hidden(c.Edits[i].Before), spec.Hidden(c.Edits[i].After)
	}
	var steps []providers.Step
	err := providers.Contain(func() (err error) {
		steps, err = w.Provider.Steps(c)
		return err
	})
	return steps, masked(err, w.masker)
}

// Preview gives the provider the sensitive values: its system runs with them, as in a step. A provider that cannot
// preview tells nothing.
func (w *wrapper) Preview(ctx context.Context, c providers.Change) (*providers.Preview, error) {
	inner, ok := providers.Ability[providers.Previewer](w.Provider)
	if !ok {
		return nil, nil
	}
	w.masker.Add(spec.Texts(c.Want)...)
	c.Prior, c.Want = spec.Hidden(c.Prior), spec.Revealed(c.Want)
	var seen *providers.Preview
	err := providers.Contain(func() (err error) {
		seen, err = inner.Preview(ctx, c)
		return err
	})
	if seen != nil {
		for i := range seen.Acts {
			seen.Acts[i].Text = w.masker.Text(seen.Acts[i].Text)
		}
	}
	return seen, masked(err, w.masker)
}

// Do gives the provider the sensitive values.
func (w *wrapper) Do(ctx context.Context, work providers.Work, log providers.Log) (providers.Result, error) {
	secrets := spec.Texts(work.Want)
	w.masker.Add(secrets...)
	if work.Provision != "" { // the log of a script is masked line by line
		w.masker.Add(longLines(secrets)...)
	}
	work.Prior, work.Want, work.Mask = spec.Hidden(work.Prior), spec.Revealed(work.Want), w.masker.Text
	say := log
	if log != nil {
		say = func(p providers.Progress) {
			p.Text = w.masker.Text(p.Text)
			if p.Condition != nil {
				c := report(*p.Condition, w.masker)
				p.Condition = &c
			}
			log(p)
		}
	}
	var r providers.Result
	err := providers.Contain(func() (err error) {
		r, err = w.Provider.Do(ctx, work, say)
		return err
	})
	r.Evidence, r.Conditions = w.masker.Texts(r.Evidence), slices.Clone(r.Conditions)
	for i, c := range r.Conditions {
		r.Conditions[i] = report(c, w.masker)
	}
	return r, masked(err, w.masker)
}

func report(r condition.Report, m *mask.Masker) condition.Report {
	r.Reason, r.Message = m.Text(r.Reason), m.Text(r.Message)
	return r
}

// longLines returns the lines of secrets of several lines, without those that are too short to give a secret away.
func longLines(secrets []string) []string {
	const shortest = 8
	var all []string
	for _, secret := range secrets {
		for line := range strings.Lines(secret) {
			if line = strings.TrimSpace(line); len(line) >= shortest {
				all = append(all, line)
			}
		}
	}
	return all
}

// masked returns err without secrets. A problem stays a problem, and a panic a panic; the cause of any other error
// counts for errors.Is alone.
func masked(err error, m *mask.Masker) error {
	var panicked *providers.PanicError
	var p *providers.Problem
	switch {
	case errors.As(err, &panicked):
		return &providers.PanicError{Value: m.Text(fmt.Sprint(panicked.Value)), Where: panicked.Where, Stack: m.Text(panicked.Stack)}
	case errors.As(err, &p) && m.Text(err.Error()) == err.Error() && isClean(p, m):
		return err
	case p != nil:
		return problem(p, m)
	case err == nil || m.Text(err.Error()) == err.Error():
		return err
	default:
		return &maskedError{text: m.Text(err.Error()), err: err}
	}
}

func isClean(p *providers.Problem, m *mask.Masker) bool {
	return slices.Equal(p.Seen, m.Texts(p.Seen)) && slices.EqualFunc(p.Next, advice(p.Next, m), func(a, b providers.Advice) bool {
		return a.Text == b.Text && slices.Equal(a.Args, b.Args)
	})
}

func problem(p *providers.Problem, m *mask.Masker) *providers.Problem {
	if p == nil {
		return nil
	}
	clean := *p
	clean.Seen, clean.Next = m.Texts(p.Seen), advice(p.Next, m)
	if p.Err != nil && m.Text(p.Err.Error()) != p.Err.Error() {
		clean.Err = &maskedError{text: m.Text(p.Err.Error()), err: p.Err}
	}
	return &clean
}

func advice(all []providers.Advice, m *mask.Masker) []providers.Advice {
	clean := slices.Clone(all)
	for i := range clean {
		clean[i].Text, clean[i].Args = m.Text(clean[i].Text), m.Texts(clean[i].Args)
	}
	return clean
}

// maskedError is an error whose text is masked. It has no Unwrap: the text of its cause has the secret.
type maskedError struct {
	text string
	err  error
}

// Error returns the masked text.
func (e *maskedError) Error() string { return e.text }

// Is reports whether the cause is a target.
func (e *maskedError) Is(target error) bool { return errors.Is(e.err, target) }
