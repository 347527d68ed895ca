/* flatcaked's help and manual page. The options come from the table; tests/daemon/test_settings.c compares
 * packaging/flatcaked.8 with what this prints, and `make man` writes that file anew. */
#include "config/describe.h"
#include "daemon/settings.h"

void fc_daemon_help(FILE *file)
{
	fputs("flatcaked keeps one store of attention KV for all engine processes of a node.\n\n"
	      "usage: flatcaked [options]\n\noptions, with their defaults:\n",
	      file);
	for (size_t row = 0; fc_option_at(row) != NULL; row++)
		if ((fc_option_at(row)->commands & FC_COMMAND_DAEMON) != 0)
			fc_describe_help(fc_option_at(row), file);
	fputs("  --help, --version, --manual\n\n"
	      "Sizes: bytes, or with K, M, G or T (times 1024), such as 4GiB. Durations: 5ms, 30s, 2min.\n"
	      "Each option is also a variable (FLATCAKE_SSD_PATH) and a key of the --config file (ssd_path); that file "
	      "alone\ntakes the list of namespaces.\n",
	      file);
}

static void print_head(FILE *file)
{
	fprintf(file,
		".TH FLATCAKED 8 \"\" \"FlatCake %d.%d.%d\" \"System Administration\"\n"
		".SH NAME\nflatcaked \\- one store of attention KV for all engine processes of a node\n"
		".SH SYNOPSIS\n.B flatcaked\n[\\fIoptions\\fR]\n"
		".SH DESCRIPTION\n"
		"flatcaked owns the arenas in memory and on SSD and tells engine processes where blocks lie. The data "
		"itself "
		"never\npasses through it: clients map the memory arena, read the SSD arena through a descriptor of "
		"their own, and "
		"write\nonly what was reserved for them. Clients open the address unix:\\fIPATH\\fR of its socket "
		"instead of "
		"dir:\\fIPATH\\fR.\n.P\n"
		"It runs in the foreground, tells the service manager when it is ready (sd_notify), and logs to "
		"standard error or\n"
		"journald. SIGTERM and SIGINT drain it: nothing new is reserved, what is open may commit until the "
		"drain timeout,\n"
		"and everything committed is made durable.\n",
		FC_VERSION_MAJOR, FC_VERSION_MINOR, FC_VERSION_PATCH);
}

static void print_namespaces(FILE *file)
{
	fputs(".SH NAMESPACES\n"
	      "Namespaces keep tenants apart: none can name, find or evict what belongs to another. They stand in the "
	      "file as a list;\nwithout it every name is taken as it comes. Of a list, a client that names none gets "
	      "the "
	      "entry\n.IR default .\n"
	      "The keys of an entry are:\n",
	      file);
	for (size_t row = 0; fc_config_namespace_option(row) != NULL; row++)
		fc_describe_manual(fc_config_namespace_option(row), FC_SPELLING_KEY, file);
	fputs(".P\nFor example:\n.P\n.nf\nnamespaces:\n  \\- name: team\\-a\n    uid: 1001\n    quota: 100GiB\n.fi\n",
	      file);
}

static void print_http(FILE *file)
{
	fputs(".SH HTTP\n"
	      ".TP\n.B GET /\nstatus page.\n"
	      ".TP\n.B GET /metrics\nfor Prometheus.\n"
	      ".TP\n.B GET /healthz\nthe process lives; which arena does not answer.\n"
	      ".TP\n.B GET /readyz\nclients are served in full; 503 with the reason otherwise, an arena that does not "
	      "answer among them.\n"
	      ".TP\n.B GET /v1/status, /v1/clients, /v1/namespaces, /v1/sessions?limit=&cursor=, /v1/map\nJSON.\n"
	      ".TP\n.B DELETE /v1/sessions/ID\nevicts a session and what stands on it. Needs the token.\n"
	      ".TP\n.B POST /v1/drain\nas SIGTERM. Needs the token.\n"
	      ".P\nThe token is sent as \\fIAuthorization: Bearer TOKEN\\fR.\n",
	      file);
}

void fc_daemon_manual(FILE *file)
{
	print_head(file);
	fputs(".SH OPTIONS\n", file);
	for (size_t row = 0; fc_option_at(row) != NULL; row++)
		if ((fc_option_at(row)->commands & FC_COMMAND_DAEMON) != 0)
			fc_describe_manual(fc_option_at(row), FC_SPELLING_FLAG, file);
	fputs(".TP\n\\fB\\-\\-help\\fR, \\fB\\-\\-version\\fR, \\fB\\-\\-manual\\fR\nPrint that and exit.\n", file);
	fc_describe_settings(FC_COMMAND_DAEMON, file);
	print_namespaces(file);
	print_http(file);
	fputs(".SH FILES\n"
	      ".TP\n.I /etc/flatcake/flatcaked.yaml\nsettings of the service.\n"
	      ".TP\n.I /var/lib/flatcake\nthe SSD arena, and the file whose locks tell which clients may still write.\n"
	      ".TP\n.I /dev/shm/flatcake\nthe memory arena, which outlives the daemon.\n"
	      ".TP\n.I /run/flatcake/flatcaked.sock\nthe socket.\n"
	      ".SH EXIT STATUS\n0: stopped as asked. 1: it failed; the log says why. 2: the call or the settings were "
	      "wrong.\n"
	      ".SH SEE ALSO\n.BR flatcake (1)\n",
	      file);
}
