package state

import "sync"

// WithAdvice is reached from inside: few tests see a disk that is really full.
var WithAdvice = withAdvice

// Upgrade is how a format of a test becomes the next one.
type Upgrade = upgrade

// Reading is a folder whose newest format is another, and which can read the
// formats before it.
func Reading(f Folder, newest int, upgrades map[int]Upgrade) Folder {
	f.reads = formats{newest: newest, upgrade: upgrades}
	return f
}

// Midway is a folder of which the first Read calls do once it has read the
// snapshot, and has not read the journals.
func Midway(f Folder, do func()) Folder {
	f.midway = sync.OnceFunc(do)
	return f
}
