/* SPDX-License-Identifier: MIT */
/*
 * What a process has done on FlexSC-Threads, as one line of JSON: counters of
 * queues, of goings home by reason, and the threads that there are, with what
 * they wait for and for how long.
 */
#ifndef FX_THREADS_STATS_H
#define FX_THREADS_STATS_H

#include <stdio.h>

/* Write the line. Any thread, not in a signal handler. */
void fx_stats_write(FILE *out);

/*
 * At the end of the process: append it to the file that FLEXSC_STATS names.
 * Processes that were made by this one append theirs.
 */
void fx_stats_at_exit(void);

#endif /* FX_THREADS_STATS_H */
