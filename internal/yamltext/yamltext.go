// Package yamltext compares YAML documents by their meaning: Canonical returns the same text for
// every wording of a document. Parse and Marshal are its two halves, for callers that change a
// document in between.
//
// Only mappings are documents here. Comments, styles and the order of keys are no part of the
// meaning. Anchors and merge keys are expanded. A plain scalar has the meaning that it has in YAML
// 1.2, so yes and 2026-01-02 are strings; the older forms of integers, 0644 and 1_000, are read
// too, as most libraries do.
package yamltext

// Number is a number that has a fraction, an exponent or more than 64 bits, as it was written.
// Libraries differ about such numbers: 1e3 and 08 are strings to some. A document keeps their text,
// so that each reader finds what the author wrote.
type Number string

// Canonical returns the canonical text of a YAML document: keys sorted by bytes, an indentation of
// two spaces, no comments, no anchors. The errors are those of Parse.
func Canonical(text string) (string, error) {
	doc, err := Parse(text)
	if err != nil {
		return "", err
	}
	return Marshal(doc)
}
