package engine

import (
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// engineKinds lists the attributes of an engine.
var engineKinds = map[spec.Kind]map[string]providers.Attribute{spec.Engine: {
	"vm": {}, "host": {}, "type": {Judge: machine.Live("what is inside of it stays as it is")},
	"docker_context": {Judge: machine.Live("the engine itself stays as it is"), StaysUp: true},
	"id":             lasting, "endpoint": {Computed: true}, "version": {Computed: true},
}}

// objectKinds lists the attributes of what is inside of an engine. An attribute without a judge replaces
// its object.
var objectKinds = map[spec.Kind]map[string]providers.Attribute{
	spec.Image: {
		"engine": {}, "ref": {}, "archive": {Judge: sameFile, StaysUp: true}, "archive_sha256": {},
		"build": {}, "build.context": {Judge: sameFile, StaysUp: true}, "build.context_sha256": {},
		"id": {Computed: true}, "image_id": {Computed: true}, "digest": {Computed: true},
	},
	spec.Volume: {
		"engine": {}, "name": {}, "driver": {}, "labels": {},
		"id": {Computed: true},
	},
	spec.Network: {
		"engine": {}, "name": {}, "driver": {}, "internal": {}, "labels": {},
		"id": {Computed: true},
	},
	spec.Container: {
		"engine": {}, "image": {}, "name": {}, "entrypoint": {}, "command": {}, "env": {}, "user": {}, "workdir": {},
		"hostname": {}, "labels": {}, "port": {}, "mount": {}, "network": {}, "healthcheck": {},
		"state":   {Judge: machine.Live("started, stopped or paused")},
		"restart": {Judge: machine.Live("the engine takes it at any time")},
		"memory":  {Judge: limit}, "cpus": {Judge: limit},
		"id": {Computed: true}, "container_id": {Computed: true},
	},
}

var lasting = providers.Attribute{Computed: true, Lasts: func(now, _ cty.Value) cty.Value { return now }}

// sameFile judges another path of an archive or of a folder: its content decides.
func sameFile(before, after cty.Value, _ bool) providers.Verdict {
	if ctyread.Known(before) != ctyread.Known(after) {
		return providers.Verdict{Applies: providers.Replace, Reason: "it comes from elsewhere"}
	}
	return providers.Verdict{Applies: providers.Live, Reason: "only the path differs"}
}

// limit judges another limit: an engine takes one at any time, and never lifts it.
func limit(_, after cty.Value, _ bool) providers.Verdict {
	if !ctyread.Known(after) {
		return providers.Verdict{Applies: providers.Replace, Reason: "an engine never lifts a limit"}
	}
	return providers.Verdict{Applies: providers.Live, Reason: "the engine takes it at any time"}
}

// The operations on an engine and on what is inside of it; guard.OpUnmark is another.
const (
	opConnect    = "connect"
	opDisconnect = "disconnect"
	opContext    = "set_context"
	opSwitch     = "switch"
	opServe      = "serve"
	opUnserve    = "unserve"
	opMake       = "make"
	opLoad       = "load"
	opPull       = "pull"
	opBuild      = "build"
	opTag        = "tag"
	opUpdate     = "update"
	opStart      = "start"
	opHealthy    = "wait_healthy"
	opPause      = "pause"
	opUnpause    = "unpause"
	opStop       = "stop"
	opRemove     = "remove"
	opPark       = "park"
	opUnpark     = "unpark"
	opDrop       = "drop"
)

// words has the words for each operation, which stand after an address: "container.web: making room for its successor".
var words = map[string]providers.Words{
	opConnect: {Doing: "connecting", Done: "connected"}, opDisconnect: {Doing: "letting go of it", Done: "released"},
	opContext: {Doing: "setting its docker context", Done: "docker context set"}, opSwitch: {Doing: "switching its type", Done: "type switched"},
	opServe: {Doing: "serving it on this host", Done: "served"}, opUnserve: {Doing: "ending the process that serves it", Done: "not served"},
	opMake: {Doing: "making", Done: "made"}, opLoad: {Doing: "loading", Done: "loaded"}, opPull: {Doing: "pulling", Done: "pulled"},
	opBuild: {Doing: "building", Done: "built"}, opTag: {Doing: "naming its new content", Done: "new content named"},
	opUpdate: {Doing: "changing", Done: "changed"}, opStart: {Doing: "starting", Done: "started"},
	opHealthy: {Doing: "waiting until it is healthy", Done: "healthy"},
	opPause:   {Doing: "pausing", Done: "paused"}, opUnpause: {Doing: "resuming", Done: "resumed"},
	opStop: {Doing: "stopping", Done: "stopped"}, opRemove: {Doing: "removing", Done: "removed"},
	opPark: {Doing: "making room for its successor", Done: "renamed"}, opUnpark: {Doing: "taking its name back", Done: "name taken back"},
	opDrop:         {Doing: "removing its predecessor", Done: "predecessor removed"},
	guard.OpUnmark: {Doing: "letting go of it", Done: "released"},
}

// things has an engine's word for an object of each kind.
var things = map[spec.Kind]string{spec.Image: "image", spec.Volume: "volume", spec.Network: "network", spec.Container: "container"}

// predefined has the networks that every engine has, and that none lets go of: runconfig.IsPreDefinedNetwork of Docker Engine.
var predefined = map[string]bool{"bridge": true, "host": true, "none": true, "default": true}

// The time limits of requests and steps.
const (
	requestTimeout = 20 * time.Second // of a request that is answered at once
	quick          = time.Minute      // of a step
	registryLimit  = 10 * time.Second // of the questions to registries for one plan
)
