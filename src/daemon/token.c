#include "daemon/token.h"

#include "host/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOKEN_BYTES_MIN 16
#define TOKEN_BYTES_MAX 256

static void hash_token(unsigned char hash[FC_TOKEN_HASH_BYTES], const char *text, size_t len)
{
	crypto_generichash(hash, FC_TOKEN_HASH_BYTES, (const unsigned char *)text, len, NULL, 0);
}

static int check_file(int fd, const char *path, struct fc_error *error)
{
	struct stat status;
	if (fstat(fd, &status) != 0)
		return fc_error_set(error, FC_ESYSTEM, "http_token_file: %s: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return fc_error_set(error, FC_EINVAL, "http_token_file: %s is no regular file", path);
	if ((status.st_mode & 077) != 0)
		return fc_error_set(error, FC_EINVAL,
				    "http_token_file: %s has mode %04o, so others may open it; allowed: 0600 or 0400",
				    path, (unsigned)status.st_mode & 07777);
	int code = fc_private_check_owner(fd, path, error);
	return code == FC_OK ? FC_OK : fc_error_wrap(error, code, "http_token_file");
}

static int take_text(struct fc_token *token, const char *text, size_t len, const char *path, struct fc_error *error)
{
	if (len > 0 && text[len - 1] == '\n')
		len--;
	bool is_right = len >= TOKEN_BYTES_MIN && len <= TOKEN_BYTES_MAX;
	for (size_t at = 0; at < len && is_right; at++)
		is_right = text[at] > ' ' && text[at] < 127;
	if (!is_right)
		return fc_error_set(
			error, FC_EINVAL,
			"http_token_file: %s does not hold one line of %d to %d printable characters without "
			"spaces",
			path, TOKEN_BYTES_MIN, TOKEN_BYTES_MAX);
	hash_token(token->hash, text, len);
	token->is_there = true;
	return FC_OK;
}

int fc_token_read(struct fc_token *token, const char *path, struct fc_error *error)
{
	char text[TOKEN_BYTES_MAX + 2];
	*token = (struct fc_token){.is_there = false};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fc_error_set(error, FC_ESYSTEM, "http_token_file: %s: %s", path, strerror(errno));
	int code = check_file(fd, path, error);
	if (code == FC_OK) {
		ssize_t count = read(fd, text, sizeof(text));
		code = count >= 0 ? take_text(token, text, (size_t)count, path, error)
				  : fc_error_set(error, FC_ESYSTEM, "http_token_file: %s: %s", path, strerror(errno));
		sodium_memzero(text, sizeof(text));
	}
	close(fd);
	return code;
}

static bool is_same(const struct fc_token *token, const char *text, size_t len)
{
	unsigned char hash[FC_TOKEN_HASH_BYTES];
	hash_token(hash, text, len);
	return sodium_memcmp(hash, token->hash, sizeof(hash)) == 0;
}

static bool matches_basic(const struct fc_token *token, const char *encoded)
{
	char decoded[TOKEN_BYTES_MAX + 256];
	size_t len;
	if (sodium_base642bin((unsigned char *)decoded, sizeof(decoded), encoded, strlen(encoded), NULL, &len, NULL,
			      sodium_base64_VARIANT_ORIGINAL) != 0)
		return false;
	const char *colon = memchr(decoded, ':', len);
	bool is_right = colon != NULL && is_same(token, colon + 1, len - (size_t)(colon + 1 - decoded));
	sodium_memzero(decoded, sizeof(decoded));
	return is_right;
}

bool fc_token_matches(const struct fc_token *token, const char *authorization, bool takes_basic)
{
	if (!token->is_there || authorization == NULL)
		return false;
	if (strncasecmp(authorization, "Bearer ", 7) == 0)
		return is_same(token, authorization + 7, strlen(authorization + 7));
	return takes_basic && strncasecmp(authorization, "Basic ", 6) == 0 && matches_basic(token, authorization + 6);
}
