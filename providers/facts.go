package providers

import "context"

// Facts holds what a system tells of an object for people, beside its attributes. No plan rests on it. A part that the system does
// not tell is empty.
type Facts struct {
	Names    []string          // all names that it has in its system
	Image    string            // that a container was made of, as its system writes it
	Path     string            // the program of a container, the folder of a volume on its machine
	Ports    []string          // of its machine, like "127.0.0.1:8080/tcp"
	Created  string            // RFC 3339, in UTC, like the times below
	Started  string            // when it came up last
	Ended    string            // when it went down last; "": it never did
	Digests  []string          // of an image: names with the digests of its manifests
	Platform string            // like "linux/amd64"
	Size     *int64            // bytes: of an image with what it shares, of a container what it wrote
	Labels   map[string]string // of its own
}

// Describer is a provider that tells more of its objects than a plan reads.
type Describer interface {
	// Describe returns the facts of each object, in their order; nil for one that is gone or cannot be read.
	Describe(ctx context.Context, all []Object) []*Facts
}
