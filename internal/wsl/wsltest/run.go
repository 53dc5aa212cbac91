//go:build unix

package wsltest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
	"unicode/utf16"
)

// Run plays wsl.exe: it does what the arguments say, or what the next fault says, and returns the exit
// status. below starts a process that outlives wsl.exe unless it is ended with it.
func (w World) Run(args []string, stdout io.Writer, below func() error) (status int) {
	output, status, hangs := w.Answer(args)
	if _, err := stdout.Write(output); err != nil {
		return 1
	}
	if hangs {
		if err := below(); err != nil {
			return 1
		}
		time.Sleep(math.MaxInt64)
	}
	return status
}

// Answer does what wsl.exe does with such arguments, and returns its output and its exit status, or that it
// hangs.
func (w World) Answer(args []string) (output []byte, status int, hangs bool) {
	fault := Fault{Kind: None}
	if len(w.read().Faults) > 0 { // else a listing leaves no trace
		w.edit(func(c *content) { fault, c.Faults = c.Faults[0], c.Faults[1:] })
	}
	text := ""
	switch fault.Kind {
	case Hang, Lie:
	case Fail:
		text, status = "Catastrophic failure\r\nError code: Wsl/Service/E_UNEXPECTED\r\n", 255
	case None, HangAfter, FailAfter, Cut, Garble:
		text, status = w.work(args)
	default:
		panic("unknown fault " + fault.Kind)
	}
	output = encode(text, w.read().Encoding)
	part := len(output) * fault.Part / 100
	switch fault.Kind {
	case Cut:
		output = output[:part]
	case Garble:
		output = append(output[:part], 0xfe, 0x01, 0xff, 0xc3, 0x28)
	case FailAfter:
		status = 255
	case None, Hang, HangAfter, Fail, Lie:
	}
	return output, status, fault.Kind == Hang || fault.Kind == HangAfter
}

// work does what the arguments say.
func (w World) work(args []string) (text string, status int) {
	const unknown = "There is no distribution with the supplied name.\r\nError code: Wsl/Service/WSL_E_DISTRO_NOT_FOUND\r\n"
	there := false
	switch args[0] {
	case "--list":
		return w.list(args[1:])
	case "--terminate":
		there = w.Terminate(args[1])
	case "--unregister":
		var err error
		if there, err = w.unregister(args[1]); err != nil {
			return err.Error() + "\r\n", 255
		}
	case "--distribution":
		if there = w.Start(args[1]); there && slices.Contains(args, "--exec") {
			w.change(args[1], func(c *content, i int) {
				c.Acts = append(c.Acts, "power off "+c.Distributions[i].Name)
				if !c.Distributions[i].Deaf {
					c.Distributions[i].State = "Stopped"
				}
			})
		}
	default:
		return "Invalid command line argument: " + args[0] + "\r\n", 255
	}
	if !there {
		return unknown, 255
	}
	return "The operation completed successfully.\r\n", 0
}

// list formats the distributions as ListDistributionsHelper in WslClient.cpp of github.com/microsoft/WSL
// does.
func (w World) list(args []string) (text string, status int) {
	c := w.read()
	if !slices.Contains(args, "--verbose") {
		for _, d := range c.Distributions {
			if d.State == Running || d.State == "Stopped" && !slices.Contains(args, "--running") {
				text += d.Name + "\r\n"
			}
		}
		if text == "" && !slices.Contains(args, "--quiet") {
			return "Es werden keine Distributionen ausgeführt.\r\n", 255
		}
		return text, 0
	}
	if len(c.Distributions) == 0 {
		return "Windows-Subsystem: keine Distributionen.\r\nFehlercode: Wsl/WSL_E_DEFAULT_DISTRO_NOT_FOUND\r\n", 255
	}
	width := len("NAME")
	for _, d := range c.Distributions {
		width = max(width, len(d.Name))
	}
	line := func(mark, name, state, version string) {
		text += fmt.Sprintf("%s %-*s%-16s%s\r\n", mark, width+4, name, state, version)
	}
	line(" ", "NAME", "STATE", "VERSION")
	for i, d := range c.Distributions {
		state := d.State
		if word, has := c.Words[state]; has {
			state = word
		}
		mark := " "
		if i == 0 { // the default
			mark = "*"
		}
		line(mark, d.Name, state, "2")
	}
	return text, 0
}

func encode(text string, e Encoding) []byte {
	if e == UTF8 {
		return []byte(text)
	}
	var b bytes.Buffer
	units := utf16.Encode([]rune(text))
	if e == UTF16Order {
		units = append([]uint16{0xfeff}, units...)
	}
	if err := binary.Write(&b, binary.LittleEndian, units); err != nil {
		panic(err)
	}
	return b.Bytes()
}
