package view

import "vmctl/providers"

// look holds the symbol, the style and the verb of an action in a plan.
type look struct {
	symbol, ascii string
	style         style
	verb          string // in a summary: "1 to create"
}

// looks lists the look of each action, in the order in which a summary counts them.
var looks = []struct {
	action providers.Action
	look   look
}{
	{providers.Create, look{"+", "+", green, "to create"}},
	{providers.Adopt, look{"<=", "<=", cyan, "to adopt"}},
	{providers.Import, look{"<-", "<-", cyan, "to import"}},
	{providers.Update, look{"~", "~", yellow, "to update"}},
	{providers.RestartIt, look{"~!", "~!", yellow, "to restart"}},
	{providers.ReplaceIt, look{"-/+", "-/+", red, "to replace"}},
	{providers.Start, look{"▶", ">", green, "to start"}},
	{providers.Stop, look{"■", "#", yellow, "to stop"}},
	{providers.Recover, look{"^", "^", yellow, "to recover"}},
	{providers.Release, look{"<>", "<>", yellow, "to release"}},
	{providers.Destroy, look{"-", "-", red, "to destroy"}},
	{providers.Forget, look{"x", "x", dim, "to forget"}},
	{providers.NoOp, look{"=", "=", dim, "unchanged"}},
}

func lookOf(a providers.Action) look {
	for _, l := range looks {
		if l.action == a {
			return l.look
		}
	}
	panic("no look for action " + string(a))
}
