package sim_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vmctl/providers"
	"vmctl/search"
	"vmctl/spec"
)

// hostSubnet is a network that the host of searchedNetworks is in.
const hostSubnet = "10.0.0.16/28"

// searchedNetworks returns a host whose VMs are in networks, in place of boxes and desks.
func searchedNetworks() search.Host {
	h := searched()
	h.Inside = map[spec.Kind]providers.Type{}
	h.Work, h.AtWork, h.Strike = nil, nil, nil
	h.Faults = slices.DeleteFunc(h.Faults, isOfBoxes)
	h.ExternalChanges = slices.DeleteFunc(h.ExternalChanges, func(c search.ExternalChange) bool {
		return strings.Contains(c.Name, "box") || strings.Contains(c.Name, "desk")
	})
	h.ExternalChanges = append(h.ExternalChanges, inNetworks()...)
	block := h.Block
	h.Block = func(all []search.Fault) string {
		return strings.Replace(block(all), "weightless = true\n", "weightless = true\n  subnets    = [\""+hostSubnet+"\"]\n", 1)
	}
	h.Subnets = []netip.Prefix{netip.MustParsePrefix(hostSubnet)}
	h.Places = placesIn
	return h
}

// interfaceFile is an interface of a VM, as a host has it.
type interfaceFile struct {
	ID   providers.ID
	Name string
	IP   netip.Addr
}

// placesIn returns the networks of a host, and who has which address.
func placesIn(dir string) (search.Places, error) {
	all := search.Places{Networks: map[providers.ID]netip.Prefix{}}
	networks, err := filepath.Glob(filepath.Join(dir, "sim", "networks", "*.json"))
	if err != nil {
		return all, err
	}
	for _, path := range networks {
		var f struct {
			ID     providers.ID
			CIDR   netip.Prefix
			Leases []netip.Addr
		}
		if err := readFile(path, &f); err != nil {
			return all, err
		}
		all.Networks[f.ID] = f.CIDR
		for _, ip := range f.Leases {
			all.Holders = append(all.Holders, search.Holder{Name: "a lease", Network: f.ID, IP: ip})
		}
	}
	vms, err := filepath.Glob(filepath.Join(dir, "sim", "vms", "*.json"))
	for _, path := range vms {
		var f struct {
			ID     providers.ID
			Config struct{ Networks []interfaceFile }
			Run    *struct {
				Ended bool
				With  struct{ Networks []interfaceFile }
			}
		}
		if err := readFile(path, &f); err != nil {
			return all, err
		}
		in := f.Config.Networks
		if f.Run != nil && !f.Run.Ended {
			in = append(in, f.Run.With.Networks...)
		}
		for _, n := range in {
			all.Holders = append(all.Holders, search.Holder{ID: f.ID, Name: filepath.Base(path), Network: n.ID, IP: n.IP})
		}
	}
	return all, err
}

func readFile(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// inNetworks lists what others do in networks.
func inNetworks() []search.ExternalChange {
	network := func(do func(f map[string]any, pick func(int) int) string) func(string, func(int) int) (string, error) {
		return func(dir string, pick func(int) int) (string, error) {
			return onFile(dir, "networks", ".json", pick, func(path string) (string, error) {
				var f map[string]any
				if err := readFile(path, &f); err != nil {
					return "", err
				}
				did := do(f, pick)
				text, err := json.Marshal(f)
				if did == "" || err != nil {
					return did, err
				}
				return did, os.WriteFile(path, text, 0o600)
			})
		}
	}
	return []search.ExternalChange{
		{Name: "delete a network", Do: func(dir string, pick func(int) int) (string, error) {
			return onFile(dir, "networks", ".json", pick, func(path string) (string, error) { return "is deleted", os.Remove(path) })
		}},
		{Name: "unmark a network", Do: network(func(f map[string]any, _ func(int) int) string { delete(f, "owner"); return "loses its mark" })},
		{Name: "change a network", Do: network(func(f map[string]any, _ func(int) int) string { f["internal"] = true; return "is internal" })},
		{Name: "take an address", Do: takeAddress},
		{Name: "lease an address", Do: network(func(f map[string]any, pick func(int) int) string {
			cidr, there := f["cidr"].(string)
			if _, leased := f["leases"]; leased || !there {
				return ""
			}
			ip := netip.MustParsePrefix(cidr).Addr()
			for range 2 + pick(5) {
				ip = ip.Next()
			}
			f["leases"] = []string{ip.String()}
			return "has a lease of " + ip.String()
		})},
	}
}

// takeAddress makes a VM of somebody else in a network, with an address that nobody has.
func takeAddress(dir string, pick func(int) int) (string, error) {
	return onFile(dir, "networks", ".json", pick, func(path string) (string, error) {
		var f struct {
			ID   providers.ID
			Name string
			CIDR netip.Prefix
		}
		p, err := placesIn(dir)
		if err = errors.Join(err, readFile(path, &f)); err != nil {
			return "", err
		}
		ip := f.CIDR.Addr()
		for range 2 + pick(5) {
			ip = ip.Next()
		}
		if slices.ContainsFunc(p.Holders, func(h search.Holder) bool { return h.Network == f.ID && h.IP == ip }) {
			return "", nil
		}
		name := "guest-" + ip.String()
		vm := filepath.Join(dir, "sim", "vms", name+".json")
		text := fmt.Sprintf(`{"format":1,"id":%q,"name":%q,"weightless":true,"config":{"cpus":1,"memory":2147483648,"accel":"auto","networks":[{"id":%q,"name":%q,"ip":%q}]}}`,
			"theirs-"+name, name, f.ID, f.Name, ip)
		return "has somebody at " + ip.String(), os.WriteFile(vm, []byte(text), 0o600)
	})
}

func networkCases(count int) search.Host {
	h := searchedNetworks()
	h.Cases = count
	return h
}

// row X13, of networks of VMs
func TestEditsOfNetworks(t *testing.T) { search.Edits(t, networkCases(40)) }

// row X13, of networks of VMs
func TestWorldsOfNetworks(t *testing.T) { search.Worlds(t, networkCases(40)) }

// row X15, of VMs in networks
func TestLostNetworks(t *testing.T) { search.LostState(t, networkCases(20)) }
