package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/internal/fetch"
	"vmctl/internal/lockfile"
	"vmctl/providers/libvirt"
)

func (a *app) cacheCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "List and remove downloads",
		Args:  cobra.ArbitraryArgs,
		RunE:  a.group,
	}
	var older time.Duration
	prune := &cobra.Command{
		Use:   "prune [KEY...]",
		Short: "Remove downloads",
		Long: "Remove downloads from the cache: all of them, those of some keys as cache list shows\n" +
			"them, or those that arrived some time ago. One that is being downloaded stays; an\n" +
			"apply that is about to fill a disk from one fails without it. No disk needs its download\n" +
			"any more; the next one that is made from the same address downloads it again.",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, keys []string) error { return a.cachePrune(cmd.Context(), keys, older) },
	}
	prune.Flags().DurationVar(&older, "older-than", 0, "only those that arrived at least this `TIME` ago, such as 720h")
	cmd.AddCommand(&cobra.Command{
		Use:   "list",
		Short: "List the downloads that vmctl keeps",
		Long: "List the images that vmctl has downloaded for disks, the oldest first, and the parts of\n" +
			"those whose download was cut short. Lima keeps its own: limactl prune removes them.",
		Args: between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.cacheList(cmd.Context()) },
	}, prune)
	return cmd
}

// downloads returns vmctl's downloads.
func (a *app) downloads() (*fetch.Cache, error) {
	dir := cacheDir(a.env.Getenv)
	if dir == "" {
		return nil, rejected("no_cache", "find the cache: neither HOME nor XDG_CACHE_HOME names a folder",
			"set one of them to an absolute path")
	}
	return libvirt.Downloads(dir), nil
}

func (a *app) cacheList(ctx context.Context) error {
	cache, err := a.downloads()
	if err != nil {
		return err
	}
	all, err := cache.List(ctx)
	if err != nil {
		return err
	}
	doc := view.CacheDocument{FormatVersion: view.FormatVersion, Dir: cache.Dir, Downloads: []view.Download{}}
	for _, e := range all {
		doc.Downloads = append(doc.Downloads, download(e))
	}
	a.show(doc, func(s view.Screen) { view.Cache(s, doc, a.commandLine("cache prune", planFlags{})) })
	return nil
}

func download(e fetch.Entry) view.Download {
	state := "whole"
	switch {
	case e.Busy:
		state = "downloading"
	case e.SHA256 == "":
		state = "part"
	}
	return view.Download{Key: e.Key, URL: e.URL, SHA256: e.SHA256, Size: e.Size, Since: e.Since.UTC().Truncate(time.Second), State: state}
}

func (a *app) cachePrune(ctx context.Context, keys []string, older time.Duration) error {
	cache, err := a.downloads()
	if err != nil {
		return err
	}
	all, err := cache.List(ctx)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if !slices.ContainsFunc(all, func(e fetch.Entry) bool { return e.Key == key }) {
			return rejected("unknown_download", "remove download "+quoted(key)+": the cache has none of that key",
				"see them: "+a.commandLine("cache list", planFlags{}))
		}
	}
	doc := view.CacheDocument{FormatVersion: view.FormatVersion, Dir: cache.Dir, Downloads: []view.Download{}}
	var failed error
	for _, e := range all {
		if len(keys) > 0 && !slices.Contains(keys, e.Key) || a.env.Now().Sub(e.Since) < older {
			continue
		}
		err := cache.Remove(ctx, e.Key)
		var busy *lockfile.HeldError
		switch {
		case errors.As(err, &busy):
			view.Warning(a.errScreen(), fmt.Sprintf("%s stays: process %d is at work on it", e.URL, busy.Owner.PID))
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("remove download %s: %w", e.Key, err))
		default:
			doc.Downloads = append(doc.Downloads, download(e))
		}
	}
	a.show(doc, func(s view.Screen) { view.Cache(s, doc, "") })
	return failed
}
