#include "cli/closed_store.h"

#include <inttypes.h>
#include <stdio.h>

int fc_closed_store_open(struct fc_inspect **inspect, const struct fc_config *config, struct fc_error *error)
{
	struct fc_probe_opts opts = {
		.dir = config->dir, .ssd_path = config->ssd_path, .memory_path = config->memory_path};
	return fc_inspect_open(inspect, &opts, error);
}

const char *fc_session_text(struct fc_session_id id, char text[FC_SESSION_TEXT_BYTES])
{
	snprintf(text, FC_SESSION_TEXT_BYTES, "%016" PRIx64 "%016" PRIx64, id.high, id.low);
	return text;
}

const char *fc_medium_name(enum fc_medium medium)
{
	return medium == FC_SSD ? "ssd" : "memory";
}
