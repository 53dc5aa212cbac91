package state

import "vmctl/spec"

// upgrades leads from each older format to the next. Format 1 is the first one.
var upgrades = map[int]upgrade{1: {Snapshot: upgradeSnapshot1, Entry: upgradeEntry1}}

// shapeUpgrades leads, for each kind, from each older version of its shape to the next. Every kind
// still has its first version.
var shapeUpgrades = map[spec.Kind]map[int]valuesUpgrade{}
