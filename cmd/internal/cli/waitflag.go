package cli

import (
	"errors"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// waitFlag is a flag for a time to wait. It refuses a negative one.
type waitFlag struct{ d *time.Duration }

var _ pflag.Value = waitFlag{}

// Set implements pflag.Value.
func (p waitFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = errors.New("it has to be 0s or more")
	}
	if err == nil {
		*p.d = d
	}
	return err
}

// String implements pflag.Value.
func (p waitFlag) String() string {
	if p.d == nil {
		return ""
	}
	return p.d.String()
}

// Type implements pflag.Value.
func (waitFlag) Type() string { return "duration" }

// notFlag is the value of a flag that is set until it is denied.
type notFlag struct{ denied *bool }

var _ pflag.Value = notFlag{}

// Set implements pflag.Value.
func (n notFlag) Set(text string) error {
	is, err := strconv.ParseBool(text)
	if err == nil {
		*n.denied = !is
	}
	return err
}

// String implements pflag.Value.
func (n notFlag) String() string { return strconv.FormatBool(n.denied == nil || !*n.denied) }

// Type implements pflag.Value.
func (notFlag) Type() string { return "bool" }
