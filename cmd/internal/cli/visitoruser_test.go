package cli_test

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/cmd/internal/cli"
	"vmctl/providers"
	"vmctl/spec"
)

// ownUsers is a provider whose VMs have a user of their own.
type ownUsers struct{ providers.Provider }

// OwnUser implements providers.OwnUser.
func (ownUsers) OwnUser(o providers.Object, dir string) (user, folder string, err error) {
	return "me-in-" + o.Name, "/guest" + dir, nil
}

// rootAlone is a provider whose VMs have no such user.
type rootAlone struct{ providers.Provider }

// A VM without a sound block is entered as its record says, or not at all: never as root where the block may have left
// the user open.
func TestVisitorWithoutABlock(t *testing.T) {
	login := func(user, identity cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"ssh": cty.ObjectVal(map[string]cty.Value{"user": user, "identity": identity})})
	}
	none, root, key := cty.NullVal(cty.String), cty.StringVal("root"), cty.StringVal("/key")
	open := []spec.Default{{Path: "ssh.user", Value: root}}
	const refused = "enter vm.dev: without a sound block of it, vmctl cannot tell whether people enter as root or as the VM's own user"
	for name, c := range map[string]struct {
		block        *spec.Resource
		recorded     cty.Value
		provider     providers.Provider
		user, folder string
		err          string
	}{
		"open block":                 {block: &spec.Resource{Want: login(root, none), Defaults: open}, recorded: login(root, none), provider: ownUsers{}, user: "me-in-demo.dev", folder: "/guest/here"},
		"block that names root":      {block: &spec.Resource{Want: login(root, none)}, recorded: login(root, none), provider: ownUsers{}, user: "root"},
		"block that names a key":     {block: &spec.Resource{Want: login(root, key), Defaults: open}, recorded: login(root, key), provider: ownUsers{}, user: "root"},
		"record that may be open":    {recorded: login(root, none), provider: ownUsers{}, user: "root", err: refused},
		"record that names a user":   {recorded: login(cty.StringVal("admin"), none), provider: ownUsers{}, user: "admin"},
		"record that names a key":    {recorded: login(root, key), provider: ownUsers{}, user: "root"},
		"provider without own users": {recorded: login(root, none), provider: rootAlone{}, user: "root"},
	} {
		t.Run(name, func(t *testing.T) {
			user, folder, next, err := cli.Visitor(c.block, c.recorded, c.provider)
			said := ""
			if err != nil {
				said = err.Error()
			}
			if user != c.user || folder != c.folder || said != c.err {
				t.Errorf("user %q, folder %q, error %q, want %q, %q, %q", user, folder, said, c.user, c.folder, c.err)
			}
			if want := "mend the block, or write it again: vmctl validate lists the mistakes of the files"; err != nil && (len(next) != 1 || next[0] != want) {
				t.Errorf("next: %q, want %q", next, want)
			}
		})
	}
}
