package libvirt

// fileNames lists the kinds of files that vmctl puts into pools.
var fileNames = map[fileKind]nameRow{
	kindKernel:  {before: ".kernel-", digits: 12, object: true},
	kindInitrd:  {before: ".initrd-", digits: 12, object: true},
	kindSeed:    {before: ".seed-", digits: 12, after: ".iso", object: true},
	kindRoot:    {after: ".root.qcow2", object: true},
	kindConsole: {after: ".console.log", object: true, backups: true},
	kindImage:   {before: "-image-", digits: 16, after: ".qcow2"},
	kindNote:    {after: ".complete"},
	kindSidecar: {after: ".vmctl"},
}
