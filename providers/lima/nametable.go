package lima

import (
	"vmctl/internal/pattern"
	"vmctl/spec"
)

// kvmPattern matches what QEMU says when KVM does not work: it names KVM or a register of the CPU.
var kvmPattern = pattern.New(`(?i)\bkvm\b|\bMSR\b`)

// runFiles lists files that Lima makes anew whenever it needs them.
var runFiles = []string{limaVersion, "ssh.config", "cidata.iso", "cloud-config.yaml", "ansible-inventory.yaml", runName, protection}

// attributeKeys lists the keys that attributes can set.
var attributeKeys = []string{keyImages, keyCPUs, keyMemory, keyDisk, keyDisks, keyMounts, keyForwards, keyPlain}

// ignoredPorts lists the guest's ports that Lima would forward to this host by itself as soon as
// something in the guest listens there: mDNS and LLMNR.
var ignoredPorts = []int{5353, 5355}

// The arguments by which the processes of an instance are found: the paths of their pid files. They
// stay as they are when the files are gone.
var pidArguments = map[string]role{"--pidfile": roleAgent, "-pidfile": roleDriver}

// pidFiles has the name of the pid file of each role.
var pidFiles = map[role]string{roleAgent: agentPid, roleDriver: driverPid}

// kvmWarning matches what QEMU says of KVM also where that works: inside another VM KVM lacks some features.
var kvmWarning = pattern.New(`(?i)host doesn't support requested feature|\bwarning:`)

// programWords has a word in the names of the programs of each role: limactl or vmctl-lima, and qemu-system-x86_64, qemu-kvm
// or others of QEMU.
var programWords = map[role]string{roleAgent: "lima", roleDriver: "qemu"}

// neededBy lists the programs that vmctl-lima runs for each kind.
var neededBy = map[spec.Kind][]string{
	spec.VM:   {"qemu-system-" + architecture(), "qemu-img", "ssh"},
	spec.Disk: {"qemu-img"},
}

// passedOn lists the variables of the environment that vmctl-lima gets. Others may hold secrets.
var passedOn = []string{
	"HOME", "LANG", "LOGNAME", "PATH", "SSH_AUTH_SOCK", "TMPDIR", "USER", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"APPDATA", "LOCALAPPDATA", "Path", "SystemDrive", "SystemRoot", "TEMP", "TMP", "USERPROFILE", // of Windows
}

// labelSpace maps file systems to the length of their longest label (bytes). Others have room for every name.
var labelSpace = map[string]int{"ext2": 16, "ext3": 16, "ext4": 16, "xfs": 12, "swap": 15}

// leadingNumber matches the number with which the values of -smp and -m begin.
var leadingNumber = pattern.New(`^[0-9]+`)

// sizePattern matches a size as Lima reads it.
var sizePattern = pattern.New(`^([0-9]+(?:\.[0-9]+)?) ?([kKmMgGtTpP])?[iI]?[bB]?$`)

// guestName matches the names of users that a guest takes: regexUsername in pkg/osutil/user.go of Lima v2.2.0.
var guestName = pattern.New(`^[a-z_][a-z0-9_-]*$`)

// beforeLima1 matches the versions of Lima with which a guest takes the user admin.
var beforeLima1 = pattern.New(`^v?0\.`)
