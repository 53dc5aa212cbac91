package spec

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

const sizeLetters = "BKMGTPE"

// ParseSize reads a size as a spec writes it, "8GiB" or "512MiB", and returns bytes. The units
// are B, KiB, MiB, GiB, TiB, PiB and EiB; a fraction is fine if it is a whole number of bytes.
// The error for any other text suggests the size that was probably meant.
func ParseSize(text string) (int64, error) {
	m := sizePattern.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q is not a size; write it with an IEC unit, like %q", shorten(text), suggestSize(text))
	}
	amount, ok := new(big.Rat).SetString(m[1])
	if !ok {
		return 0, fmt.Errorf("%q is not a size; write it with an IEC unit, like %q", shorten(text), "8GiB")
	}
	shift := uint(10 * strings.IndexByte(sizeLetters, m[2][0]))
	amount.Mul(amount, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), shift)))
	if !amount.IsInt() {
		return 0, fmt.Errorf("%q is not a whole number of bytes; write for example %q", text, roundedUp(amount))
	}
	if !amount.Num().IsInt64() {
		return 0, fmt.Errorf("%q is too large; a size is less than %q", text, "8EiB")
	}
	return amount.Num().Int64(), nil
}

// FormatSize writes bytes as ParseSize reads them, with the largest unit that
// needs no fraction: "8GiB", "1536MiB", "1000B".
func FormatSize(bytes int64) string {
	unit := 0
	for bytes != 0 && bytes%1024 == 0 && unit < len(sizeLetters)-1 {
		bytes /= 1024
		unit++
	}
	if unit == 0 {
		return strconv.FormatInt(bytes, 10) + "B"
	}
	return strconv.FormatInt(bytes, 10) + sizeLetters[unit:unit+1] + "iB"
}

// roundedUp returns the next whole number of bytes as text.
func roundedUp(bytes *big.Rat) string {
	whole := new(big.Int).Quo(bytes.Num(), bytes.Denom())
	if !whole.IsInt64() || whole.Int64() == 1<<63-1 {
		return "8GiB"
	}
	return FormatSize(whole.Int64() + 1)
}

// suggestSize returns the size that text was probably meant to be.
func suggestSize(text string) string {
	m := nearlySize.FindStringSubmatch(text)
	if m == nil {
		return "8GiB"
	}
	if m[2] == "" && m[3] == "" {
		return suggestUnit(m[1])
	}
	letter := strings.ToUpper(m[2])
	if letter == "" {
		letter = "B"
	} else {
		letter += "iB"
	}
	guess := m[1] + letter
	if _, err := ParseSize(guess); err != nil {
		return "8GiB"
	}
	return guess
}

// suggestUnit returns the size that a number without a unit was probably meant
// to be: bytes where it is large, else MiB, else GiB.
func suggestUnit(number string) string {
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case err != nil:
		return "8GiB"
	case n >= 1<<20:
		return FormatSize(n)
	case n > 64:
		return number + "MiB"
	case n > 0:
		return number + "GiB"
	default:
		return "8GiB"
	}
}

// shorten keeps an error readable if the user's text is very long.
func shorten(text string) string {
	const most = 60
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "…"
}

// ParseDuration reads a duration as a spec writes it, "30s", "5m" or "1m30s",
// and returns whole seconds, which are never negative.
func ParseDuration(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	switch {
	case text == "0" || err != nil:
		return 0, fmt.Errorf("%q is not a duration; write it with a unit, like %q", shorten(text), suggestDuration(text))
	case d < 0:
		return 0, fmt.Errorf("%q is negative; write for example %q", text, "30s")
	case d%time.Second != 0:
		return 0, fmt.Errorf("%q is not a whole number of seconds; write for example %q", text, FormatDuration(int64(d/time.Second)+1))
	}
	return int64(d / time.Second), nil
}

// FormatDuration writes seconds as ParseDuration reads them: "30s", "1m30s", "24h".
func FormatDuration(seconds int64) string {
	if seconds == 0 {
		return "0s"
	}
	if seconds < 0 {
		return "-" + FormatDuration(-seconds)
	}
	var text string
	for _, unit := range []struct {
		name    string
		seconds int64
	}{{"h", 3600}, {"m", 60}, {"s", 1}} {
		if n := seconds / unit.seconds; n > 0 {
			text += strconv.FormatInt(n, 10) + unit.name
			seconds %= unit.seconds
		}
	}
	return text
}

// suggestDuration returns the duration that text was probably meant to be.
func suggestDuration(text string) string {
	if bareNumber.MatchString(text) && text != "0" {
		return text + "s"
	}
	return "30s"
}

// ParseWhenBusy reads how long a spec waits for the holders in a VM before it is taken down:
// "block" is 0, "wait 30m" is the longest wait.
func ParseWhenBusy(text string) (time.Duration, error) {
	if text == blockWhenBusy {
		return 0, nil
	}
	word, limit, two := strings.Cut(text, " ")
	if word != "wait" {
		return 0, fmt.Errorf("%q is neither %q nor a wait like %q", shorten(text), blockWhenBusy, "wait 30m")
	}
	if !two {
		return 0, fmt.Errorf("%q has no duration: write for example %q", shorten(text), "wait 30m")
	}
	seconds, err := ParseDuration(limit)
	if err != nil {
		return 0, err
	}
	if seconds == 0 {
		return 0, fmt.Errorf("%q is no wait: write %q", shorten(text), blockWhenBusy)
	}
	return time.Duration(seconds) * time.Second, nil
}

// blockWhenBusy waits for nobody: a busy VM is not taken down.
const blockWhenBusy = "block"

// canonicalWhenBusy writes a wait in its canonical form.
func canonicalWhenBusy(wait time.Duration) string {
	if wait == 0 {
		return blockWhenBusy
	}
	return "wait " + FormatDuration(int64(wait/time.Second))
}
