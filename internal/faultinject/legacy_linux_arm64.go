package faultinject

// withLegacy adds nothing: this architecture has no older calls.
func withLegacy(all map[int]kind) map[int]kind { return all }
