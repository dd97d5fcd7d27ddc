/* SPDX-License-Identifier: MIT */
/*
 * Recorded calls in the order in which they happened, in strace(1)'s form: a
 * line for each, two where another thread's came in between; or a table.
 */
#ifndef CLI_TRACE_SHOW_H
#define CLI_TRACE_SHOW_H

#include "cli/trace_filter.h"
#include "cli/trace_source.h"

#include <stdio.h>
#include <sys/types.h>

struct trace_style {
	FILE *out;
	struct trace_filter filter;
	size_t most_bytes; /* -s */
	unsigned int times; /* -t, -tt, -ttt: 1 to 3; 0: none */
	bool relative; /* -r */
	bool spent; /* -T */
	bool table; /* -c, -C */
	bool lines; /* not with -c */
	bool pid_always; /* -f with -o */
	bool in_file; /* -o */
	unsigned int column; /* of the results: -a */
};

struct trace_show;

struct trace_show *trace_show_new(const struct trace_style *style);
void trace_show_free(struct trace_show *show);

/* One record; it is copied. */
void trace_show_take(struct trace_show *show,
		     const struct flexsc_trace_record *record, pid_t pid,
		     pid_t tid);

/* Write down what happened before a moment: of before it, all has come. */
void trace_show_until(struct trace_show *show, uint64_t until_ns);

/*
 * A process has ended, just now; it is said when what came before is written.
 * @status: as wait(2) has it, or TRACE_UNKNOWN_END: what it said itself counts.
 */
void trace_show_gone(struct trace_show *show, pid_t pid, int status);

/* For the table: so many calls of a number, in so much time. */
void trace_show_counted(struct trace_show *show, unsigned int nr,
			uint64_t calls, uint64_t errors, uint64_t ns);

/* All is over: what is not finished, and the table. */
void trace_show_end(struct trace_show *show);

#endif /* CLI_TRACE_SHOW_H */
