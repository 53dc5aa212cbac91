package cli_test

import (
	"strings"
	"testing"
)

// One object that no block declares is removed when it is named, after a question: never a declared one, one of another
// project, or one in use.
//
// row E57, of cleanup
func TestCleanup(t *testing.T) {
	h, d := boxed(t, true)
	const id = "2222222222222222222222222222222222222222222222222222222222222222"
	show := func(state string, labels map[string]string) {
		d.others = []any{map[string]any{
			"Id": id, "Names": []string{"/old"}, "State": state, "Labels": labels, "ImageID": "sha256:two",
			"Mounts": []any{map[string]any{"Type": "volume", "Name": "used"}},
		}}
	}
	show("running", nil)
	old := "engine.here/container/old"
	for object, why := range map[string]string{
		"container/demo.web": "it is container.web", "image/demo/box:1": "it is image.box", "container/old": "it is running", "volume/used": "container old uses it",
	} {
		h.run("cleanup", "--auto-approve", "engine.here/"+object).exits(6).warns("engine.here/" + object + " stays: " + why)
	}
	show("exited", nil)
	d.broken = true
	h.run("cleanup", "--auto-approve", old).exits(6).warns("could not be read")
	h.run("cleanup", "--auto-approve", "engine.here/volume/used").exits(6).warns("the containers that may use it could not be read")
	d.broken = false
	h.run("cleanup", "--auto-approve", "engine.here/network/none").exits(1).warns("engine.here/network/none does not exist")
	h.run("cleanup", "--auto-approve", "engine.here/pod/x").exits(3).warns("the kinds are container, image, network and volume")
	show("exited", nil)
	h.run("cleanup", old).exits(3).warns("vmctl cleanup --auto-approve " + old + " does not ask")
	h.tty, h.stdin = true, strings.NewReader("no\n")
	h.run("cleanup", old).exits(130).warns("Remove container old of engine.here?", `the answer was "no"`)
	d.did()
	h.stdin = strings.NewReader("yes\n")
	h.run("cleanup", old).exits(0).says("Removed container old of engine.here.")
	d.did("remove /containers/" + id)
	h.run("cleanup", "--auto-approve", old).exits(1).warns("there are demo.web")
	show("exited", nil)
	h.run("cleanup", "--json", "--auto-approve", old).exits(0).says(`"engine": "engine.here"`, `"result": "removed"`)
	d.did("remove /containers/" + id)
	h.run("plan", "--detailed-exitcode").exits(0)
}

// What bears the mark of another project is destroyed there.
func TestCleanupOfAnotherProject(t *testing.T) {
	h, d := boxed(t, false)
	const id = "2222222222222222222222222222222222222222222222222222222222222222"
	d.shownToo = map[string]any{
		"Id": id, "Name": "/old", "Image": "sha256:two", "State": map[string]any{"Status": "exited"}, "HostConfig": map[string]any{}, "NetworkSettings": map[string]any{},
		"Config": map[string]any{"Labels": map[string]string{"vmctl.id": "other", "vmctl.project": "theirs", "vmctl.address": "container.x", "vmctl.token": "t", "vmctl.name": "old"}},
	}
	d.others = []any{map[string]any{
		"Id": id, "Names": []string{"/old"}, "State": "exited", "ImageID": "sha256:two",
		"Labels": map[string]string{"vmctl.id": "other", "vmctl.project": "theirs", "vmctl.address": "container.x", "vmctl.token": "t", "vmctl.name": "old"},
	}}
	h.run("cleanup", "--auto-approve", "engine.here/container/old").exits(6).warns(`it is container.x of the project "theirs"`, "destroy it there")
	d.did()
}
