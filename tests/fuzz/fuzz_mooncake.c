/* Mooncake and Bailian requests: one byte of options (trace_input.h), then lines that are spared their braces and
 * names: a line of two to seven words becomes a request with them as timestamp, lengths, ids, session, chat and the
 * chat that it goes on with, as far as they are not "_"; any other line is taken as it stands.
 *
 *     0 40 3 1,2,3          {"timestamp": 0, "input_length": 40, "output_length": 3, "hash_ids": [1,2,3]}
 *     0 40 3 1 _ 7 -1       {"timestamp": 0, ..., "hash_ids": [1], "chat_id": 7, "parent_chat_id": -1}
 *
 * So the fuzzer's time goes into what the numbers mean, not into JSON. */
#include "fuzz/fuzz.h"
#include "fuzz/trace_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 7

static int split(char *line, char *words[WORDS_MAX])
{
	int count = 0;
	char *rest = line;
	for (char *word; (word = strsep(&rest, " ")) != NULL;) {
		if (count == WORDS_MAX)
			return count + 1;
		words[count++] = word;
	}
	return count;
}

static void write_line(FILE *text, const char *line)
{
	static const char *const names[WORDS_MAX] = {"timestamp",  "input_length", "output_length", "hash_ids",
						     "session_id", "chat_id",      "parent_chat_id"};
	char *copy = strdup(line), *words[WORDS_MAX] = {0};
	fuzz_check(copy != NULL, "no memory");
	int count = split(copy, words);
	if (line[0] == '{' || line[0] == '[' || count > WORDS_MAX || count < 2) {
		fprintf(text, "%s\n", line);
	} else {
		const char *before = "{";
		for (int i = 0; i < count; i++) {
			if (strcmp(words[i], "_") == 0)
				continue;
			fprintf(text, i == 3 ? "%s\"%s\": [%s]" : "%s\"%s\": %s", before, names[i], words[i]);
			before = ", ";
		}
		fputs("}\n", text);
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	struct fc_trace_opts opts = fuzz_trace_opts(fuzz_u8(&input));
	char *copy = malloc(input.left + 1), *written = NULL;
	size_t written_bytes = 0;
	FILE *text = open_memstream(&written, &written_bytes);
	fuzz_check(copy != NULL && text != NULL, "no memory");
	if (input.left > 0)
		memcpy(copy, input.bytes, input.left);
	copy[input.left] = '\0';
	char *rest = copy;
	for (char *line; (line = strsep(&rest, "\n")) != NULL;)
		write_line(text, line);
	fuzz_check(fclose(text) == 0, "no memory");
	fuzz_trace_run(&opts, written, written_bytes, true);
	free(written);
	free(copy);
	return 0;
}
