/* SPDX-License-Identifier: MIT */
/* What two looks at a process say, in the forms that `flexsc stat` has. */
#ifndef CLI_STAT_H
#define CLI_STAT_H

#include "cli/duration.h"
#include "cli/observe.h"

#include <stdio.h>

/* Calls of all owners of a process together. */
struct sum {
	uint64_t completed, at_once, parked, cancelled, handed_over, batches,
		batch_calls, threads;
	uint64_t calls[FLEXSC_COUNTERS_CALLS];
	char engine[12]; /* "mixed" if they differ */
};

void stat_sum(const struct look *look, struct sum *sum);

/* User threads by what they do. */
void stat_doings(const struct look *look, unsigned int nr[NR_DOINGS]);
extern const char *const stat_doing_names[NR_DOINGS];

/* Between two looks, a second; 0 if they are of one moment. */
double stat_rate(uint64_t before, uint64_t now, double seconds);

/* How long calls of a number took in between. */
struct duration stat_latency(const struct look *before, const struct look *now,
			    unsigned int nr);

/*
 * Calls of all numbers so far: posted ones, and, of numbers that are never posted,
 * about as many as those whose time was counted let expect.
 */
void stat_calls(const struct look *look, uint64_t calls[FLEXSC_COUNTERS_CALLS]);

/* The carrier of that thread id; NULL: it was not there. */
const struct seen_carrier *stat_carrier(const struct look *look, pid_t tid);

/* "recvfrom(7)", "mutex 0x7f12": what a parked thread waits for. */
void stat_wait(const struct seen_thread *thread, char *text, size_t size);

/* @before may be the same as @now: then there are no rates. */
void stat_print(FILE *out, const struct observed *observed,
		const struct look *before, const struct look *now);
void stat_json(FILE *out, const struct observed *observed,
	       const struct look *before, const struct look *now);
void stat_prometheus(FILE *out, const struct observed *observed,
		     const struct look *now);

#endif /* CLI_STAT_H */
