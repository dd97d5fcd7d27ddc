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
 *
 * Return: for how many ms it will be: another observer may have asked for longer.
 */
uint32_t duration_ask(pid_t pid, uint64_t address, uint32_t ms);

/*
 * Taking the time costs the process some 200 ns a call. So where it makes many
 * calls they are timed in a part of the time only, some thousand a second.
 */
struct duration_share {
	uint64_t at_ns, until_ns; /* of the last asking; 0: there was none */
	uint64_t posted; /* then */
	unsigned int in_vain; /* askings in a row by which nothing was timed */
	uint64_t timed[FLEXSC_TRACE_CALLS]; /* so far, by number */
	uint64_t made[FLEXSC_TRACE_CALLS]; /* what that lets expect of all */
};

/**
 * duration_share() - note what was counted since the last asking
 * @posted: calls that were posted so far, whether timed or not
 * @interval_ms: so long until the next one
 * @most_ms: ask for so long if calls are few
 *
 * Return: for how many ms to ask now.
 */
uint32_t duration_share(struct duration_share *share, uint64_t now_ns,
			const struct flexsc_trace_latency *sum, uint64_t posted,
			uint32_t interval_ms, uint32_t most_ms);

/**
 * duration_add() - what was counted so far
 * @sum: FLEXSC_TRACE_CALLS of them, to be added to
 */
void duration_add(pid_t pid, uint64_t address,
		  struct flexsc_trace_latency *sum);

/* Of one number, between two of them; @before may be NULL: since the beginning. */
struct duration duration_between(const struct flexsc_trace_latency *before,
				 const struct flexsc_trace_latency *now);

/* "850 ns", "4.2 us", "1.5 s"; empty for none. */
void duration_text(double ns, char text[16]);

/* The upper limit of a bucket, in seconds. */
double duration_limit(unsigned int bucket);

#endif /* CLI_DURATION_H */
