package view

// Saved tells where the work in a workspace is saved, and what is in the save.
func Saved(s Screen, address, verb, ref, contents string) {
	p := &page{screen: s}
	p.put(0, 2, txt(address+": "+verb+" "+ref))
	p.put(2, 4, txt(contents))
	p.flush()
}
