/* SPDX-License-Identifier: MIT */
/* The two halves of benchmark `wsc`. */
#ifndef BENCH_WSC_H
#define BENCH_WSC_H

#include "bench/loops.h"
#include "bench/report.h"

/* Five programs that copy files, calls posted on this loop. */
int wsc_copy(const struct bench_options *options,
	     const struct engine_loop *loop);

#endif /* BENCH_WSC_H */
