/* The token that HTTP requests bring: kept as a hash, compared in a time that does not depend on how much is right. */
#ifndef FC_DAEMON_TOKEN_H
#define FC_DAEMON_TOKEN_H

#include "base/error.h"

#define FC_TOKEN_HASH_BYTES 32

struct fc_token {
	bool is_there;
	unsigned char hash[FC_TOKEN_HASH_BYTES];
};

/* Reads a file of one line, 16 to 256 printable characters, that nobody but its owner may open (FC_EINVAL otherwise,
 * also for what is no regular file). FC_ESYSTEM. */
FC_MUST_USE int fc_token_read(struct fc_token *token, const char *path, struct fc_error *error);

/* Whether an Authorization header (NULL: none) brings it: as "Bearer TOKEN", or where `takes_basic`, as the password of
 * Basic authentication with any user. Always false without a token. */
bool fc_token_matches(const struct fc_token *token, const char *authorization, bool takes_basic);

#endif
