package libvirt

// connectErrorRow explains one reason why libvirt cannot be reached.
type connectErrorRow struct {
	says  string // part of libvirt's message
	holds func(location) bool
	means string
	next  []string
}

// uriWord stands for the connection's URI.
const uriWord = "{uri}"

func anywhere(location) bool    { return true }
func onSystem(p location) bool  { return p.System && p.Remote == "" }
func onSession(p location) bool { return !p.System && p.Remote == "" }
func onRemote(p location) bool  { return p.Remote != "" }

// connectErrors explains errors: the first row that fits counts.
var connectErrors = []connectErrorRow{
	{"libvirt.so.0", anywhere, "libvirt's client library is not installed", []string{
		"install it: sudo apt-get install libvirt0",
	}},
	{"libvirt-qemu.so.0", anywhere, "libvirt's QEMU library is not installed", []string{
		"install it: sudo apt-get install libvirt0",
	}},
	{"Failed to find user record", onSession, "libvirt's daemon for one user needs that user in the password database", []string{
		"run vmctl as a user that `getent passwd` knows",
	}},
	{"too long", onSession, "a socket's path would be longer than the system allows", []string{
		"set XDG_RUNTIME_DIR, XDG_CACHE_HOME and XDG_CONFIG_HOME to folders with shorter paths",
	}},
	{"Permission denied", onSystem, "this user may not use the system's libvirt", []string{
		"join its group and log in again: sudo usermod -aG libvirt \"$USER\"",
		"use your own daemon: uri = \"qemu:///session\"",
	}},
	{"authentication", onSystem, "this user may not use the system's libvirt", []string{
		"join its group and log in again: sudo usermod -aG libvirt \"$USER\"",
		"use your own daemon: uri = \"qemu:///session\"",
	}},
	{"system bus connection", onSystem, "this user may not use the system's libvirt", []string{
		"join its group and log in again: sudo usermod -aG libvirt \"$USER\"",
		"use your own daemon: uri = \"qemu:///session\"",
	}},
	{"access denied", onSystem, "this user may not use the system's libvirt", []string{
		"join its group and log in again: sudo usermod -aG libvirt \"$USER\"",
		"use your own daemon: uri = \"qemu:///session\"",
	}},
	{"no connection driver", anywhere, "the daemon has no QEMU driver", []string{
		"install it and restart the daemon: sudo apt-get install libvirt-daemon-driver-qemu qemu-system-x86",
	}},
	{"Failed to connect socket", onSystem, "no libvirt daemon answers", []string{
		"start it: sudo systemctl start libvirtd",
		"start it where no service manager runs: sudo sh -c 'virtlogd -d; libvirtd -d'",
		"install it: sudo apt-get install libvirt-daemon-system qemu-system-x86",
	}},
	{"Failed to connect socket", onSession, "no libvirt daemon answers, and none could be started for this user", []string{
		"install it: sudo apt-get install libvirt-daemon libvirt-daemon-driver-qemu qemu-system-x86",
	}},
	{"libvirtd", onSession, "no libvirt daemon could be started for this user", []string{
		"install it: sudo apt-get install libvirt-daemon libvirt-daemon-driver-qemu qemu-system-x86",
	}},
	{"", onRemote, "the remote host's libvirt cannot be reached", []string{
		"try it by hand: virsh -c " + uriWord + " list",
	}},
}
