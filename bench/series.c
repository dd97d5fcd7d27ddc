/* SPDX-License-Identifier: MIT */
/*
 * Taking turns, medians and spreads. Knows nothing of what is measured.
 */
#include "bench/series.h"

#include "bench/machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double median(double *values, unsigned int nr)
{
	if (!nr)
		return NAN;
	qsort(values, nr, sizeof(*values), compare);
	return nr % 2 ? values[nr / 2] :
			(values[nr / 2 - 1] + values[nr / 2]) / 2;
}

double middle_mean(double *values, unsigned int nr)
{
	unsigned int cut = nr / 4;
	double sum = 0;

	if (!nr)
		return NAN;
	qsort(values, nr, sizeof(*values), compare);
	for (unsigned int i = cut; i < nr - cut; i++)
		sum += values[i];
	return sum / (nr - 2 * cut);
}

double series_run(struct series *all, unsigned int nr, unsigned int runs)
{
	double trips[BENCH_MAX_RUNS];

	for (unsigned int run = 0; run < runs; run++) {
		trips[run] = cost_roundtrip_ns();
		for (unsigned int i = 0; i < nr; i++) {
			double value = all[i].once(all[i].arg);

			if (!isnan(value))
				all[i].samples[all[i].nr++] = value;
		}
	}
	return median(trips, runs);
}

double series_median(const struct series *s)
{
	double sorted[BENCH_MAX_RUNS];

	memcpy(sorted, s->samples, s->nr * sizeof(*sorted));
	return median(sorted, s->nr);
}

void series_range(const struct series *s, double *low, double *high)
{
	*low = *high = s->nr ? s->samples[0] : 0;
	for (unsigned int i = 1; i < s->nr; i++) {
		*low = fmin(*low, s->samples[i]);
		*high = fmax(*high, s->samples[i]);
	}
}

double series_spread(const struct series *s)
{
	double low, high, middle = series_median(s);

	series_range(s, &low, &high);
	return s->nr && middle != 0 ? (high - low) / middle : 0;
}
