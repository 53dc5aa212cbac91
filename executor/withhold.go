package executor

import (
	"maps"
	"strings"

	"vmctl/spec"
	"vmctl/state"
)

// withheld returns a record with digests in place of its sensitive values and settings.
func (x *execution) withheld(r state.Record) state.Record {
	values, settings := spec.SensitiveValues(r.Values), spec.SensitiveValues(r.Settings)
	if len(values)+len(settings)+len(r.Digests) == 0 {
		return r
	}
	digests := maps.Clone(r.Digests)
	if digests == nil {
		digests = map[string]string{}
	}
	maps.DeleteFunc(digests, func(path, _ string) bool {
		setting, is := strings.CutPrefix(path, state.SettingPrefix)
		return is && spec.Has(r.Settings, setting)
	})
	for _, v := range values {
		if v.Value.IsWhollyKnown() && !v.Value.IsNull() {
			digests[v.Path] = x.DigestKey.Digest(r.ID, v.Path, v.Value)
		}
	}
	for _, v := range settings {
		digests[state.SettingPrefix+v.Path] = x.DigestKey.Digest(r.ID, state.SettingPrefix+v.Path, v.Value)
	}
	r.Values, r.Settings, r.Digests = spec.Withheld(r.Values), spec.Withheld(r.Settings), digests
	return r
}

// settingDigests returns the digests of settings. Those of values are made anew.
func settingDigests(all map[string]string) map[string]string {
	kept := map[string]string{}
	for path, digest := range all {
		if strings.HasPrefix(path, state.SettingPrefix) {
			kept[path] = digest
		}
	}
	return kept
}
