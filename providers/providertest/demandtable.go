package providertest

// demand is one demand on a provider.
type demand struct {
	name  string
	check func(*stage)
}

// demands lists the demands of the suite on a provider. The numbers are of the rules in the
// design.
var demands = []demand{
	{"a VM is made, marked, and removed without a trace", life},                 // 1
	{"observing writes nothing", observing},                                     // 2
	{"a step refuses another object, and done again says so", exact},            // 12
	{"a step sees what was changed meanwhile", meanwhile},                       // 12
	{"a restart is down, change, up, ready", restart},                           // 11
	{"an edit of a VM that is off takes no restart", update},                    // 3
	{"a replacement is another object", replace},                                // 1
	{"a replacement removes nothing before its name can be had", renamed},       // 12
	{"what was moved to another address gets its mark", moved},                  // 1
	{"what was moved and not marked yet can be stopped and removed", movedAway}, // 1
	{"a stop is graceful, and a start follows", stopAndStart},                   // 17
	{"who ignores a request is forced, if that is allowed", forced},             // 17
	{"what ended by itself is seen and started", killed},                        // 1
	{"another's VM of the name is left alone", foreign},                         // 5
	{"what bears another's mark is left alone", copied},                         // 1
	{"what it holds is claimed", claims},                                        // 11
	{"what is let go of stays as it is, without its mark", letGo},               // 5
	{"what cannot be read is alone in that", blind},                             // 6
	{"a system that does not answer is not an empty one", unreachable},          // 6
	{"steps are pure, total and well formed", pure},                             // 11
	{"an ended context ends all work", cancelled},                               // 15
	{"different VMs are changed side by side", concurrent},                      // 16
	{"every attribute has a row that proves its effect", registered},
	{"every attribute of a VM of a kernel acts", kernelEffects},
	{"every attribute of a VM of an image acts", imageEffects},
	{"every wait of a stop acts", deafEffects},
	{"a stop waits after it has forced", stuckEffects},
	{"a stop has the time for both of its waits", stopSteps},
	{"every attribute of a disk acts", diskEffects},
	{"every attribute of a network acts", networkEffects},
	{"every attribute of a box inside a VM acts", boxEffects},
}

// diskDemands lists the demands of the suite on a provider of disks.
var diskDemands = []demand{
	{"a disk is made, marked, and removed without a trace", diskLife},                 // 1
	{"a disk grows in place, used or not", growth},                                    // 3
	{"a disk does not shrink, and is replaced for another format", diskVerdicts},      // 3
	{"a disk is attached to what runs, and detached by a restart", attachAndDetach},   // 3
	{"a disk moves from one VM to another, and outlives both", moves},                 // 11
	{"a disk that another takes is detached before", yieldsDisk},                      // 11
	{"a port that another takes is freed before", yieldsPort},                         // 11
	{"a port that the kernel chose is freed when its VM goes down", yieldsChosenPort}, // 11
	{"what it keeps is not freed for another", keepsWhatItWants},                      // 11
	{"what runs frees once it is down", yieldsWhileDown},                              // 11
	{"a disk that is let go of stays as it is, without its mark", letGoOfDisk},        // 5
	{"a disk that is in use elsewhere stays", inUse},                                  // 5
	{"a disk that is half made is absent, and completed", halfMade},                   // 14
	{"a step on a disk refuses another object, and done again says so", diskExact},    // 12
	{"another's disk of the name is left alone", foreignDisk},                         // 5
	{"a disk that others made is imported", importedDisk},                             // 5
	{"a VM that others made is imported", importedVM},                                 // 5
	{"a disk of a system that does not answer is not gone", unreachableDisk},          // 6
	{"steps on disks are pure, total and well formed", diskPure},                      // 11
}
