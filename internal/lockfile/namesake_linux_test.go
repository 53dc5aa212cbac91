package lockfile_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"vmctl/internal/lockfile"
)

// Two containers can share a folder, a host name and the numbers of processes: who
// has this one's name and number is waited for all the same.
func TestNamesakeIsNotSelf(t *testing.T) {
	for _, task := range []string{"hold", "share"} {
		t.Run(task, func(t *testing.T) {
			path := lockPath(t)
			cmd := holding(t, task, path)
			record := map[string]string{"hold": path, "share": path + ".seat-0"}[task] + ".owner"
			data, err := os.ReadFile(record)
			if err != nil {
				t.Fatal(err)
			}
			var said map[string]any
			if err := json.Unmarshal(data, &said); err != nil {
				t.Fatal(err)
			}
			me := here()
			said["pid"], said["host"] = me.PID, me.Host
			if data, err = json.Marshal(said); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(record, data, 0o600); err != nil {
				t.Fatal(err)
			}
			var told []lockfile.Owner
			l := acquire(t, lockfile.Request{Path: path, Owner: me, Wait: time.Hour, Waiting: func(o lockfile.Owner) {
				told = append(told, o)
				kill(t, cmd)
			}})
			if len(told) != 1 || told[0].PID != me.PID || told[0].Host != me.Host {
				t.Errorf("waited for %+v, want who has this process's name and number", told)
			}
			release(t, l)
		})
	}
}
