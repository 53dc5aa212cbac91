package state

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
