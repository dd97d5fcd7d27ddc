/* SPDX-License-Identifier: MIT */
/*
 * How long calls of another process take, by number: counted there while
 * somebody asks for it. (<flexsc/trace.h>)
 */
#ifndef CLI_DURATION_H
#define CLI_DURATION_H

#include <stdint.h>
#include <sys/types.h>

#include <flexsc/trace.h>

/* Of calls between two looks; in ns. */
struct duration {
	uint64_t nr;
	double mean, half, most_99; /* so much or less: half of them, 99 % */
};

/**
 * duration_ask() - let it be counted, for so long from now on
 * @address: of the process's struct flexsc_trace; whatever else is there is left
 *           alone
 */
void duration_ask(pid_t pid, uint64_t address, uint32_t ms);

/**
 * duration_add() - what was counted so far
 * @sum: FLEXSC_TRACE_CALLS of them, to be added to
 */
void duration_add(pid_t pid, uint64_t address, struct flexsc_trace_latency *sum);

/* Of one number, between two of them; @before may be NULL: since the beginning. */
struct duration duration_between(const struct flexsc_trace_latency *before,
			       const struct flexsc_trace_latency *now);

/* "850 ns", "4.2 us", "1.5 s"; empty for none. */
void duration_text(double ns, char text[16]);

/* The upper limit of a bucket, in seconds. */
double duration_limit(unsigned int bucket);

#endif /* CLI_DURATION_H */
