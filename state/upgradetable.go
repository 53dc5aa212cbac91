package state

// upgrades leads from each older format to the next. Format 1 is the first one.
var upgrades = map[int]upgrade{1: {Snapshot: upgradeSnapshot1, Entry: upgradeEntry1}}
