/* One GET of JSON over a plain socket: what `flatcake top` needs to ask a daemon, and no more. */
#ifndef FC_CLI_HTTP_GET_H
#define FC_CLI_HTTP_GET_H

#include "base/error.h"

#include <jansson.h>

struct fc_http_source {
	char host[256], port[8];
	char token[300]; /* "" for none */
};

/* `url` is http://HOST[:PORT], the port 9117 without one; `token_path` a file of one line, or NULL. FC_EINVAL,
 * FC_ESYSTEM. */
FC_MUST_USE int fc_http_source_init(struct fc_http_source *source, const char *url, const char *token_path,
				    struct fc_error *error);

/* The answer to GET `path` as JSON, a new reference. FC_ESYSTEM: nobody listens, or the connection broke. FC_ETIMEOUT
 * after five seconds without a byte. FC_EFORMAT: no HTTP, no JSON, or more than 16 MiB. FC_EINVAL: refused, with the
 * daemon's own sentence. */
FC_MUST_USE int fc_http_get(const struct fc_http_source *source, const char *path, json_t **json,
			    struct fc_error *error);

#endif
