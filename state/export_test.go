package state

import "sync"

// WithAdvice exports withAdvice: few tests see a disk that is really full.
var WithAdvice = withAdvice

// Upgrade turns one format into the next one.
type Upgrade = upgrade

// Reading returns f with another newest format and with upgrades from the formats
// before it.
func Reading(f Folder, newest int, upgrades map[int]Upgrade) Folder {
	f.readableFormats = formats{newest: newest, upgrade: upgrades}
	return f
}

// Midway returns f with a hook: the first Read calls do after it has read the
// snapshot and before it reads the journals.
func Midway(f Folder, do func()) Folder {
	f.betweenReads = sync.OnceFunc(do)
	return f
}
