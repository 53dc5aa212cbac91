package view

// WorkspaceDocument is `workspace status` as JSON.
type WorkspaceDocument struct {
	FormatVersion string      `json:"format_version"`
	Address       string      `json:"address"`
	ID            string      `json:"id"`
	Branch        string      `json:"branch"`
	Path          string      `json:"path"`
	Base          string      `json:"base"`
	Head          string      `json:"head"`
	Unknown       string      `json:"unknown,omitempty"` // why its work could not all be read
	Dirty         []DirtEntry `json:"dirty"`
}

// DirtEntry is one sort of work that exists nowhere else.
type DirtEntry struct {
	Sort  string   `json:"sort"`
	Items []string `json:"items"`
}

// Workspace shows the work in a workspace that exists nowhere else.
func Workspace(s Screen, d WorkspaceDocument) {
	p := &page{screen: s}
	p.put(0, 2, txt(d.Address+": branch "+d.Branch+" in "+d.Path))
	if d.Head != "" {
		p.put(2, 4, txt("head "+d.Head))
	}
	if d.Unknown != "" {
		p.put(2, 4, txt("could not be read: "+d.Unknown))
	}
	for _, dirt := range d.Dirty {
		p.put(2, 4, txt(dirt.Sort))
		for _, item := range dirt.Items {
			p.put(4, 6, txt(item))
		}
	}
	if len(d.Dirty) == 0 && d.Unknown == "" {
		p.put(2, 4, txt("clean: this host has all of its work"))
	}
	p.flush()
}

// Moved tells how the branch of a workspace moved.
func Moved(s Screen, address, branch, from, to string) {
	p := &page{screen: s}
	switch from {
	case to:
		p.put(0, 2, txt(address+": branch "+branch+" is up to date at "+to))
	case "":
		p.put(0, 2, txt(address+": branch "+branch+" is new at "+to))
	default:
		p.put(0, 2, txt(address+": branch "+branch+" moved from "+from+" to "+to))
	}
	p.flush()
}
