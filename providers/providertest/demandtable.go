package providertest

// demands are what the suite asks of a provider.
var demands = []struct {
	name  string
	check func(*stage)
}{
	{"a VM is made, marked, and removed without a trace", life},
	{"observing writes nothing", observing},
	{"doing it again changes nothing and says so", again},
	{"a restart is down, change, up, ready", restart},
	{"an edit of a VM that is off takes no restart", update},
	{"a replacement is another object", replace},
	{"a stop is graceful, and a start follows", stopAndStart},
	{"who ignores a request is forced", deaf},
	{"who must not be forced runs on", unforced},
	{"what ended by itself is seen and started", killed},
	{"a step refuses what differs from the plan", stale},
	{"another's VM of the name is left alone", foreign},
	{"what it holds is claimed", claims},
	{"what cannot be read is alone in that", blind},
	{"steps are pure, total and well formed", pure},
	{"an ended context ends all work", cancelled},
	{"different VMs are changed side by side", concurrent},
}
