package view

// Saved tells where the work in a workspace is saved, and what is in the save. aside is the save of what was there before; "":
// nothing was.
func Saved(s Screen, address, verb, ref, contents, aside string) {
	p := &page{screen: s}
	p.put(0, 2, txt(address+": "+verb+" "+ref))
	p.put(2, 4, txt(contents))
	if aside != "" {
		p.put(2, 4, txt("an earlier restore had been cut short; what was there since is saved in "+aside))
	}
	p.flush()
}
