/* The loops work on eight words at a time, so that the compiler turns them into vector instructions. */
#include "replay/content.h"

#include "base/random.h"

#include <string.h>

#define WORD_BYTES 8
#define GROUP_WORDS 8
#define GROUP_BYTES (GROUP_WORDS * WORD_BYTES)

struct fc_content fc_content_of(struct fc_key key, uint32_t group, uint32_t layer)
{
	uint64_t state = key.high ^ ((uint64_t)group << 32 | layer);
	uint64_t mixed = fc_random_split(&state) ^ key.low;
	return (struct fc_content){
		.seed = fc_random_split(&mixed),
		.step = fc_random_split(&mixed) | 1,
	};
}

void fc_content_fill(struct fc_content content, uint8_t *slice, uint64_t bytes)
{
	uint64_t word = content.seed;
	uint64_t at = 0;
	for (; at + GROUP_BYTES <= bytes; at += GROUP_BYTES) {
		uint64_t words[GROUP_WORDS];
		for (uint64_t i = 0; i < GROUP_WORDS; i++)
			words[i] = word + i * content.step;
		memcpy(slice + at, words, GROUP_BYTES);
		word += GROUP_WORDS * content.step;
	}
	for (; at + WORD_BYTES <= bytes; at += WORD_BYTES) {
		memcpy(slice + at, &word, WORD_BYTES);
		word += content.step;
	}
	memcpy(slice + at, &word, bytes - at);
}

/* Where a slice that is known to be wrong is wrong first. */
static uint64_t find_wrong(struct fc_content content, const uint8_t *slice, uint64_t bytes)
{
	uint64_t word = content.seed;
	for (uint64_t at = 0; at < bytes; at++) {
		uint8_t wanted;
		memcpy(&wanted, (const uint8_t *)&word + at % WORD_BYTES, 1);
		if (slice[at] != wanted)
			return at;
		if (at % WORD_BYTES == WORD_BYTES - 1)
			word += content.step;
	}
	return FC_CONTENT_RIGHT;
}

uint64_t fc_content_check(struct fc_content content, const uint8_t *slice, uint64_t bytes)
{
	uint64_t word = content.seed;
	uint64_t differences[GROUP_WORDS] = {0};
	uint64_t at = 0;
	for (; at + GROUP_BYTES <= bytes; at += GROUP_BYTES) {
		uint64_t words[GROUP_WORDS];
		memcpy(words, slice + at, GROUP_BYTES);
		for (uint64_t i = 0; i < GROUP_WORDS; i++)
			differences[i] |= words[i] ^ (word + i * content.step);
		word += GROUP_WORDS * content.step;
	}
	for (; at + WORD_BYTES <= bytes; at += WORD_BYTES) {
		uint64_t found;
		memcpy(&found, slice + at, WORD_BYTES);
		differences[0] |= found ^ word;
		word += content.step;
	}
	bool is_right = bytes == at || memcmp(slice + at, &word, bytes - at) == 0;
	for (uint64_t i = 0; i < GROUP_WORDS; i++)
		is_right = is_right && differences[i] == 0;
	return is_right ? FC_CONTENT_RIGHT : find_wrong(content, slice, bytes);
}
