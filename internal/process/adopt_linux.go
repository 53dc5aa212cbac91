package process

import "golang.org/x/sys/unix"

// AdoptOrphans makes this process the parent of every descendant whose own parent ends, so that
// Descendants finds it. Where a system cannot do that, orphans are lost to Descendants.
func AdoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }
