//go:build !linux

package process

// AdoptOrphans makes this process the parent of every descendant whose own parent ends, so that
// Descendants finds it. Where a system cannot do that, orphans are lost to Descendants.
func AdoptOrphans() error { return nil }
