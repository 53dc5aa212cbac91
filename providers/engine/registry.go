package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"github.com/moby/moby/client"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/parallel"
	"vmctl/providers"
	"vmctl/spec"
)

// The values of pull of an image.
const (
	pullAlways = "always"
	pullNever  = "never"
)

// isPulled reports whether an image comes from a registry.
func isPulled(want cty.Value) bool {
	return !isArchived(want) && !isBuilt(want)
}

// digestsOf lists the digests under which the registry of a name has the image.
func (s seen) digestsOf(ref string) []string {
	repository := repositoryOf(ref)
	var all []string
	for _, text := range s.digests {
		if name, digest, ok := strings.Cut(text, "@"); ok && repository != "" && repositoryOf(name) == repository {
			all = append(all, digest)
		}
	}
	slices.Sort(all)
	return all
}

// repositoryOf returns the full name of the repository of an image; "": it has none.
func repositoryOf(ref string) string {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return ""
	}
	return reference.TrimNamed(named).String()
}

// pinned is the argument of a step that pulls the content which the plan shows, wherever the name leads by then.
type pinned struct{ digest string }

// Words implements providers.Args.
func (p pinned) Words() [][2]string { return [][2]string{{"digest", p.digest}} }

// neverPulled returns the problem of an image that is missing, and that its block lets nobody pull.
func neverPulled(c providers.Change) error {
	ref := canonical(ctyread.Text(c.Want, "ref"))
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "not_pulled",
		Next: append(append(
			providers.Say("put it into the engine: docker pull "+ref+", or docker load -i FILE"),
			providers.SayVmctl("then take it over: ", "import", c.Address.String(), ref)...),
			providers.Say("or let vmctl pull it: pull = \"missing\" in the block of "+c.Address.String())...),
		Err: fmt.Errorf("the engine has no image %s, and pull = \"never\"", ref),
	}
}

// pull pulls the image of the step, and returns a name of it.
func (j *job) pull(ctx context.Context, ref string) (string, error) {
	source := ref
	if pin, isPinned := j.Args.(pinned); isPinned {
		source = repositoryOf(ref) + "@" + pin.digest
	}
	j.log(providers.Progress{Text: "pulling " + source})
	answer, err := j.p.c.ImagePull(ctx, source, client.ImagePullOptions{})
	if err != nil {
		return "", err
	}
	return source, answer.Wait(ctx)
}

// askRegistries asks the registries of images with pull = "always" which contents their names lead to now. Another content is an
// edit of the image. A registry that cannot be asked is a finding, and its image counts as it is.
func (p *Objects) askRegistries(ctx context.Context, q providers.Query, inv *providers.Inventory, images []seen) {
	ctx, cancel := context.WithTimeout(ctx, registryLimit)
	defer cancel()
	asked := map[string]bool{}
	for _, k := range q.Known {
		ref := refOf(k)
		if k.Kind == spec.Image && k.Want != cty.NilVal && isPulled(k.Want) && ctyread.Text(k.Policy, "pull") == pullAlways && ref == canonical(ctyread.Text(k.Want, "ref")) {
			asked[ref] = true
		}
	}
	var ours []int // indices of objects
	for i, o := range inv.Objects {
		if o.Kind == spec.Image && o.Owner != nil && asked[string(o.ID)] {
			ours = append(ours, i)
		}
	}
	parallel.Do(inFlight, len(ours), func(i int) {
		o := &inv.Objects[ours[i]]
		ref := string(o.ID)
		s := images[slices.IndexFunc(images, func(s seen) bool { return s.id == ref })]
		p.renew(ctx, o, s)
	})
}

// renew asks the registry of an image which content its name leads to now.
func (p *Objects) renew(ctx context.Context, o *providers.Object, s seen) {
	digest, err := p.registryDigest(ctx, s.id)
	if err != nil {
		o.Findings = append(o.Findings, providers.Finding{
			Kind: providers.FindUnasked, Attr: "pull", Action: "the image counts as it is",
			Evidence: []string{fmt.Sprintf("the registry of %s could not be asked what the name leads to now: %v", s.id, err)},
			Next:     providers.Say("see whether the registry is reachable from the engine's machine, or write pull = \"missing\""),
		})
		return
	}
	have := s.digestsOf(s.id)
	if slices.Contains(have, digest) {
		return
	}
	before := cty.NullVal(cty.String)
	if len(have) > 0 {
		before = cty.StringVal(have[0])
	}
	o.Edits = append(o.Edits, providers.Edit{
		Path: "digest", Before: before, After: cty.StringVal(digest),
		Verdict: providers.Verdict{Applies: providers.Replace, Reason: "its name leads to another content in the registry"},
	})
}

// registryDigest asks the registry of an image, through the engine, for the digest of the content that a name leads to.
func (p *Objects) registryDigest(ctx context.Context, ref string) (string, error) {
	var answer struct{ Descriptor struct{ Digest string } }
	if err := p.c.getInto(ctx, "/distribution/"+ref+"/json", &answer); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("no answer within %s", registryLimit)
		}
		return "", err
	}
	if !isImageID(answer.Descriptor.Digest) {
		return "", errors.New("the engine's answer has no digest")
	}
	return answer.Descriptor.Digest, nil
}
