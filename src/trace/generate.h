/* Agent traces of the shape that recorded Claude Code sessions have, made from a seed: what the project is demonstrated
 * and tested with where the recorded ones are not at hand. The distributions are tables in generate.c. The same options
 * give the same trace on every machine, and session i is the same whatever the number of sessions is. */
#ifndef FC_TRACE_GENERATE_H
#define FC_TRACE_GENERATE_H

#include "trace/trace.h"

/* Scales are factors on what is drawn from the tables; 1 gives the recorded shape. Smaller ones make a trace that fits
 * a demo: 40 sessions, turn_scale 0.3 and token_scale 0.3 give some 800 requests of 20,000 to 40,000 tokens. */
struct fc_generate_opts {
	uint64_t seed;
	uint32_t session_count; /* 1 to 1,000,000; default 40 */
	double turn_scale;      /* requests of a session; 0.001 to 100 */
	double token_scale;     /* every number of tokens, prompts included; 0.001 to 100 */
	double time_scale;      /* times between requests; 0.001 to 100 */
	double branch_share;    /* of requests that change what was before, besides compactions; 0 to 1, default 0.07 */
	double subagent_share;  /* of requests that start a subagent; 0 to 1, default 0.002 */
	uint32_t tool_set_count; /* different tool definitions, of skewed popularity; 1 to 10,000, default 74 */
};

void fc_generate_opts_init(struct fc_generate_opts *opts);

/* A generated trace in memory: what fc_trace_load gives for the files of fc_generate_write. FC_EINVAL names the option.
 */
FC_MUST_USE int fc_trace_generate(const struct fc_generate_opts *generate, const struct fc_trace_opts *opts,
				  struct fc_trace **trace, struct fc_error *error);

/* Writes the sessions in the Claude Code format, as far as the readers need it, to `path`:
 *   ending in .tar, .tar.gz or .tar.zst   one archive of one file a session
 *   ending in .jsonl                      one file, a session a line
 *   "-"                                   standard output, one session a line
 *   another name without an extension,    a folder of one file a session, made with mode 0700; refused unless empty
 *   ending in /, or of a folder
 * Any other extension is refused: it asks for what is not written. A file that is there is refused unless
 * `is_replacing`, and then replaced as a whole or not at all. Files are made with mode 0600. What was begun is removed
 * on failure, except in a folder. */
FC_MUST_USE int fc_generate_write(const struct fc_generate_opts *generate, const char *path, bool is_replacing,
				  struct fc_error *error);

#endif
