/* No cache at all: every request computes its whole input. The bound below which nothing may fall. */
#include "replay/policy.h"

#include <stdlib.h>

static int recompute_load(struct fc_policy *policy, struct fc_policy_turn *turn, struct fc_error *error)
{
	(void)error;
	fc_policy_loaded(policy, turn);
	fc_policy_may_start(policy, turn);
	return FC_OK;
}

static void recompute_start(struct fc_policy *policy, struct fc_policy_turn *turn)
{
	(void)policy;
	(void)turn;
}

static int recompute_save(struct fc_policy *policy, struct fc_policy_turn *turn, struct fc_error *error)
{
	(void)error;
	fc_policy_saved(policy, turn, FC_OK);
	return FC_OK;
}

static void recompute_stats(struct fc_policy *policy, struct fc_policy_stats *stats)
{
	(void)policy;
	*stats = (struct fc_policy_stats){0};
}

static void recompute_close(struct fc_policy *policy)
{
	free(policy);
}

static const struct fc_policy_ops recompute_ops = {
	.load = recompute_load,
	.start = recompute_start,
	.save = recompute_save,
	.end = recompute_start,
	.stats = recompute_stats,
	.close = recompute_close,
};

static int recompute_open(struct fc_policy **policy, const struct fc_policy_env *env, struct fc_error *error)
{
	*policy = calloc(1, sizeof(**policy));
	if (*policy == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for a policy");
	**policy = (struct fc_policy){.ops = &recompute_ops, .env = env};
	return FC_OK;
}

const struct fc_policy_type fc_policy_recompute = {
	.name = "recompute",
	.summary = "no cache: every request computes its whole input",
	.has_no_memory = true,
	.has_no_ssd = true,
	.work = 3,
	.open = recompute_open,
};
