package lima

import (
	"fmt"
	"slices"

	"vmctl/internal/yamltext"
	"vmctl/providers"
)

// usedDisk returns a disk of an instance with the file system that it is to have.
func (p *Provider) usedDisk(name, mountPoint string) usedDisk {
	d := usedDisk{name: name, mountPoint: mountPoint}
	if m, err := readMark(p.diskPath(name, markName)); err == nil {
		d.fsType = m.FSType
	}
	return d
}

// losesLabel reports whether Lima would format a disk at each start: it finds a disk by its label lima-NAME, and
// takes one without for new.
func losesLabel(entry any) (name string, loses bool) {
	fsType := "ext4"
	switch e := entry.(type) {
	case string:
		name = e
	case map[string]any:
		name, fsType = text(e["name"], ""), text(e["fsType"], fsType)
		if e["format"] == false {
			return name, false
		}
	}
	most, limited := labelSpace[fsType]
	return name, limited && len("lima-"+name) > most
}

// keepDisks takes the formatting of disks away from Lima before a start, in the definition that an older vmctl has
// written. It fails if Lima would format a disk of the template anew.
func (j *job) keepDisks() error {
	doc, err := yamltext.Parse(j.seen.text)
	if err != nil {
		return fail(err, "start %s", j.Name)
	}
	list, _ := doc[keyDisks].([]any)
	if !slices.Contains(j.seen.mark.Keys, keyDisks) {
		for _, entry := range list {
			if name, loses := losesLabel(entry); loses {
				return &providers.Problem{
					Outcome: providers.Unsafe, Code: "would_format", Seen: []string{j.path(j.Name, defsFile) + " lets Lima format the disk " + name},
					Next: providers.Say(fmt.Sprintf("write it as additional_disk into the block of %s, or give it `format: false` in %s", j.Address, keyDisks)),
					Err: fmt.Errorf("start %s: Lima would format the disk %s anew, with all that is on it: the name is too long for the label by which Lima finds it",
						j.Address, name),
				}
			}
		}
		return nil
	}
	var disks []usedDisk
	for _, name := range namesOf(doc) {
		disks = append(disks, j.usedDisk(name, j.seen.mark.MountPoints[name]))
	}
	doc[keyDisks] = additionalDisks(disks)
	replaceMountScript(doc, mountScript(disks))
	text, err := yamltext.Marshal(doc)
	if err == nil && text != j.seen.text {
		err = writeFile(j.path(j.Name, defsFile), text)
	}
	if err != nil {
		return fail(err, "start %s", j.Name)
	}
	j.seen.doc, j.seen.text = doc, text
	return nil
}
