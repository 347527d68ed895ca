/* Differences of less than LEVEL_POINTS of the delivered prefix and of AHEAD in times are not called differences. */
#include "replay/simulation_words.h"

#include "cli/table.h"
#include "replay/simulation_numbers.h"
#include "report/page.h"

#define LEVEL_POINTS 0.005
#define LEVEL_TIME 1.05
#define AHEAD 0.99

struct words {
	struct fc_simulation_shape shape;
	struct fc_page *page;
	const struct fc_simulated *flat; /* of shape.last */
};

static void finish(struct words *words, const char *about, struct fc_page *sentence)
{
	if (sentence->is_out_of_memory)
		words->page->is_out_of_memory = true;
	else if (sentence->length > 0)
		fc_page_add_words(words->page, about, sentence->bytes);
	fc_page_deinit(sentence);
}

void fc_simulation_point(const struct fc_simulation *simulation, char text[FC_POINT_BYTES])
{
	const struct fc_simulated *last = fc_simulation_shape(simulation).last;
	char memory[FC_HUMAN_BYTES], rate[FC_HUMAN_BYTES] = "as fast as they are taken";
	if (last->config->speed > 0)
		snprintf(rate, sizeof(rate), "at %g x the trace's pace", last->config->speed);
	else if (isfinite(last->rate_per_s))
		snprintf(rate, sizeof(rate), "at %g requests/s", last->rate_per_s);
	snprintf(text, FC_POINT_BYTES, "%s with %s of DRAM", rate, fc_human_bytes(last->memory_bytes, memory));
}

bool fc_simulation_is_level(const struct fc_outcome *outcome, const struct fc_outcome *flat)
{
	return fc_run_of_input(outcome) >= fc_run_of_input(flat) - LEVEL_POINTS &&
	       fc_run_ttft_mean_s(outcome) <= LEVEL_TIME * fc_run_ttft_mean_s(flat);
}

/* Somebody else's cache that has ended. */
static bool is_alternative(const struct fc_simulated *run)
{
	return fc_run_has_ended(run) && !fc_policy_is_flat(run->policy) && !fc_policy_is_variant(run->policy) &&
	       strcmp(run->policy->name, "infinite-dram") != 0;
}

static const struct fc_simulated *find(const struct words *words, const char *name)
{
	for (size_t i = 0; i < words->shape.policy_count; i++)
		if (strcmp(words->shape.last[i].policy->name, name) == 0 && fc_run_has_ended(&words->shape.last[i]))
			return &words->shape.last[i];
	return NULL;
}

static void begin_item(struct fc_page *sentence, bool *has_items, const char *opening)
{
	fc_page_add(sentence, "%s", *has_items ? ", " : opening);
	*has_items = true;
}

/* Who brings less than flat; that nobody does is said only where somebody else ran. */
static void add_who_brings_less(const struct words *words, double own, struct fc_page *sentence)
{
	char text[FC_HUMAN_BYTES];
	bool has_items = false, has_others = false;
	for (size_t i = 0; i < words->shape.policy_count; i++) {
		const struct fc_simulated *run = &words->shape.last[i];
		if (!is_alternative(run))
			continue;
		has_others = true;
		if (fc_run_of_input(run->outcome) >= own - LEVEL_POINTS)
			continue;
		begin_item(sentence, &has_items, " Less is brought by ");
		fc_print_share(text, sizeof(text), fc_run_of_input(run->outcome));
		fc_page_add(sentence, "%s (%s)", run->policy->name, text);
	}
	if (has_items)
		fc_page_add(sentence, ".");
	else if (has_others)
		fc_page_add(sentence, " No other that ran brings less by more than half a point.");
}

static void say_delivered(struct words *words)
{
	struct fc_page sentence = {0};
	char text[FC_HUMAN_BYTES];
	double own = fc_run_of_input(words->flat->outcome);
	if (words->flat->outcome->possible_blocks == 0) {
		fc_page_add(&sentence, "Nothing: no prompt begins with blocks that were there before.");
	} else {
		fc_print_share(text, sizeof(text), own);
		fc_page_add(&sentence, "flat brings %s of the input's blocks from the cache", text);
		fc_print_share(text, sizeof(text), fc_run_of_possible(words->flat->outcome));
		fc_page_add(&sentence, ", which is %s of what any cache could have had.", text);
		add_who_brings_less(words, own, &sentence);
	}
	finish(words, "Delivered in time.", &sentence);
}

static void say_ttft(struct words *words)
{
	struct fc_page sentence = {0};
	char text[FC_HUMAN_BYTES];
	bool has_items = false;
	double own = fc_run_ttft_mean_s(words->flat->outcome);
	const struct fc_simulated *bound = find(words, "infinite-dram");
	fc_print_seconds(text, sizeof(text), own);
	fc_page_add(&sentence, "%s with flat", text);
	if (bound != NULL) {
		fc_print_seconds(text, sizeof(text), fc_run_ttft_mean_s(bound->outcome));
		fc_page_add(&sentence, "; it would be %s if DRAM held everything", text);
	}
	fc_page_add(&sentence, ".");
	for (size_t i = 0; i < words->shape.policy_count && own > 0; i++) {
		const struct fc_simulated *run = &words->shape.last[i];
		if (!is_alternative(run))
			continue;
		begin_item(&sentence, &has_items, " Others need, as a multiple of that: ");
		double times = fc_run_ttft_mean_s(run->outcome) / own;
		fc_page_add(&sentence, "%s %.*f", run->policy->name, times < 10 ? 2 : 0, times);
	}
	fc_page_add(&sentence, has_items ? "." : "");
	finish(words, "Time to first token, mean.", &sentence);
}

/* One figure in which a policy is ahead of flat. */
static void add_lead(struct fc_page *leads, const char *what, double theirs, double own,
		     void (*print)(char *string, size_t bytes, double value))
{
	char text[FC_HUMAN_BYTES], own_text[FC_HUMAN_BYTES];
	print(text, sizeof(text), theirs);
	print(own_text, sizeof(own_text), own);
	fc_page_add(leads, "%s%s %s against %s", leads->length > 0 ? ", " : "", what, text, own_text);
}

static void find_leads(struct fc_page *leads, const struct fc_outcome *outcome, const struct fc_outcome *flat)
{
	double share = fc_run_of_input(outcome), own_share = fc_run_of_input(flat);
	double mean = fc_run_ttft_mean_s(outcome), own_mean = fc_run_ttft_mean_s(flat);
	double p99 = fc_run_ttft_p99_s(outcome), own_p99 = fc_run_ttft_p99_s(flat);
	if (share > own_share + LEVEL_POINTS)
		add_lead(leads, "delivered", share, own_share, fc_print_share);
	if (mean < AHEAD * own_mean)
		add_lead(leads, "mean", mean, own_mean, fc_print_seconds);
	if (p99 < AHEAD * own_p99)
		add_lead(leads, "99th percentile", p99, own_p99, fc_print_seconds);
}

static void say_where_behind(struct words *words)
{
	struct fc_page sentence = {0};
	bool has_items = false, has_others = false;
	for (size_t i = 0; i < words->shape.policy_count; i++) {
		const struct fc_simulated *run = &words->shape.last[i];
		struct fc_page leads = {0};
		if (!is_alternative(run))
			continue;
		has_others = true;
		find_leads(&leads, run->outcome, words->flat->outcome);
		if (leads.length > 0) {
			begin_item(&sentence, &has_items, "");
			fc_page_add(&sentence, "%s (%s)", run->policy->name, leads.bytes);
		}
		fc_page_deinit(&leads);
	}
	if (has_items)
		fc_page_add(&sentence, ".");
	else if (has_others)
		fc_page_add(&sentence, "Nowhere among these: not in the delivered share, the mean, or the 99th "
				       "percentile of the time to first token.");
	finish(words, "Where others are ahead of flat.", &sentence);
}

static void say_load(struct words *words)
{
	struct fc_page sentence = {0};
	char low[FC_HUMAN_BYTES], high[FC_HUMAN_BYTES], about[96];
	bool has_items = false;
	const struct fc_simulation_shape *shape = &words->shape;
	const struct fc_simulated *first = shape->last - (shape->rate_count - 1) * shape->policy_count;
	if (shape->rate_count < 2 || !isfinite(first->rate_per_s) || !isfinite(shape->last->rate_per_s))
		return;
	snprintf(about, sizeof(about), "The mean, from %g to %g requests/s.", first->rate_per_s,
		 shape->last->rate_per_s);
	for (size_t i = 0; i < shape->policy_count; i++) {
		const struct fc_simulated *run = &shape->last[i];
		if (!fc_run_has_ended(&first[i]) || !(is_alternative(run) || run == words->flat))
			continue;
		fc_print_seconds(low, sizeof(low), fc_run_ttft_mean_s(first[i].outcome));
		fc_print_seconds(high, sizeof(high), fc_run_ttft_mean_s(run->outcome));
		begin_item(&sentence, &has_items, "");
		fc_page_add(&sentence, "%s %s to %s", run->policy->name, low, high);
	}
	fc_page_add(&sentence, ".");
	finish(words, about, &sentence);
}

/* The least DRAM from which on a policy is level with flat; 0: with none that was simulated. */
static uint64_t crossover_bytes(const struct words *words, size_t policy)
{
	const struct fc_simulation_shape *shape = &words->shape;
	size_t stride = shape->policy_count * shape->rate_count, flat = (size_t)(words->flat - shape->last);
	uint64_t least = 0, behind_most = 0;
	for (size_t i = 0; i < shape->memory_count; i++) {
		const struct fc_simulated *runs = shape->last - i * stride;
		bool is_level = fc_run_has_ended(&runs[policy]) && fc_run_has_ended(&runs[flat]) &&
				fc_simulation_is_level(runs[policy].outcome, runs[flat].outcome);
		if (!is_level)
			behind_most = fc_max_u64(behind_most, runs->memory_bytes);
	}
	for (size_t i = 0; i < shape->memory_count; i++) {
		uint64_t bytes = (shape->last - i * stride)->memory_bytes;
		if (bytes > behind_most && (least == 0 || bytes < least))
			least = bytes;
	}
	return least;
}

static void say_crossover(struct words *words)
{
	struct fc_page sentence = {0};
	char text[FC_HUMAN_BYTES];
	bool has_items = false;
	for (size_t i = 0; i < words->shape.policy_count && words->shape.memory_count > 1; i++) {
		const struct fc_simulated *run = &words->shape.last[i];
		if (!is_alternative(run) || strcmp(run->policy->name, "recompute") == 0)
			continue;
		uint64_t bytes = crossover_bytes(words, i);
		begin_item(&sentence, &has_items, "");
		fc_page_add(&sentence, "%s %s", run->policy->name,
			    bytes > 0 ? fc_human_bytes(bytes, text) : "with no amount shown");
	}
	if (has_items)
		fc_page_add(&sentence, ". Level: a mean at most 5 %% longer, and at most half a point less delivered.");
	finish(words, "DRAM from which on others are level with flat.", &sentence);
}

static void say_mechanisms(struct words *words)
{
	struct fc_page sentence = {0};
	bool has_items = false;
	double own = fc_run_ttft_mean_s(words->flat->outcome);
	for (size_t i = 0; i < words->shape.policy_count && own > 0; i++) {
		const struct fc_simulated *run = &words->shape.last[i];
		if (!fc_policy_is_variant(run->policy) || !fc_run_has_ended(run))
			continue;
		begin_item(&sentence, &has_items, "");
		double change = 100 * (fc_run_ttft_mean_s(run->outcome) / own - 1);
		fc_page_add(&sentence, fabs(change) < 0.05 ? "%s no change" : "%s %+.1f %%", run->policy->name, change);
	}
	fc_page_add(&sentence, has_items ? "." : "");
	finish(words, "The mean without one mechanism.", &sentence);
}

void fc_simulation_add_words(const struct fc_simulation *simulation, struct fc_page *page)
{
	struct words words = {.shape = fc_simulation_shape(simulation), .page = page};
	words.flat = find(&words, "flat");
	if (words.flat == NULL || words.flat->outcome->requests == 0)
		return;
	say_delivered(&words);
	say_ttft(&words);
	say_where_behind(&words);
	say_load(&words);
	say_crossover(&words);
	say_mechanisms(&words);
}
