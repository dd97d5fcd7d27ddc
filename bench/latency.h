/* SPDX-License-Identifier: MIT */
/* Latencies in buckets that are 3 % wide, so that any number costs the same. */
#ifndef BENCH_LATENCY_H
#define BENCH_LATENCY_H

#include <stdint.h>

#define LATENCY_STEPS 32 /* for each doubling */
#define LATENCY_BUCKETS (64 * LATENCY_STEPS)

struct latency {
	uint64_t nr, buckets[LATENCY_BUCKETS];
};

void latency_add(struct latency *l, uint64_t ns);
/* @share of all were no slower than this, in us; NAN of none. */
double latency_us(const struct latency *l, double share);

#endif /* BENCH_LATENCY_H */
