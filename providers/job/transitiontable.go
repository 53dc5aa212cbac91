package job

// transitions lists, for each status, those that may follow. A terminal record stays as it is, with
// one exception: the worker of a job that was taken for dead still writes the real result.
var transitions = map[Status][]Status{
	Queued:   {Starting, Failed, Cancelled, Stale},
	Starting: {Running, Failed, Cancelled, Stale},
	Running:  {Completed, Failed, Cancelled, Stale},
	Stale:    {Completed, Failed, Cancelled},
}
