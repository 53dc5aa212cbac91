package cli

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/shellword"
	"vmctl/providers"
	"vmctl/spec"
)

// asLimactl is a part of the help of commands that people run in a VM.
const asLimactl = "A VM of Lima whose block has no ssh { user } and no ssh { identity } is entered as with\n" +
	"limactl shell: as its own user, who is named as you are, and in the present folder if\n" +
	"that is mounted there."

// visitor returns the values with the login of people who enter a VM, and the folder of the guest in which they begin;
// "": their home. Where the block leaves the user open, that is the VM's own user, if it has one. Without a sound block
// the record tells the login; visitor fails if that cannot tell whether the block left the user open.
func (a *app) visitor(v observedAddress) (values cty.Value, folder string, err error) {
	values = v.values()
	own, ok := providers.OwnUser(nil), false
	if v.object != nil {
		own, ok = providers.Ability[providers.OwnUser](v.system.Provider)
	}
	switch {
	case !ok:
		return values, "", nil
	case v.resource == nil && mayLeaveUserOpen(values):
		addr := v.address.String()
		return values, "", newProblem(classFailed, "unknown_user",
			"enter "+addr+": without a sound block of it, vmctl cannot tell whether people enter as root or as the VM's own user",
			"mend the block, or write it again: "+a.commandLine("validate", planFlags{})+" lists the mistakes of the files",
		)
	case v.resource == nil || !leavesUserOpen(v.resource):
		return values, "", nil
	}
	user, folder, err := own.OwnUser(*v.object, a.env.Dir)
	if err != nil {
		return values, "", err
	}
	all := values.AsValueMap()
	login := all["ssh"].AsValueMap()
	login["user"] = cty.StringVal(user)
	all["ssh"] = cty.ObjectVal(login)
	return cty.ObjectVal(all), folder, nil
}

// mayLeaveUserOpen reports whether recorded values may be of a block that leaves the user open: they have the default
// user, and no key to log in with. A block that names that user is recorded the same way.
func mayLeaveUserOpen(values cty.Value) bool {
	login := ctyread.Attr(values, "ssh")
	attr, _ := spec.AttrAt(spec.VM, "ssh.user")
	user := ctyread.Text(login, "user")
	return ctyread.KnownAttr(login, "identity") == cty.NilVal && (user == "" || user == attr.Default.AsString())
}

// leavesUserOpen reports whether a block of a VM names neither a user to log in as nor a key to log in with.
func leavesUserOpen(r *spec.Resource) bool {
	login := ctyread.Attr(r.Want, "ssh")
	return login != cty.NilVal && ctyread.KnownAttr(login, "identity") == cty.NilVal &&
		slices.ContainsFunc(r.Defaults, func(d spec.Default) bool { return d.Path == "ssh.user" })
}

// shellIn returns the line of a login shell that begins in a folder, as far as that is there; "" for the home.
func shellIn(folder string) string {
	if folder == "" {
		return ""
	}
	return "cd " + shellword.Quote(folder) + ` 2>/dev/null; exec "$SHELL" -l`
}

// commandIn returns a command that begins in a folder, as far as that is there.
func commandIn(folder string, command []string) []string {
	if folder == "" {
		return command
	}
	return append([]string{"sh", "-c", `cd "$0" 2>/dev/null; exec "$@"`, folder}, command...)
}
