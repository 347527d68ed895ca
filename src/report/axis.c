#include "report/axis.h"

#include <float.h>
#include <math.h>

#define MARKS_WANTED 6

bool fc_scale_has(const struct fc_scale *scale, double value)
{
	return isfinite(value) && !(scale->is_logarithmic && value <= 0);
}

double fc_scale_place(const struct fc_scale *scale, double value)
{
	if (scale->is_logarithmic)
		return log(value / scale->first) / log(scale->last / scale->first);
	return (value - scale->first) / (scale->last - scale->first);
}

/* 1, 2 or 5 times a power of ten, at least `value`. */
static double round_step(double value)
{
	double power = pow(10, floor(log10(value)));
	double digit = value / power;
	double rounded = digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10;
	return rounded * power;
}

static void set_linear(struct fc_scale *scale, double least, double most)
{
	if (most - least < DBL_EPSILON * fmax(fabs(least), fabs(most)) || most == least) {
		double half = least == 0 ? 1 : fabs(least) / 2;
		most = least + half;
		least = least == 0 ? 0 : least - half;
	}
	double step = round_step((most - least) / MARKS_WANTED);
	scale->first = floor(least / step) * step;
	scale->last = ceil(most / step) * step;
	size_t count = (size_t)llround((scale->last - scale->first) / step) + 1;
	for (size_t i = 0; i < count && scale->mark_count < FC_MARKS_MAX; i++)
		scale->marks[scale->mark_count++] = scale->first + (double)i * step;
}

#define SLIGHTLY 1e-9 /* what rounding may add to a quotient */

/* 1, 2 or 5 times a power of ten: the largest that is no more than `value`, or the smallest that is no less. */
static double round_digit(double value, bool is_up)
{
	static const double digits[] = {1, 2, 5, 10};
	double power = pow(10, floor(log10(value) + SLIGHTLY));
	double digit = value / power;
	for (size_t i = 0; i < 3; i++)
		if (digit < digits[i + 1] * (1 - SLIGHTLY))
			return power * (is_up && digit > digits[i] * (1 + SLIGHTLY) ? digits[i + 1] : digits[i]);
	return 10 * power;
}

/* Ends at powers of ten, with marks there; over at most three of them, ends and marks also at 2 and 5 times. */
static void set_logarithmic(struct fc_scale *scale, double least, double most)
{
	double low = floor(log10(least) + SLIGHTLY), high = fmax(ceil(log10(most) - SLIGHTLY), low + 1);
	double every = ceil((high - low + 1) / FC_MARKS_MAX);
	bool has_between = high - low <= 3;
	scale->first = has_between ? round_digit(least, false) : pow(10, low);
	scale->last = has_between ? round_digit(most, true) : pow(10, high);
	if (scale->last < scale->first * 2 * (1 - SLIGHTLY))
		scale->last = round_digit(scale->first * 2, true);
	for (double power = low; power <= high; power += every) {
		static const double digits[] = {1, 2, 5};
		for (size_t i = 0; i < (has_between ? 3u : 1u) && scale->mark_count < FC_MARKS_MAX; i++) {
			double mark = digits[i] * pow(10, power);
			if (mark >= scale->first * (1 - SLIGHTLY) && mark <= scale->last * (1 + SLIGHTLY))
				scale->marks[scale->mark_count++] = mark;
		}
	}
}

/* Marks at powers of two, of which there may be many: as far apart as MARKS_WANTED says. */
static void set_binary(struct fc_scale *scale, double least, double most)
{
	double low = floor(log2(least)), high = fmax(ceil(log2(most)), low + 1);
	double every = ceil((high - low) / MARKS_WANTED);
	high = low + ceil((high - low) / every) * every;
	scale->first = exp2(low);
	scale->last = exp2(high);
	for (double power = low; power <= high; power += every)
		scale->marks[scale->mark_count++] = exp2(power);
}

void fc_scale_init(struct fc_scale *scale, const struct fc_plot *plot, bool is_x)
{
	const struct fc_axis *axis = is_x ? &plot->x : &plot->y;
	double least = INFINITY, most = -INFINITY;
	*scale = (struct fc_scale){.is_logarithmic = axis->is_logarithmic};
	for (size_t i = 0; i < plot->series_count; i++) {
		const struct fc_plot_series *series = &plot->series[i];
		for (size_t point = 0; point < series->count; point++) {
			double value = is_x ? series->x[point] : series->y[point];
			if (!fc_scale_has(scale, value))
				continue;
			least = fmin(least, value);
			most = fmax(most, value);
		}
	}
	bool is_empty = least > most;
	if (axis->is_logarithmic) {
		void (*set)(struct fc_scale * scale, double least, double most) =
			axis->is_binary ? set_binary : set_logarithmic;
		set(scale, is_empty ? 1 : least, is_empty ? 10 : most);
		return;
	}
	if (is_empty)
		least = 0, most = 1;
	set_linear(scale, axis->is_from_zero ? fmin(least, 0) : least, most);
}
