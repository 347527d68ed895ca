/* What the commands share that look at a store which nobody uses. */
#ifndef FC_CLI_CLOSED_STORE_H
#define FC_CLI_CLOSED_STORE_H

#include "config/config.h"
#include "store/inspect.h"

/* Opens the store that the settings name, for reading only. */
int fc_closed_store_open(struct fc_inspect **inspect, const struct fc_config *config,
			 struct fc_error *error) FC_MUST_USE;

#define FC_SESSION_TEXT_BYTES 33

/* 32 hexadecimal digits; `text` is returned, so that it fits into a call. */
const char *fc_session_text(struct fc_session_id id, char text[FC_SESSION_TEXT_BYTES]);

/* "memory", "ssd" */
const char *fc_medium_name(enum fc_medium medium);

#endif
