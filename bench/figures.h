/* SPDX-License-Identifier: MIT */
/* Benchmarks that are a workload run on NPTL and FlexSC-Threads in turns. */
#ifndef BENCH_FIGURES_H
#define BENCH_FIGURES_H

#include "bench/child.h"
#include "bench/series.h"

/**
 * struct figure - one thing that a workload says
 * @key: the name under which it says it
 */
struct figure {
	const char *key, *label, *metric, *unit;
	struct series of[2]; /* by runner */
};

/* Runs @what @options->runs times each and prints a row for each figure. */
void figures_run(const char *bench, const struct bench_options *options,
		 const struct workload *what, struct figure *figures,
		 unsigned int nr);

#endif /* BENCH_FIGURES_H */
