#include "sim/note.h"

#include <stdarg.h>

static void mix(uint64_t *digest, uint64_t value)
{
	uint64_t mixed = (*digest ^ value) * 0x9e3779b97f4a7c15ull;
	*digest = mixed ^ (mixed >> 29);
}

static void print(const struct fc_sim_notes *notes, const char *format, ...)
{
	va_list values;
	fprintf(notes->log, "%16.6f ms  ", (double)(notes->now_ns % 1000000000000000ull) / 1e6);
	va_start(values, format);
	vfprintf(notes->log, format, values);
	va_end(values);
	fputc('\n', notes->log);
}

void fc_sim_note(struct fc_sim_notes *notes, const char *format, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	notes->line_count++;
	for (const char *at = format; *at != '\0'; at++)
		notes->digest = (notes->digest ^ (uint8_t)*at) * 0x100000001b3ull;
	mix(&notes->digest, notes->now_ns);
	mix(&notes->digest, a);
	mix(&notes->digest, b);
	mix(&notes->digest, c);
	mix(&notes->digest, d);
	if (notes->log != NULL)
		print(notes, format, (unsigned long long)a, (unsigned long long)b, (unsigned long long)c,
		      (unsigned long long)d);
}

void fc_sim_broken(struct fc_sim_notes *notes, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	vsnprintf(notes->broken, sizeof(notes->broken), format, values);
	va_end(values);
	if (notes->log != NULL)
		fprintf(notes->log, "broken: %s\n", notes->broken);
	longjmp(notes->escape, 1);
}
