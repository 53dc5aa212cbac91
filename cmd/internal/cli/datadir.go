package cli

import (
	"fmt"
	"path/filepath"

	"vmctl/internal/pattern"
	"vmctl/providers"
)

// longestSocket is the longest name, below the data directory, that a unix
// socket of vmctl's may get.
const longestSocket = "run/0123456789abcdef.sock"

// socketLimit is the longest path of a unix socket: sun_path of unix(7) holds
// 108 bytes, the last of them zero.
const socketLimit = 107

// dataDir returns the data directory of a project, and makes nothing. It fails if the path is
// too long for the sockets inside.
func (a *app) dataDir(owner providers.Project) (string, error) {
	dir, err := a.chooseDataDir(owner)
	if err != nil {
		return "", err
	}
	if longest := len(filepath.Join(dir, longestSocket)); longest > socketLimit {
		p := rejected("data_dir_too_long", "use data directory "+dir+": its name is too long for the sockets inside",
			"choose a shorter one: --data-dir=DIR or VMCTL_DATA_DIR=DIR")
		p.Seen = []string{fmt.Sprintf("the longest socket would have a name of %d bytes, and the system allows %d", longest, socketLimit)}
		return "", p
	}
	return dir, nil
}

func (a *app) chooseDataDir(owner providers.Project) (string, error) {
	if a.global.dataDir != "" {
		return a.absolute(a.global.dataDir), nil
	}
	if dir := a.getenv("VMCTL_DATA_DIR"); dir != "" {
		return a.absolute(dir), nil
	}
	base := a.getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) { // the XDG specification: a relative one is to be ignored
		home := a.getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", rejected("no_data_dir", "choose a data directory: neither HOME nor XDG_STATE_HOME names a folder",
				"--data-dir=DIR or VMCTL_DATA_DIR=DIR")
		}
		base = filepath.Join(home, ".local", "state")
	}
	return folderIn(base, owner), nil
}

// folderIn returns the data directory of a project below a folder for states.
func folderIn(base string, owner providers.Project) string {
	return filepath.Join(base, "vmctl", owner.Name+"-"+owner.Lineage())
}

var envName = pattern.New(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// checkEnvName checks --env: it becomes a part of names and folders.
func checkEnvName(name string) error {
	if name == "" || envName.MatchString(name) {
		return nil
	}
	return rejected("usage", "read --env "+quoted(name)+": it has to be up to 32 small letters, digits and dashes, with no dash at an end")
}
