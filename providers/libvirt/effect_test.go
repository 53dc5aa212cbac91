package libvirt_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"golang.org/x/crypto/ssh"

	"vmctl/providers"
	"vmctl/providers/providertest"
)

// effects tells the conformance suite how the fake daemon shows attributes.
func (l *lab) effects() providertest.Effects {
	l.file("files/one.qcow2", qcow2(8))
	l.file("files/two.qcow2", qcow2(16))
	return providertest.Effects{
		Images: [2]string{"one.qcow2", "two.qcow2"}, Reports: l.report,
		Lacks: providertest.WithoutLima(map[string]string{
			"vm.additional_disk.mount_point": "it reaches into no guest",
			"disk.fs_type":                   "it reaches into no guest",
		}),
	}
}

// letsIn returns the key of the first user whom the boot files of a domain let in.
func (l *lab) letsIn(uuid string) ssh.PublicKey {
	l.t.Helper()
	return publicKey(l.t, []byte(l.booted(uuid)["vmctl/authorized_keys"]))
}

// booted returns the files that vmctl added to the initial RAM disk of a domain.
func (l *lab) booted(uuid string) map[string]string {
	l.t.Helper()
	ramdisk := l.Ramdisk(uuid)
	begin := bytes.Index(ramdisk, []byte{0x1f, 0x8b}) // of gzip, RFC 1952
	if begin < 0 {
		l.t.Fatalf("the initial RAM disk of %s has no archive", uuid)
	}
	return unpack(l.t, ramdisk[begin:])
}

// patterns find attributes in the XML of a domain.
var patterns = map[string]*regexp.Regexp{
	"cpus":                      regexp.MustCompile(`<vcpu>([0-9]+)</vcpu>`),
	"memory":                    regexp.MustCompile(`<memory unit="KiB">([0-9]+)</memory>`),
	"boot.cmdline":              regexp.MustCompile(`<cmdline>(.*)</cmdline>`),
	"boot.kernel":               regexp.MustCompile(`<kernel>.*/([^/]+)</kernel>`),
	"network_interface.network": regexp.MustCompile(`<source network="lab\.([a-z]+)"`),

	"port_forward.guest":    regexp.MustCompile(`,hostfwd=[a-z]+:127[0-9.]+:[0-9]+-:(80[0-9]+)`),
	"port_forward.host":     regexp.MustCompile(`,hostfwd=[a-z]+:127[0-9.]+:([0-9]+)-:80[0-9]+`),
	"port_forward.host_ip":  regexp.MustCompile(`,hostfwd=[a-z]+:(127[0-9.]+):[0-9]+-:80[0-9]+`),
	"port_forward.protocol": regexp.MustCompile(`,hostfwd=([a-z]+):127[0-9.]+:[0-9]+-:80[0-9]+`),
}

// report reads an attribute from the fake daemon: the XML of a domain, and its volumes.
func (l *lab) report(o providers.Object, _ cty.Value, path string) (text string, known bool) {
	l.t.Helper()
	switch path {
	case "ssh.identity", "ssh.authorized_keys":
		return l.booted(string(o.ID))["vmctl/authorized_keys"], true
	case "cloud_init.user_data", "cloud_init.network_config":
		for _, name := range l.VolumesIn(poolName) {
			if strings.HasPrefix(name, string(o.ID)+".seed-") {
				return string(l.Volume(poolName, name)), true
			}
		}
		l.t.Fatalf("%s has no seed", o.Name)
	case "image.source":
		v, err := l.VolumeInfo(l.t.Context(), poolName, string(o.ID)+".root.qcow2")
		if err != nil {
			l.t.Fatal(err)
		}
		_, digest, _ := strings.Cut(filepath.Base(v.Backing), "-image-")
		return strings.TrimSuffix(digest, ".qcow2"), true
	}
	pattern := patterns[path]
	if pattern == nil {
		return "", false
	}
	xml := l.Running(string(o.ID))
	if xml == "" {
		xml = l.Configured(string(o.ID))
	}
	found := pattern.FindStringSubmatch(xml)
	if found == nil {
		return "nothing", true
	}
	switch text = found[1]; path {
	case "memory":
		kib, err := strconv.Atoi(text)
		if err != nil {
			l.t.Fatal(err)
		}
		text = strconv.Itoa(kib << 10)
	case "network_interface.network":
		text = "network." + text
	case "boot.kernel":
		sum := sha256.Sum256(l.Volume(poolName, text))
		text = hex.EncodeToString(sum[:])
	}
	return text, true
}
