// Package composetest draws compose files for the tests of their readers.
package composetest

import (
	"pgregory.net/rapid"

	"vmctl/internal/yamltext"
)

// Document returns a generator of texts that resemble compose files: with known and unknown settings, whose values have
// the right form, or any.
func Document() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 19).Draw(t, "any") == 19 {
			return rapid.String().Draw(t, "text")
		}
		right := rapid.IntRange(0, 3).Draw(t, "wrong") < 3
		doc := map[string]any{"services": rapid.MapOfN(name(right), service(right), 1, 4).Draw(t, "services")}
		if rapid.Bool().Draw(t, "declared") {
			doc["networks"] = mapOf(name(right), object(right)).Draw(t, "networks")
			doc["volumes"] = mapOf(name(right), object(right)).Draw(t, "volumes")
		}
		more := []string{"version", "x-a", "secrets", "other"}
		if !right {
			more = append(more, "name", "include")
		}
		for key, v := range mapOf(rapid.SampledFrom(more), anything()).Draw(t, "more") {
			doc[key] = v
		}
		text, err := yamltext.Marshal(doc)
		if err != nil {
			t.Fatalf("write %v: %v", doc, err)
		}
		return text
	})
}

// name returns a generator of names, of which few are drawn, so that some meet.
func name(right bool) *rapid.Generator[string] {
	names := []string{"a", "b", "default", "a.b", "1a", "-x", "for", "null", "A"}
	if !right {
		names = append(names, "a_2eb", "a b", "ä")
	}
	return rapid.SampledFrom(names)
}

func text() *rapid.Generator[any] {
	return rapid.Map(rapid.OneOf(
		rapid.SampledFrom([]string{
			"", "a", "box:1", "127.0.0.1:5000/x/y:2", "box@sha256:" + digest, "/srv", "a:/srv", "a:/srv:ro", "./a:/b", "80:80", "1-3:4-6/udp", "::1", "[::1]:1:1",
			"0.0.0.0", "1s", "1m30s", "500ms", "64m", "1g", "0.5", "no", "always", "on-failure:3", "true", "A=1", "for=b", "vmctl.id=x", "$SET", "${UNSET}", "${UNSET:-x}",
			"$${x}", "%{ if x }", "#", "*/", "\u2028", "\r\n# x\n}", "CMD", "NONE", "tcp", "service_healthy", "bind", "volume",
		}),
		rapid.String(),
	), func(s string) any { return s })
}

const digest = "0123456789012345678901234567890123456789012345678901234567890123"

// anything returns a generator of any value of YAML.
func anything() *rapid.Generator[any] {
	leaf := rapid.OneOf(text(), rapid.Map(rapid.Int64(), func(n int64) any { return n }),
		rapid.Map(rapid.IntRange(0, 70000), func(n int) any { return int64(n) }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }), rapid.Just[any](nil),
		rapid.Map(rapid.SampledFrom([]string{"0.5", "1e3", ".nan"}), func(s string) any { return yamltext.Number(s) }))
	return rapid.OneOf(leaf, leaf, listOf(leaf), mappingOf(leaf), listOf(mappingOf(leaf)), mappingOf(mappingOf(leaf)))
}

func listOf(v *rapid.Generator[any]) *rapid.Generator[any] {
	return rapid.Map(rapid.SliceOfN(v, 0, 3), func(s []any) any { return s })
}

// key returns a generator of keys that a section of a compose file has.
func key() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{
		"a", "b", "default", "A", "for", "target", "source", "type", "published", "protocol", "host_ip", "read_only", "aliases", "condition", "test", "interval",
		"timeout", "retries", "disable", "path", "required", "format", "name", "external", "limits", "memory", "cpus", "resources", "a.b", "", "null", "#", "\t",
	})
}

func mappingOf(v *rapid.Generator[any]) *rapid.Generator[any] {
	return rapid.Map(mapOf(key(), v), func(m map[string]any) any { return m })
}

func mapOf(key *rapid.Generator[string], v *rapid.Generator[any]) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(key, v, 0, 4)
}

// object returns a generator of the settings of a network or a volume.
func object(right bool) *rapid.Generator[any] {
	if !right {
		return rapid.OneOf(text(), anything())
	}
	return rapid.Custom(func(t *rapid.T) any {
		o := map[string]any{}
		for key, v := range map[string]*rapid.Generator[any]{
			"driver": text(), "name": text(), "labels": mappingOf(text()), "ipam": anything(), "x-a": anything(),
			"internal": rapid.SampledFrom([]any{true, false}), "external": rapid.SampledFrom([]any{true, "false", map[string]any{"name": "x"}}),
		} {
			if rapid.IntRange(0, 2).Draw(t, key) == 0 {
				o[key] = v.Draw(t, key)
			}
		}
		return o
	})
}

// service returns a generator of services.
func service(right bool) *rapid.Generator[any] {
	settings := []string{
		"build", "command", "entrypoint", "environment", "labels", "ports", "volumes", "network_mode", "healthcheck", "restart", "cpus", "mem_limit", "user",
		"working_dir", "hostname", "container_name", "stop_grace_period", "privileged", "x-a", "env_file", "networks",
	}
	if !right {
		settings = append(settings, "deploy", "depends_on", "extends", "image")
	}
	return rapid.Custom(func(t *rapid.T) any {
		s := map[string]any{"image": rapid.SampledFrom([]string{"box", "box:1", "library/box", "r.example:5000/a/b@sha256:" + digest, "1"}).Draw(t, "image")}
		for _, setting := range rapid.SliceOfNDistinct(rapid.SampledFrom(settings), 0, 6, rapid.ID[string]).Draw(t, "settings") {
			v := rightOf(setting)
			if !right {
				v = rapid.OneOf(v, anything())
			}
			s[setting] = v.Draw(t, setting)
		}
		return s
	})
}

// rightOf returns a generator of values that a setting may have.
func rightOf(setting string) *rapid.Generator[any] {
	switch setting {
	case "command", "entrypoint":
		return listOf(text())
	case "environment", "labels":
		return mappingOf(text())
	case "user", "working_dir", "hostname", "container_name", "network_mode":
		return text()
	case "ports":
		return listOf(rapid.SampledFrom([]any{"80:80", "127.0.0.1:1-3:4-6/udp", int64(80), map[string]any{"target": int64(1), "published": "2"}}))
	case "volumes":
		return listOf(rapid.SampledFrom([]any{"./a:/b", "/c", map[string]any{"type": "tmpfs", "target": "/d"}}))
	case "env_file":
		return rapid.SampledFrom([]any{"x.env", []any{map[string]any{"path": "y.env", "format": "raw"}}})
	case "networks":
		return rapid.SampledFrom([]any{[]any{"default"}, map[string]any{"default": map[string]any{"aliases": []any{"x", "y\n"}, "priority": int64(1)}}})
	case "restart":
		return rapid.SampledFrom([]any{"no", "always", "on-failure:3"})
	case "cpus":
		return rapid.SampledFrom([]any{int64(1), "0.5", "0.00000000001", int64(0)})
	case "mem_limit":
		return rapid.SampledFrom([]any{"64m", int64(5), "1.5g", "0"})
	case "healthcheck":
		return rapid.Map(listOf(text()), func(v any) any {
			return map[string]any{"test": append([]any{"CMD", "x"}, v.([]any)...), "interval": "500ms", "retries": int64(2)}
		})
	case "stop_grace_period":
		return rapid.SampledFrom([]any{"1m30s", "500ms", "0s"})
	default:
		return anything()
	}
}
