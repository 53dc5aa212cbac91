package condition

// Watch picks the changes of conditions that are news for a wait. Its zero value has seen none.
type Watch struct{ told map[string]Condition }

// News reports whether a condition is worth telling: it is of the awaited generation or a later one,
// and what it says was not told yet.
func (w *Watch) News(c Condition, target uint64) bool {
	if c.Generation < target {
		return false
	}
	if told, before := w.told[c.Type]; before && told.Report == c.Report {
		return false
	}
	if w.told == nil {
		w.told = map[string]Condition{}
	}
	w.told[c.Type] = c
	return true
}
