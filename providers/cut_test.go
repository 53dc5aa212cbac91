package providers_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/providers"
	"vmctl/spec"
)

// A short message stays whole; a long one keeps its beginning and its end, in whole
// characters, and gives its length.
func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"x", "ä", "語", "🙂"}).Draw(t, "unit")
		text := "begin " + strings.Repeat(unit, rapid.IntRange(0, 6000).Draw(t, "times")) + " end"
		cut := providers.Cut(text)
		switch {
		case len(text) <= 4096 && cut != text:
			t.Fatalf("%d bytes were cut to %d", len(text), len(cut))
		case len(text) > 4096 && (len(cut) > 4096+128 || !strings.Contains(cut, fmt.Sprintf("[%d bytes in all", len(text)))):
			t.Fatalf("%d bytes became %d: %s", len(text), len(cut), cut)
		}
		if !strings.HasPrefix(cut, "begin ") || !strings.HasSuffix(cut, " end") || !utf8.ValidString(cut) {
			t.Fatalf("it became %q", cut)
		}
	})
}

func TestAFailureKeepsItsWholeCause(t *testing.T) {
	long := errors.New(strings.Repeat("x", 1<<20))
	f := &providers.Problem{Seen: []string{long.Error(), "short"}, Err: fmt.Errorf("start vm.a: %w", long)}
	f.Cut()
	if n := len(f.Error()); n > 5000 || len(f.Seen[0]) > 5000 || f.Seen[1] != "short" {
		t.Errorf("the message has %d bytes, and it saw %d bytes and %q", n, len(f.Seen[0]), f.Seen[1])
	}
	var whole *providers.LongError
	if !errors.Is(f, long) || !errors.As(f, &whole) || len(whole.Err.Error()) != 1<<20+len("start vm.a: ") {
		t.Errorf("its cause is lost: %v", whole)
	}
	if len(whole.Seen) != 1 || whole.Seen[0] != long.Error() {
		t.Errorf("%d whole observations are kept, and one was cut", len(whole.Seen))
	}
	saw := &providers.Problem{Code: "paused", Seen: []string{long.Error()}}
	if saw.Cut(); saw.Error() != "paused" || !errors.As(saw, &whole) || len(whole.Seen) != 1 {
		t.Errorf("a failure without a cause that saw much became %.100v", saw)
	}
	few := &providers.Problem{Err: errors.New("no disk")}
	if few.Cut(); errors.As(few, &whole) && few.Error() != "no disk" {
		t.Errorf("a short one became %v", few)
	}
}

// The reasons of an inventory are cut wherever they are, and come back whole.
func TestAnInventoryReturnsItsWholeReasons(t *testing.T) {
	long := func(what string) string { return what + strings.Repeat("x", 1<<20) }
	inv := providers.Inventory{
		Partial: map[spec.Kind]*providers.Problem{spec.VM: providers.Refuse(long("a"), providers.Vmctl("plan")), spec.Disk: providers.Refuse("short", nil)}, Unknown: []providers.Unknown{{Reason: long("b")}},
		Missing: map[spec.Kind]*providers.Problem{spec.VM: providers.Refuse(long("d"), nil)}, Blind: providers.Refuse(long("e"), nil),
		Objects: []providers.Object{{Unreadable: map[string]string{"running": long("c")}}},
	}
	if diff := cmp.Diff([]string{long("a"), long("b"), long("c"), long("d"), long("e")}, inv.Cut()); diff != "" {
		t.Errorf("whole reasons (-want +got):\n%.400s", diff)
	}
	if diff := cmp.Diff(providers.Vmctl("plan"), inv.Partial[spec.VM].Next); diff != "" {
		t.Errorf("next of a partial listing (-want +got):\n%s", diff)
	}
	for _, text := range []string{inv.Partial[spec.VM].Error(), inv.Unknown[0].Reason, inv.Objects[0].Unreadable["running"], inv.Missing[spec.VM].Error(), inv.Blind.Error()} {
		if len(text) > 5000 || !strings.Contains(text, "[1048577 bytes in all]") {
			t.Errorf("a reason has %d bytes: %.20q", len(text), text)
		}
	}
}
