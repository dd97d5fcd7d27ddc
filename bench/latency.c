/* SPDX-License-Identifier: MIT */
/*
 * Counting latencies by their logarithm: the position of the highest bit and
 * the five bits below it.
 */
#include "bench/latency.h"

#include <math.h>

#define STEP_BITS 5

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int top;

	if (ns < LATENCY_STEPS)
		return (unsigned int)ns;
	top = 63 - (unsigned int)__builtin_clzll(ns);
	return (top - STEP_BITS + 1) * LATENCY_STEPS +
	       (unsigned int)((ns >> (top - STEP_BITS)) & (LATENCY_STEPS - 1));
}

/* The middle of a bucket, in ns. */
static double value_of(unsigned int bucket)
{
	unsigned int shift = bucket / LATENCY_STEPS;
	double low = bucket % LATENCY_STEPS;

	if (!shift)
		return low;
	return ldexp(low + LATENCY_STEPS + 0.5, (int)shift - 1);
}

void latency_add(struct latency *l, uint64_t ns)
{
	l->buckets[bucket_of(ns)]++;
	l->nr++;
}

double latency_us(const struct latency *l, double share)
{
	uint64_t seen = 0;

	for (unsigned int i = 0; l->nr && i < LATENCY_BUCKETS; i++) {
		seen += l->buckets[i];
		if ((double)seen >= share * (double)l->nr)
			return value_of(i) / 1000;
	}
	return NAN;
}
