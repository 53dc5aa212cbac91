package spec

import "vmctl/internal/pattern"

var (
	// sizePattern matches sizes; each unit is 1024 of the one before.
	sizePattern = pattern.New(`^([0-9]{1,30}(?:\.[0-9]{1,30})?)(B|KiB|MiB|GiB|TiB|PiB|EiB)$`)
	// nearlySize matches what people write instead of a size: 8G, 8GB, "8 gb", 8.
	nearlySize = pattern.New(`^\s*([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*([kKmMgGtTpPeE]?)([iI]?[bB]?|[bB]ytes?)\s*$`)
	// bareNumber matches a duration that lacks its unit.
	bareNumber = pattern.New(`^[0-9]{1,9}$`)

	// wideVerb matches a verb of format with a very large width or precision.
	wideVerb = pattern.New(`%[-+# 0-9.\[\]]*[0-9]{5}`)

	memberPattern   = pattern.New(`^(module\.[A-Za-z_][\w-]*(\[[^\[\]\n]+\])?\.)*[A-Za-z_][\w-]*\.[A-Za-z_][\w-]*(\[[^\[\]\n]+\])?$`) // of a managed resource, as Terraform writes it
	variablePattern = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)                                                                         // which every shell can export

	labelPattern   = pattern.New(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	projectPattern = pattern.New(`^[a-z0-9][a-z0-9-]{0,30}$`)
	idPattern      = pattern.New(`^[a-z0-9]{10}$`)
	// objectNamePattern matches the names that libvirt, Lima and Docker all accept.
	objectNamePattern = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	sha256Pattern     = pattern.New(`^[0-9a-f]{64}$`)
	// userPattern is a login name that no command line can take for an option.
	userPattern = pattern.New(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,31}$`)
	// templatePlace matches the place of a Lima template: template:docker, or a URL.
	templatePlace = pattern.New(`^(template:|github:|https?://|file:///)[^\s\x00-\x1f\x7f]+$`)
	// constraintPattern is one condition of required_version.
	constraintPattern = pattern.New(`^\s*(=|!=|>|>=|<|<=|~>)?\s*v?([0-9]{1,9}(?:\.[0-9]{1,9}){0,2})\s*$`)
	// versionPattern is the part of a version that constraints compare.
	versionPattern = pattern.New(`^v?([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:\.([0-9]{1,9}))?(?:[-+].*)?$`)
)
