package nocloud

// kinds are the beginnings by which cloud-init knows what user data is, and the
// content types that stand for them in a message (cloud-init's documentation,
// explanation/format).
var kinds = []struct{ begins, is string }{
	{"#!", "text/x-shellscript"},
	{"#cloud-config-archive", "text/cloud-config-archive"},
	{"#cloud-config-jsonp", "text/cloud-config-jsonp"},
	{cloudConfig, "text/cloud-config"},
	{"#cloud-boothook", "text/cloud-boothook"},
	{"#include-once", "text/x-include-once-url"},
	{"#include", "text/x-include-url"},
	{"#part-handler", "text/part-handler"},
	{"## template: jinja", "text/jinja2"},
}
