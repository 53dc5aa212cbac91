package cli_test

import (
	"testing"
)

// rows E22, X17: the same world gives the same bytes
func TestPlansAreTheSame(t *testing.T) {
	h := newHouse(t, withID+`
vm "web" {
  for_each = toset(["d", "a", "c", "b"])
  boot {
    kernel = "vmlinuz"
  }
}
`)
	text, document := h.run("plan").exits(0).stdout, h.run("plan", "--json").exits(0).stdout
	for range 50 {
		if again := h.run("plan").exits(0).stdout; again != text {
			t.Fatalf("the same plan differs:\n%s\n%s", text, again)
		}
		if again := h.run("plan", "--json").exits(0).stdout; again != document {
			t.Fatalf("the same plan differs:\n%s\n%s", document, again)
		}
	}
}
