/* SPDX-License-Identifier: MIT */
/* The table of strace -c: calls, errors, and the time that passed in them. */
#ifndef CLI_TRACE_TABLE_H
#define CLI_TRACE_TABLE_H

#include <stdint.h>
#include <stdio.h>

#include <flexsc/trace.h>

struct trace_count {
	uint64_t calls, errors, ns;
};

/* By number, what was counted since; each may be NULL: nothing was. */
void trace_count_add(struct trace_count count[FLEXSC_TRACE_CALLS],
		     const struct flexsc_trace_latency *before,
		     const struct flexsc_trace_latency *now);

struct trace_table;

struct trace_table *trace_table_new(void); /* NULL without memory: allowed */
void trace_table_free(struct trace_table *table);
/* @begun_ns: 0: not known. */
void trace_table_add(struct trace_table *table,
		     const struct flexsc_trace_record *end, uint64_t begun_ns);
void trace_table_count(struct trace_table *table, unsigned int nr,
		       uint64_t calls, uint64_t errors, uint64_t ns);
void trace_table_print(const struct trace_table *table, FILE *out);

#endif /* CLI_TRACE_TABLE_H */
