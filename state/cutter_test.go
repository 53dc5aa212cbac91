package state

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// TestCutterReadsAsEncodingJSON compares with encoding/json, on any JSON that it accepts as a part of a document.
func TestCutterReadsAsEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, c := drawText(t), new(cutter)
		compareCuts(t, "members", text, c.members)
		compareCuts(t, "elements", text, c.elements)
	})
}

// TestCutterEndsAtMistakes sees that a text of any bytes is cut without a panic.
func TestCutterEndsAtMistakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, c := drawText(t), new(cutter)
		at := rapid.IntRange(0, len(text)).Draw(t, "at")
		end := rapid.IntRange(at, len(text)).Draw(t, "end")
		text = append(append(append([]byte{}, text[:at]...), rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "mistake")...), text[end:]...)
		_, inMembers := c.members(text)
		_, inElements := c.elements(text)
		if inMembers == nil && inElements == nil && !bytes.HasPrefix(bytes.TrimSpace(text), []byte("null")) {
			t.Errorf("%q is both an object and an array", text)
		}
	})
}

func compareCuts[T any](t *rapid.T, what string, text []byte, cut func([]byte) (T, error)) {
	t.Helper()
	var want T
	wantErr := json.Unmarshal(text, &want)
	got, err := cut(text)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%s of %s: error %v, want %v", what, text, err, wantErr)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err == nil && diff != "" {
		t.Errorf("%s of %s (-want +got):\n%s", what, text, diff)
	}
}

// drawText draws a value as JSON, with white space here and there, and with names that occur twice.
func drawText(t *rapid.T) []byte {
	text, err := json.Marshal(drawValue(3).Draw(t, "value"))
	if err != nil {
		t.Fatal(err)
	}
	var spaced bytes.Buffer
	switch rapid.IntRange(0, 2).Draw(t, "layout") {
	case 0:
		return text
	case 1:
		err = json.Indent(&spaced, text, rapid.SampledFrom([]string{"", "\r", " "}).Draw(t, "prefix"), rapid.SampledFrom([]string{"\t", "  "}).Draw(t, "indent"))
	default: // names that occur twice
		if text[0] == '{' && len(text) > 2 {
			text = append(append(text[:len(text)-1:len(text)-1], ','), text[1:]...)
		}
		spaced.Write(text)
		spaced.WriteByte('\n')
	}
	if err != nil {
		t.Fatal(err)
	}
	return spaced.Bytes()
}

func drawValue(depth int) *rapid.Generator[any] {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", `"`, `\`, `\"`, "{", "]", ",", ":", "a b", "<&>", "é", "\u2028"}))
	all := []*rapid.Generator[any]{
		text.AsAny(), rapid.Int().AsAny(), rapid.Float64Range(-1e9, 1e9).AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil),
	}
	if depth > 0 {
		all = append(all, rapid.MapOfN(text, drawValue(depth-1), 0, 4).AsAny(), rapid.SliceOfN(drawValue(depth-1), 0, 4).AsAny())
	}
	return rapid.OneOf(all...)
}
