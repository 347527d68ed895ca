/* flatcake-sim: the core in a simulated world, from seeds. docs/testing.md says how to read and use what it prints. */
#include "sim/campaign.h"
#include "sim/plants.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define OPERATIONS_DEFAULT 400u
#define WATCHDOG_S 1800u

static const char usage[] =
	"flatcake-sim runs FlatCake's core in a simulated world: everything that happens follows from a seed.\n\n"
	"usage: flatcake-sim [options]\n\n"
	"  --wired           a daemon and engines that talk to it, instead of one process\n"
	"  --seed N          run one seed [1]\n"
	"  --seeds A..B      run these seeds\n"
	"  --jobs N          processes at once [all cores]\n"
	"  --ops N           operations of a run, before it heals and drains [400]\n"
	"  --fault NAME=P    this fault happens with probability P, whatever the seed says\n"
	"  --no-faults       none happens, but those given by --fault\n"
	"  --list-faults     names, and probabilities where a seed has them\n"
	"  --plant NAME      switch a planted bug on (flatcake-sim-planted only)\n"
	"  --list-plants     their names\n"
	"  --log             print what happens (with --seed)\n"
	"  --help\n\n"
	"Ends with 0 if nothing broke; with 1 and the shortest failing prefix of operations if something did.\n";

enum choice {
	OPTION_WIRED = 1,
	OPTION_SEED,
	OPTION_SEEDS,
	OPTION_JOBS,
	OPTION_OPS,
	OPTION_FAULT,
	OPTION_NO_FAULTS,
	OPTION_LIST_FAULTS,
	OPTION_PLANT,
	OPTION_LIST_PLANTS,
	OPTION_LOG,
	OPTION_HELP
};

static const struct option options[] = {
	{"wired", no_argument, NULL, OPTION_WIRED},
	{"seed", required_argument, NULL, OPTION_SEED},
	{"seeds", required_argument, NULL, OPTION_SEEDS},
	{"jobs", required_argument, NULL, OPTION_JOBS},
	{"ops", required_argument, NULL, OPTION_OPS},
	{"fault", required_argument, NULL, OPTION_FAULT},
	{"no-faults", no_argument, NULL, OPTION_NO_FAULTS},
	{"list-faults", no_argument, NULL, OPTION_LIST_FAULTS},
	{"plant", required_argument, NULL, OPTION_PLANT},
	{"list-plants", no_argument, NULL, OPTION_LIST_PLANTS},
	{"log", no_argument, NULL, OPTION_LOG},
	{"help", no_argument, NULL, OPTION_HELP},
	{0},
};

static int refuse(const char *option, const char *value, const char *allowed)
{
	fprintf(stderr, "flatcake-sim: %s %s: %s\n", option, value, allowed);
	return FC_EINVAL;
}

static int parse_number(const char *option, const char *text, uint64_t minimum, uint64_t maximum, uint64_t *number)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	char allowed[96];
	snprintf(allowed, sizeof(allowed), "a number from %llu to %llu is allowed", (unsigned long long)minimum,
		 (unsigned long long)maximum);
	if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || value < minimum || value > maximum)
		return refuse(option, text, allowed);
	*number = value;
	return FC_OK;
}

static int parse_range(const char *text, struct fc_sim_campaign *campaign)
{
	char first[32];
	const char *dots = strstr(text, "..");
	if (dots == NULL || (size_t)(dots - text) >= sizeof(first))
		return refuse("--seeds", text, "A..B is allowed, A not above B");
	memcpy(first, text, (size_t)(dots - text));
	first[dots - text] = '\0';
	int code = parse_number("--seeds", first, 0, UINT64_MAX / 2, &campaign->first_seed);
	if (code == FC_OK)
		code = parse_number("--seeds", dots + 2, campaign->first_seed, UINT64_MAX / 2, &campaign->last_seed);
	return code;
}

static int list_faults(void)
{
	for (int fault = 0; fault < FC_FAULT_COUNT; fault++)
		printf("%-16s %g\n", fc_sim_fault_name((enum fc_sim_fault)fault),
		       fc_sim_fault_default((enum fc_sim_fault)fault));
	return EXIT_SUCCESS;
}

static int list_plants(void)
{
	for (int plant = 1; fc_sim_plant_name(plant) != NULL; plant++)
		printf("%s\n", fc_sim_plant_name(plant));
	return EXIT_SUCCESS;
}

static void fix_none(struct fc_sim_faults *faults)
{
	for (int fault = 0; fault < FC_FAULT_COUNT; fault++)
		faults->is_fixed[fault] = true;
}

static int parse_option(int option, struct fc_sim_campaign *campaign)
{
	struct fc_error error = {0};
	uint64_t number = 0;
	int code = FC_OK;
	switch (option) {
	case OPTION_WIRED:
		campaign->is_wired = true;
		return FC_OK;
	case OPTION_SEED:
		code = parse_number("--seed", optarg, 0, UINT64_MAX / 2, &number);
		campaign->first_seed = campaign->last_seed = number;
		return code;
	case OPTION_SEEDS:
		return parse_range(optarg, campaign);
	case OPTION_JOBS:
		code = parse_number("--jobs", optarg, 1, 1024, &number);
		campaign->job_count = (unsigned)number;
		return code;
	case OPTION_OPS:
		return parse_number("--ops", optarg, 0, 1000000000, &campaign->operation_count);
	case OPTION_FAULT:
		code = fc_sim_fault_parse(&campaign->faults, optarg, &error);
		if (code != FC_OK)
			fprintf(stderr, "flatcake-sim: %s\n", error.text);
		return code;
	case OPTION_NO_FAULTS:
		fix_none(&campaign->faults);
		return FC_OK;
	case OPTION_PLANT:
		if (fc_sim_plant_choose(optarg))
			return FC_OK;
		return refuse("--plant", optarg, "one of --list-plants is allowed, in flatcake-sim-planted");
	case OPTION_LOG:
		campaign->log = stdout;
		return FC_OK;
	default:
		return FC_EINVAL;
	}
}

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void print_verdict(const struct fc_sim_campaign *campaign, const struct fc_sim_verdict *verdict, double seconds)
{
	const struct fc_sim_counts *counts = &verdict->counts;
	printf("%llu seeds: %llu operations, %llu loads (%llu blocks), %llu saves (%llu blocks), %llu restarts, %llu "
	       "crashes, %llu faults; log digest %016llx; %.0f operations/s\n",
	       (unsigned long long)verdict->seed_count, (unsigned long long)counts->operations,
	       (unsigned long long)counts->loads, (unsigned long long)counts->blocks_delivered,
	       (unsigned long long)counts->saves, (unsigned long long)counts->blocks_saved,
	       (unsigned long long)counts->restarts, (unsigned long long)counts->crashes,
	       (unsigned long long)counts->faults, (unsigned long long)verdict->digest,
	       (double)counts->operations / seconds);
	if (campaign->is_wired)
		printf("%llu connections, %llu engines killed, %llu fences, %llu given up\n",
		       (unsigned long long)counts->connections, (unsigned long long)counts->engine_crashes,
		       (unsigned long long)counts->fences, (unsigned long long)counts->fences_given_up);
	if (!verdict->is_broken) {
		printf("nothing broke\n");
		return;
	}
	printf("BROKEN: seed %llu: %s\nshortest failing prefix: flatcake-sim%s --seed %llu --ops %llu",
	       (unsigned long long)verdict->seed, verdict->text, campaign->is_wired ? " --wired" : "",
	       (unsigned long long)verdict->seed, (unsigned long long)verdict->operation_count);
	for (int fault = 0; fault < FC_FAULT_COUNT; fault++)
		if (campaign->faults.is_fixed[fault])
			printf(" --fault %s=%g", fc_sim_fault_name((enum fc_sim_fault)fault),
			       campaign->faults.probability[fault]);
	printf(" --log\n");
}

int main(int argc, char **argv)
{
	struct fc_sim_campaign campaign = {
		.first_seed = 1, .last_seed = 1, .operation_count = OPERATIONS_DEFAULT, .watchdog_s = WATCHDOG_S};
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	campaign.job_count = cores < 1 ? 1 : (unsigned)cores;
	int option;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == OPTION_HELP) {
			fputs(usage, stdout);
			return EXIT_SUCCESS;
		}
		if (option == OPTION_LIST_FAULTS)
			return list_faults();
		if (option == OPTION_LIST_PLANTS)
			return list_plants();
		if (parse_option(option, &campaign) != FC_OK)
			return EXIT_USAGE;
	}
	if (optind < argc || (campaign.log != NULL && campaign.first_seed != campaign.last_seed)) {
		fprintf(stderr, "flatcake-sim: %s\n",
			optind < argc ? "no argument is expected; see --help" : "--log shows one seed: use --seed");
		return EXIT_USAGE;
	}
	campaign.job_count = (unsigned)fc_min_u64(campaign.job_count, campaign.last_seed - campaign.first_seed + 1);
	struct fc_sim_verdict verdict;
	struct fc_error error = {0};
	double started_s = now_s();
	if (fc_sim_campaign_run(&campaign, &verdict, &error) != FC_OK) {
		fprintf(stderr, "flatcake-sim: %s\n", error.text);
		return EXIT_USAGE;
	}
	print_verdict(&campaign, &verdict, now_s() - started_s);
	return verdict.is_broken ? EXIT_FAILURE : EXIT_SUCCESS;
}
