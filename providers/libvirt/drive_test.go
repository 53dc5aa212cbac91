package libvirt_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/providers/libvirt"
)

// A disk is the same, whether it is observed or edited.
func TestDrives(t *testing.T) {
	source := func(t *rapid.T, name string) string {
		return rapid.SampledFrom([]string{
			"", "<source/>", "<source file='/a/b&amp;c'/>", "<source dev='/dev/sdx'/>", "<source pool='p' volume='v'/>", "<source protocol='nbd' name='n'/>",
		}).Draw(t, name)
	}
	kind := func(t *rapid.T, name string) string {
		return rapid.SampledFrom([]string{"", " type='file'", " type='block'", " type='volume'", " type='network'"}).Draw(t, name)
	}
	rapid.Check(t, func(t *rapid.T) {
		below := rapid.SampledFrom([]string{"", "<backingStore/>", "<backingStore><source file='/c'/></backingStore>"}).Draw(t, "bottom")
		for i := range rapid.IntRange(0, 2).Draw(t, "layers") {
			below = fmt.Sprintf("<backingStore%s>%s%s</backingStore>", kind(t, fmt.Sprint("type", i)), source(t, fmt.Sprint("source", i)), below)
		}
		text := fmt.Sprintf("<disk%s%s>%s%s%s</disk>", kind(t, "type"),
			rapid.SampledFrom([]string{"", " device='cdrom'", " device='lun'"}).Draw(t, "device"), source(t, "source"), below,
			rapid.SampledFrom([]string{"", "<target dev='vda' bus='virtio'/>", "<serial>s1</serial>", "<mirror type='file' job='copy'><source file='/m'/></mirror>"}).Draw(t, "more"))
		observed, edited, err := libvirt.Drives(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(edited, observed); diff != "" {
			t.Errorf("%s\n(-edited +observed):\n%s", text, diff)
		}
	})
}
