package compose

import "strings"

// reasons says of settings of services why they are left out.
var reasons = map[string]string{
	"build":           "the block of its image takes build { context, dockerfile, args, target }: write it there",
	"configs":         "a container has no files of its own: put them into its image or a volume",
	"deploy":          "one container on one engine is made; its limits are memory and cpus",
	"develop":         "it is for working with compose",
	"expose":          "containers in a network reach each port of each other",
	"external_links":  "a container reaches those in its networks by their names",
	"links":           "a container reaches those in its networks by their names; other names go into aliases of their network blocks",
	"network_mode":    "a container is attached to networks only; without one it is on the engine's default network, also where the file says none",
	"cap_drop":        less + "it keeps the engine's default capabilities",
	"read_only":       less + "its root file system can be written",
	"security_opt":    less + "it has the engine's default profiles",
	"pids_limit":      less + "it may start any number of processes",
	"userns_mode":     less + "it has the engine's default user namespace",
	"profiles":        "vmctl has no profiles: each container is made",
	"pull_policy":     "the block of its image takes pull: write it there; without, the image is pulled when the engine has none of that name",
	"scale":           "one container is made; for_each makes more",
	"secrets":         "a container has no secrets: env takes a sensitive variable",
	"volumes_from":    "a container mounts volumes by their names",
	"provider":        "it is for working with compose",
	"stdin_open":      "a container of vmctl has no terminal; vmctl container exec gives one",
	"tty":             "a container of vmctl has no terminal; vmctl container exec gives one",
	"attach":          "it is for working with compose",
	"mem_reservation": "memory is a limit only",
	"healthcheck":     "the check is switched off; a container without a healthcheck has the check of its image",
}

// less begins the reason of a setting that confines a container.
const less = "the container would be less confined than the file says: "

// serviceReason returns why a setting of a service is left out.
func serviceReason(setting string) string {
	if reason, ok := reasons[setting]; ok {
		return reason
	}
	if strings.HasPrefix(setting, "x-") {
		return extension
	}
	return "a container has no such setting"
}

const extension = "an extension, which compose does not read either"

// fileReason returns why a setting of the whole file is left out.
func fileReason(setting string) string {
	switch {
	case strings.HasPrefix(setting, "x-"):
		return extension
	case setting == "version":
		return "compose does not read it either"
	case setting == "secrets", setting == "configs":
		return reasons[setting]
	default:
		return "vmctl has no such setting"
	}
}

func networkReason(setting string) string {
	if strings.HasPrefix(setting, "x-") {
		return extension
	}
	return "a network has no such setting"
}

func volumeReason(setting string) string {
	if strings.HasPrefix(setting, "x-") {
		return extension
	}
	return "a volume has no such setting"
}
