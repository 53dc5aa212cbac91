package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/lima-vm/lima/v2/pkg/downloader"
	"github.com/lima-vm/lima/v2/pkg/driverutil"
	"github.com/lima-vm/lima/v2/pkg/limatype"
	"github.com/lima-vm/lima/v2/pkg/limatype/filenames"
	"github.com/lima-vm/lima/v2/pkg/limayaml"
	"github.com/lima-vm/lima/v2/pkg/localpathutil"
	"github.com/lima-vm/lima/v2/pkg/networks"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
)

// checked is the result of a check that found no mistake.
type checked struct {
	Warnings []string `json:"warnings"`
}

func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check NAME",
		Short: "Look for mistakes in the YAML of an instance, read from standard input, and write nothing",
		Args:  cobra.ExactArgs(1),
		RunE: act(func(ctx context.Context, cmd *cobra.Command, args []string) (any, error) {
			document, err := io.ReadAll(cmd.InOrStdin())
			if err != nil {
				return nil, fmt.Errorf("read standard input: %w", err)
			}
			warned := warnings{all: []string{}}
			logrus.AddHook(&warned)
			if err := check(ctx, args[0], document); err != nil {
				return nil, fmt.Errorf("check the YAML of instance %s: %w", args[0], err)
			}
			return checked{Warnings: warned.all}, nil
		}),
	}
}

// check looks for mistakes in the YAML that instance name is to get. The folder of the instance
// need not exist, and nothing is written.
func check(ctx context.Context, name string, document []byte) error {
	dir, err := instanceDir(name)
	if err != nil {
		return err
	}
	config, err := strictly(document)
	if err != nil {
		return err
	}
	if err := borrowNetworks(config); err != nil {
		return err
	}
	config, err = limayaml.LoadWithWarnings(ctx, document, filepath.Join(dir, filenames.LimaYAML))
	if err != nil {
		return err
	}
	if err := driverutil.ResolveVMType(config); err != nil {
		return err
	}
	if err := limayaml.Validate(config, false); err != nil {
		return err
	}
	inst, err := instanceOf(name, dir, config)
	if err != nil {
		return err
	}
	driver, err := driverutil.CreateConfiguredDriver(ctx, inst, 0)
	if err != nil {
		return err
	}
	// The driver has filled in its own defaults, without which Lima cannot warn.
	if err := limayaml.Validate(config, true); err != nil {
		return err
	}
	if err := driver.Validate(ctx); err != nil {
		return err
	}
	return checkImages(inst)
}

// strictly reads YAML in which every field must be one that Lima knows. Lima itself only logs the
// others.
func strictly(document []byte) (*limatype.LimaYAML, error) {
	var config limatype.LimaYAML
	disk := yaml.CustomUnmarshaler(func(dst *limatype.Disk, b []byte) error {
		if yaml.Unmarshal(b, &dst.Name) == nil {
			return nil
		}
		return yaml.UnmarshalWithOptions(b, dst, yaml.Strict())
	})
	locator := yaml.CustomUnmarshaler(func(dst *limatype.LocatorWithDigest, b []byte) error {
		if yaml.Unmarshal(b, &dst.URL) == nil {
			return nil
		}
		return yaml.UnmarshalWithOptions(b, dst, yaml.Strict())
	})
	if err := yaml.UnmarshalWithOptions(document, &config, yaml.Strict(), disk, locator); err != nil {
		return nil, err
	}
	// The options of a driver are of no type in LimaYAML.
	if given := config.VMOpts[limatype.QEMU]; given != nil {
		options, err := yaml.Marshal(given)
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalWithOptions(options, new(limatype.QEMUOpts), yaml.Strict()); err != nil {
			return nil, fmt.Errorf("vmOpts.qemu: %w", err)
		}
	}
	return &config, nil
}

// borrowNetworks makes Lima read the default networks, which it would write into a LIMA_HOME that
// has none, from a folder that is removed.
func borrowNetworks(config *limatype.LimaYAML) (err error) {
	if len(config.Networks) == 0 {
		return nil
	}
	file, err := networks.ConfigFile()
	if err != nil {
		return err
	}
	if there, err := exists(file); there || err != nil {
		return err
	}
	const variable = "LIMA_HOME"
	home := filepath.Dir(filepath.Dir(file))
	scratch, err := os.MkdirTemp("", "vmctl-lima-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch), os.Setenv(variable, home)) }()
	if err := os.Setenv(variable, scratch); err != nil {
		return err
	}
	_, err = networks.LoadConfig() // kept until the process ends
	return err
}

// checkImages looks whether an image is there from which the root disk can be made, if there is no
// root disk yet. Images of other architectures and images to be downloaded are not looked at.
func checkImages(inst *limatype.Instance) error {
	for _, name := range []string{rootFile(inst.VMType), filenames.DiffDiskLegacy} {
		if there, err := exists(filepath.Join(inst.Dir, name)); there || err != nil {
			return err
		}
	}
	var missing []error
	usable := 0
	for _, image := range inst.Config.Images {
		if image.Arch != inst.Arch {
			continue
		}
		if err := checkLocal(image.Location); err != nil {
			missing = append(missing, err)
			continue
		}
		usable++
	}
	switch {
	case usable == 0 && len(missing) == 0:
		return fmt.Errorf("images: none is for the architecture %s", inst.Arch)
	case usable == 0:
		return fmt.Errorf("images: %w", errors.Join(missing...))
	}
	for _, err := range missing {
		logrus.Warnf("images: %v", err)
	}
	return nil
}

// checkLocal looks whether a file of this machine is there. A URL of another machine passes.
func checkLocal(location string) error {
	if !downloader.IsLocal(location) {
		return nil
	}
	path, err := localpathutil.Expand(strings.TrimPrefix(location, "file://"))
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fmt.Errorf("%s is a folder", path)
	}
	return nil
}

// warnings collects the warnings of Lima's log.
type warnings struct{ all []string }

// Levels returns the levels of the entries that Fire gets.
func (w *warnings) Levels() []logrus.Level { return []logrus.Level{logrus.WarnLevel} }

// Fire keeps one entry.
func (w *warnings) Fire(entry *logrus.Entry) error {
	text := entry.Message
	if cause, ok := entry.Data[logrus.ErrorKey].(error); ok {
		text += ": " + cause.Error()
	}
	w.all = append(w.all, text)
	return nil
}
