package spec

// rootBlocks lists the blocks that stand at the top of a file.
var rootBlocks = []string{
	"disk", "guest_file", "import", "locals", "moved", "output", "provider", "removed", "variable", "vm", "vmctl",
}

// laterBlocks lists the top-level blocks that the language has and this build has not.
var laterBlocks = []string{
	"container", "engine", "image", "job", "network", "volume", "workspace",
}

// laterProviders lists the provider types that the language has and this build has not.
var laterProviders = []string{"lima", "terraform"}

// typeNames lists the types of variables.
var typeNames = []string{"any", "bool", "list", "map", "number", "object", "set", "string", "tuple"}

// resourceShapes has every kind of resource.
var resourceShapes = map[Kind]Block{VM: vmShape, Disk: diskShape, GuestFile: guestFileShape}

// providerShapes has every type of provider.
var providerShapes = map[string]Block{"libvirt": libvirtShape, "sim": simShape}

// applies lists the values of a ceiling, from least to most disruptive.
var applies = []string{"live", "restart", "replace"}
