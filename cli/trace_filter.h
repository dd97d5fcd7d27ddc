/* SPDX-License-Identifier: MIT */
/* What is asked for, as strace(1) has it: -e trace=SET, -e signal=SET. */
#ifndef CLI_TRACE_FILTER_H
#define CLI_TRACE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include <flexsc/trace.h>

struct trace_filter {
	uint64_t calls[FLEXSC_TRACE_CALLS / 64]; /* a bit a number */
	uint64_t signals; /* bit n - 1: SIGn */
	bool failed, successful; /* only those; both: all */
};

void trace_filter_all(struct trace_filter *filter);

/**
 * trace_filter_parse() - one -e
 * @wrong: takes the word that is not understood
 *
 * Return: false if there is one.
 */
bool trace_filter_parse(struct trace_filter *filter, const char *expression,
			char wrong[64]);

static inline bool trace_filter_has(const struct trace_filter *filter,
				    unsigned int nr)
{
	return nr < FLEXSC_TRACE_CALLS && filter->calls[nr / 64] >> nr % 64 & 1;
}

static inline bool trace_filter_has_signal(const struct trace_filter *filter,
					   unsigned int signal)
{
	return signal - 1 < 64 && filter->signals >> (signal - 1) & 1;
}

#endif /* CLI_TRACE_FILTER_H */
