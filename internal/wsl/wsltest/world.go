//go:build unix

// Package wsltest has a stand-in for WSL: distributions in a folder, and a wsl.exe that can be told to
// hang, to fail, to lie and to cut or garble its output. A test binary plays wsl.exe by World.Run.
package wsltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"vmctl/internal/wsl"
)

// Distribution is a registration of a World, with its true state.
type Distribution struct {
	Name   string
	Folder string // with ext4.vhdx in it, unless that was lost
	State  string // an English word of wsl.exe
	Deaf   bool   // its guest does not shut down when it is asked to
}

// Running is the run state of a distribution that runs.
const Running = "Running"

// World is WSL on one machine. All of it is in a folder, so that each process sees the same.
type World struct{ Dir string }

// content is the file of a World.
type content struct {
	Distributions []Distribution
	Faults        []Fault
	Encoding      Encoding
	Words         map[string]string // of run states in another language than English
	Acts          []string
}

// Encoding is an encoding of wsl.exe's output.
type Encoding string

// The encodings. UTF8 is the one that WSL_UTF8 asks for; versions that do not know it have one of the others.
const (
	UTF8       Encoding = ""
	UTF16      Encoding = "UTF-16LE"
	UTF16Order Encoding = "UTF-16LE with a byte order mark"
)

// Fault is a misbehaviour of one call of wsl.exe.
type Fault struct {
	Kind Kind
	Part int // of Cut: the percentage of the output that is left; of Garble: the percentage before the garbage
}

// Kind is a kind of misbehaviour.
type Kind string

// The kinds of faults.
const (
	None      Kind = "none"
	Hang      Kind = "hang"       // it does nothing and never ends
	HangAfter Kind = "hang after" // it does its work and never ends
	Fail      Kind = "fail"       // it does nothing and fails
	FailAfter Kind = "fail after" // it does its work and fails
	Lie       Kind = "lie"        // it reports success and does nothing; a listing is empty
	Cut       Kind = "cut"        // its output is cut
	Garble    Kind = "garble"     // its output is garbage from some place on
)

// Kinds lists all kinds of faults.
func Kinds() []Kind { return []Kind{None, Hang, HangAfter, Fail, FailAfter, Lie, Cut, Garble} }

// Read returns the distributions as they really are.
func (w World) Read() []Distribution { return w.read().Distributions }

// Acts lists what was done to distributions, in order: "terminate NAME", or "unregister NAME, which is
// Running and has its disk".
func (w World) Acts() []string { return w.read().Acts }

// Set replaces the distributions.
func (w World) Set(all ...Distribution) { w.edit(func(c *content) { c.Distributions = all }) }

// Break gives the next calls of wsl.exe faults, one for each call. No fault: the next calls work.
func (w World) Break(faults ...Fault) { w.edit(func(c *content) { c.Faults = faults }) }

// Next returns the fault of the next call.
func (w World) Next() Kind {
	if all := w.read().Faults; len(all) > 0 {
		return all[0].Kind
	}
	return None
}

// Speak sets the encoding of wsl.exe, and its words for run states; nil: English.
func (w World) Speak(e Encoding, words map[string]string) {
	w.edit(func(c *content) { c.Encoding, c.Words = e, words })
}

// Registrations returns the registrations as the registry of Windows has them.
func (w World) Registrations() ([]wsl.Registration, error) {
	var all []wsl.Registration
	for _, d := range w.Read() {
		all = append(all, wsl.Registration{Name: d.Name, Folder: d.Folder, Disk: diskOf(d)})
	}
	return all, nil
}

func diskOf(d Distribution) string { return filepath.Join(d.Folder, "ext4.vhdx") }

func hasDisk(d Distribution) bool {
	_, err := os.Stat(diskOf(d))
	return err == nil
}

func (w World) file() string { return filepath.Join(w.Dir, "wsl.json") }

// read returns the content; the zero one before anything was written. A World that cannot be read is a
// mistake of the test: it panics.
func (w World) read() content {
	var c content
	text, err := os.ReadFile(w.file())
	if errors.Is(err, fs.ErrNotExist) {
		return c
	}
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		panic(err)
	}
	return c
}

// edit changes the content, alone.
func (w World) edit(change func(*content)) {
	lock, err := os.OpenFile(w.file()+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		panic(err)
	}
	defer lock.Close() //nolint:errcheck // nothing was written
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		panic(err)
	}
	c := w.read()
	change(&c)
	text, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(w.file()+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(w.file()+".new", w.file())
	}
	if err != nil {
		panic(err)
	}
}

// change changes a distribution, and reports whether there is one of that name.
func (w World) change(name string, change func(c *content, i int)) (there bool) {
	w.edit(func(c *content) {
		i := slices.IndexFunc(c.Distributions, func(d Distribution) bool { return strings.EqualFold(d.Name, name) })
		if there = i >= 0; there {
			change(c, i)
		}
	})
	return there
}

// Start makes a distribution run. It reports whether there is one with a root disk.
func (w World) Start(name string) (started bool) {
	w.change(name, func(c *content, i int) {
		if started = hasDisk(c.Distributions[i]); started {
			c.Distributions[i].State = Running
		}
	})
	return started
}

// Terminate stops a distribution, and reports whether there is one of that name.
func (w World) Terminate(name string) bool {
	return w.change(name, func(c *content, i int) {
		c.Distributions[i].State = "Stopped"
		c.Acts = append(c.Acts, "terminate "+c.Distributions[i].Name)
	})
}

// Import registers a stopped distribution with a new root disk.
func (w World) Import(d Distribution) error {
	taken := w.change(d.Name, func(*content, int) {})
	if taken || hasDisk(d) {
		return errors.New("ERROR_ALREADY_EXISTS")
	}
	if err := os.WriteFile(diskOf(d), []byte("vhdxfile"), 0o600); err != nil {
		return err
	}
	d.State = "Stopped"
	w.edit(func(c *content) { c.Distributions = append(c.Distributions, d) })
	return nil
}

// unregister removes a distribution and its root disk, whether it runs or not.
func (w World) unregister(name string) (there bool, err error) {
	there = w.change(name, func(c *content, i int) {
		d := c.Distributions[i]
		disk := "no disk"
		if hasDisk(d) {
			disk, err = "its disk", os.Remove(diskOf(d))
		}
		c.Acts = append(c.Acts, fmt.Sprintf("unregister %s, which is %s and has %s", d.Name, d.State, disk))
		c.Distributions = slices.Delete(c.Distributions, i, i+1)
	})
	return there, err
}
