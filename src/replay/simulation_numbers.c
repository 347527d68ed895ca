#include "replay/simulation_numbers.h"

#include "cli/table.h"

#define NS_PER_S 1e9

struct fc_simulation_shape fc_simulation_shape(const struct fc_simulation *simulation)
{
	return (struct fc_simulation_shape){
		.policy_count = simulation->policy_count,
		.rate_count = simulation->rate_count,
		.memory_count = simulation->run_count / simulation->policy_count / simulation->rate_count,
		.last = simulation->runs + simulation->run_count - simulation->policy_count,
	};
}

static double share(double part, double whole)
{
	return whole > 0 ? part / whole : NAN;
}

double fc_run_of_input(const struct fc_outcome *outcome)
{
	return share((double)outcome->delivered_blocks, (double)outcome->blocks);
}

double fc_run_of_possible(const struct fc_outcome *outcome)
{
	return share((double)outcome->delivered_blocks, (double)outcome->possible_blocks);
}

double fc_run_mean_s(const struct fc_histogram *histogram)
{
	double mean;
	return fc_histogram_mean(histogram, &mean) ? mean / NS_PER_S : NAN;
}

double fc_run_percentile_s(const struct fc_histogram *histogram, double percent)
{
	uint64_t value;
	return fc_histogram_percentile(histogram, percent, &value) ? (double)value / NS_PER_S : NAN;
}

double fc_run_ttft_mean_s(const struct fc_outcome *outcome)
{
	return fc_run_mean_s(&outcome->ttft);
}

double fc_run_ttft_p99_s(const struct fc_outcome *outcome)
{
	return fc_run_percentile_s(&outcome->ttft, 99);
}

void fc_print_seconds(char *string, size_t bytes, double value)
{
	char text[FC_HUMAN_BYTES];
	if (!isfinite(value))
		snprintf(string, bytes, "n/a");
	else
		snprintf(string, bytes, "%s",
			 value <= 0 ? "0 s" : fc_human_ns((uint64_t)llround(value * NS_PER_S), text));
}

void fc_print_share(char *string, size_t bytes, double value)
{
	snprintf(string, bytes, isfinite(value) ? "%.2f %%" : "n/a", 100 * value);
}

void fc_print_axis_seconds(char *string, size_t bytes, double value)
{
	static const char *const units[] = {"s", "ms", "us", "ns"};
	size_t unit = 0;
	while (unit < 3 && value > 0 && value < 0.9999) {
		value *= 1000;
		unit++;
	}
	snprintf(string, bytes, "%.4g %s", value, units[unit]);
}
