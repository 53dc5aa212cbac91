package spec

import "github.com/zclconf/go-cty/cty"

var imageShape = Block{
	Version: 1, Name: "image", In: &In{Attr: "engine", Kinds: []Kind{Engine}},
	Doc: "An image of a container engine: pulled, or loaded from an archive.",
	Attrs: []Attr{
		forEachOf("image"),
		dependsOn,
		inEngine,
		{
			Name: "ref", Type: cty.String, Form: OneLine, Required: true, Known: true,
			Doc: "Its name, like \"docker.io/library/busybox:1.36\".",
		},
		{
			Name: "archive", Type: cty.String, File: true,
			Doc: "An archive that `docker save` wrote, from which it is loaded; pulled when left out.",
		},
		{
			Name: "archive_sha256", Type: cty.String, Derived: true, DigestOf: "archive",
			Doc: "The digest of archive; null without one.",
		},
		{
			Name: "pull", Type: cty.String, Default: cty.StringVal("missing"), OneOf: []string{"missing", "always", "never"}, Policy: true,
			Doc: "When it is pulled: where it is missing, always when its name in the registry leads to another content by now, or never. Of no effect with archive.",
		},
		ownAddress,
		{
			Name: "id", Type: cty.String, Computed: true,
			Doc: "Its full name in the engine.",
		},
		{
			Name: "image_id", Type: cty.String, Computed: true,
			Doc: "The engine's own identity of its content.",
		},
		{
			Name: "digest", Type: cty.String, Computed: true,
			Doc: "The digest under which its registry has it; null where no registry gave it.",
		},
	},
	Blocks: []Block{timeoutsBlock, lifecycleBlock},
	Later:  []string{"build", "force"},
}
