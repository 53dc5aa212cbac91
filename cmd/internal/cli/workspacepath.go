package cli

import (
	"path"
	"path/filepath"
	"strings"

	"vmctl/internal/ctyread"
	"vmctl/spec"
)

// newPath returns the folder for a new workspace: beside the others of the same place if they are all in one folder, else below
// a folder of the user there. Where VMs share the files of this host, each has a folder of its own.
func (a *app) newPath(c *spec.Config, w spec.NewWorkspace, vm spec.Resource) string {
	label := w.Address().Name
	if beside := besideOthers(c, vm.Address); beside != "" {
		return path.Join(beside, label)
	}
	if w.OnHost {
		return filepath.Join(a.getenv("HOME"), "worktrees", c.Settings.Project, label)
	}
	if a.types.System(vm.Provider).SharesFiles {
		return filepath.Join(a.getenv("HOME"), "work", c.Settings.Project, spec.LabelOf(strings.TrimPrefix(vm.Address.String(), string(spec.VM)+".")), label)
	}
	if user := ctyread.Text(ctyread.Attr(vm.Want, "ssh"), "user"); user != "" && user != "root" {
		return path.Join("/home", user, "work", label)
	}
	return path.Join("/work", label)
}

// besideOthers returns the folder that holds all workspaces of a VM, or, with the zero address, of this host; "": they are in
// several, or there are none.
func besideOthers(c *spec.Config, vm spec.Address) string {
	beside := ""
	for _, r := range c.Resources {
		if r.Address.Kind != spec.Workspace || r.Inside.Kind == spec.VM != (vm != spec.Address{}) || r.Inside.Kind == spec.VM && r.Inside != vm {
			continue
		}
		folder := path.Dir(ctyread.Text(r.Want, "path"))
		if folder == "/" || folder == "." || beside != "" && beside != folder {
			return ""
		}
		beside = folder
	}
	return beside
}
