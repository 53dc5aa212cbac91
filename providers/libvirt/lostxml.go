package libvirt

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"vmctl/providers"
)

// lostElements lists the elements of a domain's description, by their paths, that its copy
// lacks: a library that does not know an element drops it.
func lostElements(text, copied string) ([]string, error) {
	had, err := elementsOf(text)
	if err != nil {
		return nil, err
	}
	kept, err := elementsOf(copied)
	maps.DeleteFunc(had, func(path string, n int) bool { return n <= kept[path] })
	return slices.Sorted(maps.Keys(had)), err
}

// elementsOf counts the elements of an XML document by their paths.
func elementsOf(text string) (map[string]int, error) {
	decoder := xml.NewDecoder(strings.NewReader(text))
	found := map[string]int{}
	var path []string
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the domain's description: %w", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			path = append(path, t.Name.Local)
			found[strings.Join(path, "/")]++
		case xml.EndElement:
			path = path[:len(path)-1]
		}
	}
}

// checkLoss compares a domain's description with its copy. If the copy lacks elements, it fails
// for a domain that vmctl did not make, and notes the loss for its own.
func (j *job) checkLoss(text, copied string) error {
	lost, err := lostElements(text, copied)
	if err != nil || len(lost) == 0 {
		return err
	}
	names := "<" + strings.Join(lost, ">, <") + ">"
	if !j.foreign() {
		j.notes = append(j.notes, "its definition loses what this vmctl does not know: "+names)
		return nil
	}
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "unknown_element", Seen: []string{"unknown: " + names},
		Next: providers.Say("make the change by hand: virsh -c " + j.location.URI + " edit " + j.Name),
		Err:  fmt.Errorf("%s %s: its definition would lose elements that this vmctl does not know: %s", j.Op, j.Address, names),
	}
}
