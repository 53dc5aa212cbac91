package libvirt_test

import (
	"errors"
	"testing"

	"vmctl/providers"
)

func TestConsole(t *testing.T) {
	l := booted(t, nil)
	l.BootLog = "Linux version 6.1\r\nlogin: "
	l.apply(l.change(providers.Start, vm(nil)))
	o := *l.object(vm(nil))
	// A namesake elsewhere is another VM's.
	if err := errors.Join(
		l.DefinePool(t.Context(), `<pool type="dir"><name>another</name><target><path>/elsewhere</path></target></pool>`),
		l.StartPool(t.Context(), "another"),
	); err != nil {
		t.Fatal(err)
	}
	l.PutFile("another", devID+".console.log", []byte("another"))
	read := func(from int64, most int) string {
		t.Helper()
		c, err := l.provider.Console(t.Context(), o, from, most)
		if err != nil {
			return err.Error()
		}
		if want := c.Start + int64(len(c.Text)); c.Next() != want {
			t.Errorf("next is %d, want %d", c.Next(), want)
		}
		if !c.More {
			return string(c.Text) + "|"
		}
		return string(c.Text)
	}
	for _, test := range []struct {
		from int64
		most int
		want string
	}{
		{0, 100, l.BootLog},
		{0, 5, "Linux"},
		{6, 7, "version"},
		{-7, 100, "login: "},
		{-700, 5, "Linux"},
		{26, 100, ""},
		{27, 5, "Linux"}, // it was begun anew
	} {
		if got := read(test.from, test.most); got != test.want {
			t.Errorf("from %d at most %d: %q, want %q", test.from, test.most, got, test.want)
		}
	}
	l.apply(l.change(providers.Stop, vm(nil)))
	if got := read(0, 5); got != "Linux|" {
		t.Errorf("when it is off: %q", got)
	}
	l.DropPool("vmctl-lab-" + lineage)
	_, err := l.provider.Console(t.Context(), o, 0, 100)
	var f *providers.Problem
	if !errors.As(err, &f) || f.Code != "no_console_log" {
		t.Fatalf("without its pool: %v", err)
	}
	wantText(t, "error", "its console is in DIR/data/libvirt/pool/DEV.console.log, and no pool that is active has that file", l.plain(err.Error()))
}
