package spec_test

import (
	"testing"

	"pgregory.net/rapid"

	"vmctl/spec"
)

// row A35
func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0B": 0, "1B": 1, "1000B": 1000, "1KiB": 1 << 10, "512MiB": 512 << 20, "8192MiB": 8 << 30, "8GiB": 8 << 30,
		"1.5GiB": 3 << 29, "0.5KiB": 512, "2TiB": 2 << 40, "1PiB": 1 << 50, "7EiB": 7 << 60, "007MiB": 7 << 20,
		"9223372036854775807B": 1<<63 - 1,
	} {
		if got, err := spec.ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
}

// row A35
func TestParseSizeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"8G":                    `"8G" is not a size; write it with an IEC unit, like "8GiB"`,
		"8GB":                   `"8GB" is not a size; write it with an IEC unit, like "8GiB"`,
		"8 gb":                  `"8 gb" is not a size; write it with an IEC unit, like "8GiB"`,
		"1.5g":                  `"1.5g" is not a size; write it with an IEC unit, like "1.5GiB"`,
		"512 mib":               `"512 mib" is not a size; write it with an IEC unit, like "512MiB"`,
		"8GiB ":                 `"8GiB " is not a size; write it with an IEC unit, like "8GiB"`,
		"100 bytes":             `"100 bytes" is not a size; write it with an IEC unit, like "100B"`,
		"2048":                  `"2048" is not a size; write it with an IEC unit, like "2048MiB"`,
		"4":                     `"4" is not a size; write it with an IEC unit, like "4GiB"`,
		"1073741824":            `"1073741824" is not a size; write it with an IEC unit, like "1GiB"`,
		"0":                     `"0" is not a size; write it with an IEC unit, like "8GiB"`,
		"":                      `"" is not a size; write it with an IEC unit, like "8GiB"`,
		"-1GiB":                 `"-1GiB" is not a size; write it with an IEC unit, like "8GiB"`,
		".5GiB":                 `".5GiB" is not a size; write it with an IEC unit, like "8GiB"`,
		"1.GiB":                 `"1.GiB" is not a size; write it with an IEC unit, like "8GiB"`,
		"1e3MiB":                `"1e3MiB" is not a size; write it with an IEC unit, like "8GiB"`,
		"٣GiB":                  `"٣GiB" is not a size; write it with an IEC unit, like "8GiB"`,
		"0.1KiB":                `"0.1KiB" is not a whole number of bytes; write for example "103B"`,
		"0.3B":                  `"0.3B" is not a whole number of bytes; write for example "1B"`,
		"8EiB":                  `"8EiB" is too large; a size is less than "8EiB"`,
		"9223372036854775808B":  `"9223372036854775808B" is too large; a size is less than "8EiB"`,
		"99999999999999999999G": `"99999999999999999999G" is not a size; write it with an IEC unit, like "8GiB"`,
	} {
		_, err := spec.ParseSize(text)
		if err == nil || err.Error() != want {
			t.Errorf("ParseSize(%q)\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0B", 1: "1B", 1000: "1000B", 1024: "1KiB", 1536 << 20: "1536MiB", 8192 << 20: "8GiB", 1 << 60: "1EiB", -2048: "-2KiB",
	} {
		if got := spec.FormatSize(bytes); got != want {
			t.Errorf("FormatSize(%d) = %s, want %s", bytes, got, want)
		}
	}
}

func TestSizesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.Int64Min(0).Draw(t, "bytes")
		got, err := spec.ParseSize(spec.FormatSize(want))
		if err != nil || got != want {
			t.Fatalf("%d became %s and then %d, %v", want, spec.FormatSize(want), got, err)
		}
	})
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]int64{
		"0s": 0, "30s": 30, "5m": 300, "1m30s": 90, "90s": 90, "1.5h": 5400, "24h": 86400, "1000ms": 1,
	} {
		if got, err := spec.ParseDuration(text); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"30":     `"30" is not a duration; write it with a unit, like "30s"`,
		"0":      `"0" is not a duration; write it with a unit, like "30s"`,
		"":       `"" is not a duration; write it with a unit, like "30s"`,
		"5 m":    `"5 m" is not a duration; write it with a unit, like "30s"`,
		"1d":     `"1d" is not a duration; write it with a unit, like "30s"`,
		"-1s":    `"-1s" is negative; write for example "30s"`,
		"1500ms": `"1500ms" is not a whole number of seconds; write for example "2s"`,
		"1ns":    `"1ns" is not a whole number of seconds; write for example "1s"`,
	} {
		if _, err := spec.ParseDuration(text); err == nil || err.Error() != want {
			t.Errorf("ParseDuration(%q)\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestDurationsRoundTrip(t *testing.T) {
	for seconds, want := range map[int64]string{0: "0s", 30: "30s", 90: "1m30s", 300: "5m", 3600: "1h", 3601: "1h1s", 360000: "100h", -90: "-1m30s"} {
		if got := spec.FormatDuration(seconds); got != want {
			t.Errorf("FormatDuration(%d) = %s, want %s", seconds, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.Int64Range(0, 1<<33).Draw(t, "seconds")
		got, err := spec.ParseDuration(spec.FormatDuration(want))
		if err != nil || got != want {
			t.Fatalf("%d became %s and then %d, %v", want, spec.FormatDuration(want), got, err)
		}
	})
}
