/* SPDX-License-Identifier: MIT */
/*
 * Contestants measured in turns (A B C A B C ...), so that what disturbs the
 * machine disturbs all of them; figures are medians of the turns.
 */
#ifndef BENCH_SERIES_H
#define BENCH_SERIES_H

#include "bench/bench.h"

/**
 * struct series - one contestant
 * @name: engine, or name of the rival
 * @once: one measurement; NAN: it cannot be made here
 * @arg:  for @once
 */
struct series {
	const char *name;
	double (*once)(void *arg);
	void *arg;
	unsigned int nr;
	double samples[BENCH_MAX_RUNS];
};

/*
 * Run all of them @runs times in turns. Returns the median of the cache-line
 * round trips measured before each turn.
 */
double series_run(struct series *all, unsigned int nr, unsigned int runs);
double series_median(const struct series *s);
/* (largest - smallest) / median */
double series_spread(const struct series *s);
/* Smallest and largest; 0 both of none. */
void series_range(const struct series *s, double *low, double *high);

/* Sorts @values; NAN of none. */
double median(double *values, unsigned int nr);
/* Sorts @values; mean of the middle half, finer than the clock's steps. */
double middle_mean(double *values, unsigned int nr);

#endif /* BENCH_SERIES_H */
