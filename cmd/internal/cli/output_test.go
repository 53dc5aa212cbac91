package cli_test

import (
	"testing"
)

func TestOutput(t *testing.T) {
	h := newHouse(t, withID+small+"\noutput \"name\" {\n  value = \"a b\"\n}\n")
	h.run("output", "port").exits(1).warns("it is not known before what it refers to exists")
	h.run("output").exits(0).says("port = (not known yet)", "name = a b")
	h.run("apply", "--auto-approve").exits(0)
	h.run("output").exits(0).says("port = 1")
	if e := h.run("output", "name", "--raw").exits(0); e.stdout != "a b" {
		t.Errorf("raw output is %q", e.stdout)
	}
	h.run("output", "--help").exits(0).says("with the values that the last apply\nrecorded")
	h.run("output", "nome").exits(3).warns("the outputs are name, port")
}
