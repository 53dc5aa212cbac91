package search

import "vmctl/providers"

var project = providers.Project{Name: "demo", ID: "k7m2qd9x4r"}

// The parts that a model is drawn from.
var (
	vmLabels        = []string{"a", "b", "c", "d", "e"}
	diskLabels      = []string{"x", "y", "z"}
	boxLabels       = []string{"f", "g", "h", "i"}
	deskLabels      = []string{"v", "w"}
	boxNames        = []string{"p", "q", "r"}
	engineLabels    = []string{"s", "t"}
	imageLabels     = []string{"j", "k"}
	volumeLabels    = []string{"l", "m"}
	containerLabels = []string{"n", "o", "u"}
	itemNames       = []string{"aa", "bb", "cc"}
	containerStates = []string{"running", "running", "created", "paused"}
	vmNames         = []string{"n1", "n2", "n3"}
	vmAttrs         = []string{"address", "id", "name", "ssh_port"}
	ports           = []int{8081, 8082, autoPort, 0}
)

// autoPort stands for a host port that the kernel chooses.
const autoPort = -1
