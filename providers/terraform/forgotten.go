package terraform

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/atomicfile"
	"vmctl/internal/ctyread"
	"vmctl/internal/parallel"
	"vmctl/internal/shellword"
	"vmctl/internal/sshx"
	"vmctl/providers"
	"vmctl/providers/guest"
	"vmctl/spec"
)

// missing is a VM that its record says was made, and that Terraform knows nothing of any more.
type missing struct {
	providers.Known

	seen *seen // its workspace; nil: that is gone
}

// isForgotten reports whether the resources of a VM left its state without being destroyed, as far as anything shows that.
// Terraform clears the outputs of a module that it has destroyed, and keeps them when it only forgets the resources.
func (p *Provider) isForgotten(s *seen, known *providers.Known) bool {
	if known == nil || !known.Kept || known.ID != s.id || s.made() {
		return false
	}
	if s.state.Lineage == "" || len(s.state.Outputs) > 0 {
		return !p.wasEmptied(s)
	}
	return !ctyread.Known(ctyread.Attr(known.Prior, "outputs"))
}

// absent lists the VMs that were made, and whose workspaces are gone.
func absent(q providers.Query, all []workspace, inv providers.Inventory) []missing {
	there := map[providers.ID]bool{}
	for _, w := range all {
		there[w.id] = true
	}
	for _, u := range inv.Unknown {
		there[u.ID] = true
	}
	var gone []missing
	for _, k := range q.Known {
		if k.Kind == spec.VM && k.Kept && k.ID != "" && !there[k.ID] {
			gone = append(gone, missing{Known: k})
		}
	}
	return gone
}

// unaccounted describes VMs of which nobody knows whether they still exist. None of them is made again beside itself.
func (p *Provider) unaccounted(ctx context.Context, m spec.TerraformModule, all []missing) []providers.Unknown {
	unknown := make([]providers.Unknown, len(all))
	parallel.Do(runtime.GOMAXPROCS(0), len(all), func(i int) {
		v := all[i]
		reasons := []string{p.forgotten(m, v)}
		if text := recordedText(v.Prior); text != "" {
			reasons = append(reasons, "its record has "+text)
		}
		if text := p.answering(ctx, v.Known); text != "" {
			reasons = append(reasons, text)
		}
		unknown[i] = providers.Unknown{Kind: spec.VM, ID: v.ID, Name: v.Name, Reason: strings.Join(reasons, "; "), Next: p.recovery(m, v)}
	})
	return unknown
}

// forgotten says what became of the workspace of a VM.
func (p *Provider) forgotten(m spec.TerraformModule, v missing) string {
	switch {
	case v.seen == nil && isRemote(m):
		return fmt.Sprintf("its VM was made, and the backend %s has no workspace of it any more", m.Backend)
	case v.seen == nil || v.seen.state.Lineage == "":
		return "its VM was made, and its state in " + p.statesDir() + " is gone"
	case len(v.seen.state.Outputs) > 0:
		return fmt.Sprintf("its VM was made, and its resources left the state of the workspace %s without a destroy: the outputs are still there", v.seen.name)
	default:
		return fmt.Sprintf("its VM was made, and its resources left the state of the workspace %s; nothing shows whether %s destroyed them", v.seen.name, p.tool())
	}
}

// recordedText returns what a record knows of a VM, for people. "": nothing.
func recordedText(prior cty.Value) string {
	var all []string
	for _, name := range []string{outID, outAddress} {
		if text := ctyread.Text(prior, name); text != "" {
			all = append(all, name+" "+text)
		}
	}
	return strings.Join(all, ", ")
}

// answerLimit limits each part of the attempt to reach a VM that Terraform has forgotten.
const answerLimit = 5 * time.Second

// answering says who answers where the record has the SSH of a VM. "": no host key of it is pinned, which could prove anything.
func (p *Provider) answering(ctx context.Context, k providers.Known) string {
	l, err := p.login(k.ID, place{attrs: k.Prior}, k.Prior)
	if err != nil {
		return ""
	}
	if _, err := os.Stat(l.KnownHosts); err != nil {
		return ""
	}
	l.IdentityFile, l.AcceptNew = "", false // the host key is enough
	target := guest.Target(l)
	target.Banner, target.Handshake = answerLimit, answerLimit
	at := fmt.Sprintf("%s:%d", l.Address, l.Port)
	var auth *sshx.AuthError
	var other *sshx.HostKeyError
	switch err := sshx.Probe(ctx, target); {
	case err == nil, errors.As(err, &auth):
		return "it runs: " + at + " shows its pinned host key"
	case errors.As(err, &other):
		return "at " + at + " another machine answers, with the host key " + other.Shown
	default:
		return "nothing at " + at + " shows its pinned host key, which does not prove that it is gone"
	}
}

// recovery returns the advice about a VM that Terraform has forgotten.
func (p *Provider) recovery(m spec.TerraformModule, v missing) []providers.Advice {
	var next []providers.Advice
	name := workspaceName(p.settings.Project.Lineage(), v.Address, v.ID)
	if v.seen != nil {
		name = v.seen.name
	}
	_, none := os.Stat(p.copyPath(name))
	command, ok := p.onState(name)
	switch {
	case none == nil:
		next = providers.Say("if it is still there, put its state of the last apply back: " + p.restoring(m, v, name))
	case ok:
		next = providers.Say("if it is still there, let " + string(p.tool()) + " take its resources over, each by its address in the module and its ID: " + command([]string{"import"}, "ADDRESS") + " ID")
	}
	return append(next, providers.SayVmctl("or remove it with the tool of its cloud, and once it is gone, remove its record, so that an apply makes a new one: ",
		"state", "rm", "--force", v.Address.String())...)
}

// restoring returns the command that puts the copy of a state into its place, for a user to type.
func (p *Provider) restoring(m spec.TerraformModule, v missing, name string) string {
	switch {
	case !isRemote(m):
		return shellword.Join([]string{"install", "-D", "-m", "600", p.copyPath(name), p.statePath(name)})
	case v.seen == nil:
		return p.commandLine(p.settingsOf(m, name)...)("state", "push", p.copyPath(name))
	default: // a later state is there
		return p.commandLine(p.settingsOf(m, name)...)("state", "push", "-force", p.copyPath(name))
	}
}

// copyPath returns the file with a copy of a state, as the last apply left it. It is not beside the state: they are not lost together.
func (p *Provider) copyPath(name string) string {
	return filepath.Join(p.settings.Dir, "copies", name+copySuffix)
}

// copySuffix ends the names of the files with copies of states.
const copySuffix = ".tfstate"

// copyState copies the state as it was read after an apply.
func (j *job) copyState() error {
	path := j.p.copyPath(j.seen.name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, j.seen.raw, 0o600)
}

// forgetEarlier removes what this machine keeps about earlier VMs of the address, which the user let go of. One that was moved to
// another address has its workspace, and stays.
func (j *job) forgetEarlier(ctx context.Context) error {
	address := encode(addressText(j.Address))
	start := strings.Join([]string{prefix, encode(j.p.settings.Project.Lineage()), address, ""}, separator)
	ofAddress := func(name string) bool { return strings.HasPrefix(name, start) }
	names, err := readNames(j.p.statesDir(), ofAddress)
	if err != nil {
		return err
	}
	copies, err := readNames(filepath.Dir(j.p.copyPath("")), ofAddress)
	if err != nil {
		return err
	}
	for _, name := range copies {
		names = append(names, strings.TrimSuffix(name, copySuffix))
	}
	earlier := slices.DeleteFunc(j.p.ours(names), func(w workspace) bool {
		if w.address != address || w.id == j.Object {
			return true
		}
		_, none := os.Stat(j.p.statePath(w.name))
		return none == nil
	})
	if len(earlier) == 0 {
		return nil
	}
	there, err := j.states.list(ctx)
	if err != nil {
		return err
	}
	for _, w := range earlier {
		if workspaceOf(there, w.id) != nil {
			continue
		}
		if err := j.p.removeFolders(w.name); err != nil {
			return err
		}
	}
	return nil
}

// emptiedName is the name of the file that names the state in which a failed apply of vmctl left no resource.
const emptiedName = "emptied"

// noteEmptied notes that a failed apply left a state without resources: it destroyed those that it was to replace.
func (j *job) noteEmptied(ctx context.Context, name string) error {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	w, err := find(limit, j.states, j.Object)
	if err != nil || w == nil {
		return err
	}
	now, err := j.p.read(limit, j.states, *w)
	if err != nil || now.made() {
		return err
	}
	return atomicfile.Write(j.p.emptiedPath(name), []byte(j.p.fingerprint(now)), 0o600)
}

func (p *Provider) emptiedPath(name string) string {
	return filepath.Join(p.statesDir(), name, emptiedName)
}

// wasEmptied reports whether a failed apply of vmctl left the state as it is.
func (p *Provider) wasEmptied(s *seen) bool {
	text, err := os.ReadFile(p.emptiedPath(s.name))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return err == nil && string(text) == p.fingerprint(s)
}
