package pattern_test

import (
	"testing"

	"vmctl/internal/pattern"
)

func TestABadPatternHarmsNobodyBeforeItsUse(t *testing.T) {
	bad := pattern.New("(")
	defer func() {
		if recover() == nil {
			t.Error("a use of ( did not panic")
		}
	}()
	bad.MatchString("x")
}

func TestPattern(t *testing.T) {
	digits := pattern.New(`([0-9])([0-9])`)
	for name, got := range map[string]bool{
		"Match":              digits.Match([]byte("a12")),
		"MatchString":        !digits.MatchString("a1"),
		"FindString":         digits.FindString("a12b34") == "12",
		"FindStringSubmatch": digits.FindStringSubmatch("a12")[2] == "2",
		"FindAllString":      len(digits.FindAllString("a12b34", -1)) == 2,
		"ReplaceAllString":   digits.ReplaceAllString("a12", "$2$1") == "a21",
		"String":             digits.String() == `([0-9])([0-9])`,
	} {
		if !got {
			t.Errorf("%s is wrong", name)
		}
	}
}
