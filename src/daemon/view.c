/* The words for states, reasons and media, one spelling for metrics, JSON and logs. */
#include "daemon/view.h"

#include "base/check.h"

const char *fc_daemon_state_text(enum fc_daemon_state state)
{
	static const char *const texts[FC_DAEMON_STATE_COUNT] = {
		[FC_DAEMON_OPENING] = "opening",
		[FC_DAEMON_FENCING] = "fencing",
		[FC_DAEMON_READY] = "ready",
		[FC_DAEMON_DRAINING] = "draining",
	};
	fc_check((unsigned)state < FC_DAEMON_STATE_COUNT);
	return texts[state];
}

const char *fc_refusal_text(enum fc_refusal refusal)
{
	static const char *const texts[FC_REFUSAL_COUNT] = {
		[FC_REFUSAL_PROTOCOL] = "protocol",     [FC_REFUSAL_GEOMETRY] = "geometry",
		[FC_REFUSAL_NAMESPACE] = "namespace",   [FC_REFUSAL_CLIENT_LIMIT] = "client_limit",
		[FC_REFUSAL_HELD_LIMIT] = "held_limit", [FC_REFUSAL_UNSENT] = "unsent",
		[FC_REFUSAL_LEASE] = "lease",           [FC_REFUSAL_STATE] = "state",
		[FC_REFUSAL_MEMORY] = "memory",
	};
	fc_check((unsigned)refusal < FC_REFUSAL_COUNT);
	return texts[refusal];
}

const char *fc_medium_text(enum fc_medium medium)
{
	fc_check(medium == FC_MEMORY || medium == FC_SSD);
	return medium == FC_MEMORY ? "memory" : "ssd";
}
