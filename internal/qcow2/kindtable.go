package qcow2

// kinds are files that people have in place of a qcow2 image, by how they begin.
var kinds = []struct {
	begins, what string
	fix          Fix
}{
	{"KDMV", "a VMware disk (vmdk)", Convert},
	{"# Disk DescriptorFile", "the description of a VMware disk (vmdk)", Convert},
	{"vhdxfile", "a Hyper-V disk (vhdx)", Convert},
	{"conectix", "a Virtual PC disk (vhd)", Convert},
	{"<<< Oracle VM VirtualBox Disk Image", "a VirtualBox disk (vdi)", Convert},
	{"<<< Sun", "a VirtualBox disk (vdi)", Convert},
	{"QED\x00", "a QED image", Convert},
	{"\x1f\x8b", "compressed by gzip", Unpack},
	{"\xfd7zXZ\x00", "compressed by xz", Unpack},
	{"\x28\xb5\x2f\xfd", "compressed by zstd", Unpack},
	{"BZh", "compressed by bzip2", Unpack},
	{"PK\x03\x04", "a zip archive", Unpack},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive", Unpack},
}
