package spec

import "github.com/zclconf/go-cty/cty"

var imageShape = Block{
	Version: 1, Name: "image", In: &In{Attr: "engine", Kinds: []Kind{Engine}},
	Doc: "An image of a container engine: pulled, loaded from an archive, or built.",
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
			Doc: "When it is pulled: where it is missing, always when its name in the registry leads to another content by now, or never. Of no effect with archive or build.",
		},
		{
			Name: "force", Type: cty.Bool, Default: cty.False, Policy: true,
			Doc: "Whether its removal takes its name also from containers of others that use it, as docker rmi --force does; none is stopped. Without, it is retained until they are gone.",
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
	Blocks: []Block{
		{
			Name: "build", Optional: true,
			Doc: "The engine builds it of a folder of this host, and again when anything that the build gets has changed.",
			Attrs: []Attr{
				{
					Name: "context", Type: cty.String, Form: BuildContext, Required: true, Known: true, Reach: ReachFolder,
					Doc: "The folder that the build gets, without what its .dockerignore leaves out, relative to the spec's folder.",
				},
				{
					Name: "context_sha256", Type: cty.String, Derived: true, DigestOf: "context",
					Doc: "The digest of names, modes and contents of what the build gets.",
				},
				{
					Name: "dockerfile", Type: cty.String, Form: InnerPath, Default: cty.StringVal("Dockerfile"), Known: true,
					Doc: "The path of the Dockerfile in that folder.",
				},
				{
					Name: "args", Type: cty.Map(cty.String), Form: Variables, Default: cty.MapValEmpty(cty.String), Sensitive: true,
					Doc: "Values of the ARGs of the Dockerfile. The history of the image shows them to all who have the image: a secret needs another way.",
				},
				{
					Name: "target", Type: cty.String, Form: OneLine,
					Doc: "The stage of the Dockerfile that is built; the last one when left out.",
				},
			},
		},
		timeoutsBlock, lifecycleBlock,
	},
}
