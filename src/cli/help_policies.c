/* What `flatcake help policies` prints: the registry of policies, with what --set takes for each. */
#include "cli/given.h"
#include "cli/help.h"
#include "config/describe.h"
#include "replay/policy.h"

#define INDENT 4

static void print_setting(const struct fc_policy_type *policy, const struct fc_option *setting, FILE *file)
{
	struct fc_page line = {0};
	char allowed[256];
	fc_option_describe(setting, allowed, sizeof(allowed));
	fc_page_add(&line, "%s.%s: %s [", policy->name, setting->name, allowed);
	fc_given_add_value(&line, setting, (const char *)policy->defaults + setting->field_offset);
	fc_page_add(&line, "]");
	fc_describe_wrapped(line.is_out_of_memory ? "no memory" : line.bytes, INDENT, 0, file);
	fc_page_deinit(&line);
}

void fc_help_policies(FILE *file)
{
	fputs("What --policy of `flatcake replay --simulate` takes, and --set for each: allowed values [default].\n",
	      file);
	for (size_t i = 0; fc_policy_at(i) != NULL; i++) {
		const struct fc_policy_type *policy = fc_policy_at(i);
		fprintf(file, "\n%s\n  %s\n", policy->name, policy->summary);
		for (size_t j = 0; j < policy->settings_count; j++)
			print_setting(policy, &policy->settings[j], file);
	}
}
