package lima

import _ "embed" // see below

// templateFields lists the fields of Lima's YAML (limatype.LimaYAML): on each line the path of one, and the shapes that
// its values may have, which are value, list, mapping, and any. The path of an element of a list ends in [], that of
// any other key in *. A test of vmctl-lima holds the list against Lima's types.
//
//go:embed templatefields.txt
var templateFields string
