/* SPDX-License-Identifier: MIT */
/*
 * Where recorded calls come from: processes that are attached to, by reading
 * their memory; and processes that were started for it, which write into a file
 * of ours, by themselves. (<flexsc/trace.h>)
 */
#ifndef CLI_TRACE_SOURCE_H
#define CLI_TRACE_SOURCE_H

#include "cli/trace_table.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <flexsc/trace.h>

/* What is asked for. */
struct trace_wish {
	uint64_t calls[FLEXSC_TRACE_CALLS / 64];
	uint32_t bytes;
	uint32_t follow; /* children, too */
	bool count; /* calls, and no records of them */
};

struct trace_sources;

struct trace_sources *trace_sources_new(const struct trace_wish *wish);
void trace_sources_free(struct trace_sources *sources);

/**
 * trace_sources_attach() - a process
 * Return: 0; 1: it has nothing to show yet, and is looked at again; -ESRCH,
 * -EPERM, -ENOMEM.
 */
int trace_sources_attach(struct trace_sources *sources, pid_t pid);

/**
 * trace_sources_offer() - make the file, for a process that will be started
 * @variable: takes the value of FLEXSC_TRACE
 */
int trace_sources_offer(struct trace_sources *sources, char variable[64]);
/* Make it for those that are attached to: what they recorded last is in it. */
void trace_sources_share(struct trace_sources *sources);
/* In that process, before it executes anything. */
void trace_sources_mine(struct trace_sources *sources);
/* And to who started it: it may have ended before it is seen. */
void trace_sources_started(struct trace_sources *sources, pid_t pid);

/* A record, whose thread is known here by @tid, of process @pid. */
typedef void trace_see(const struct flexsc_trace_record *record, pid_t pid,
		       pid_t tid, void *arg);

/* A process has ended. @status: as wait(2) has it, or TRACE_UNKNOWN_END. */
typedef void trace_gone(pid_t pid, int status, void *arg);
#define TRACE_UNKNOWN_END (-1)

/**
 * trace_sources_read() - all records since the last time
 *
 * Asks again for what is wished, too, when that is due. Those of before @until
 * that are not here by now come never.
 *
 * Return: how many of the processes live.
 */
unsigned int trace_sources_read(struct trace_sources *sources, trace_see *see,
				trace_gone *gone, void *arg);

/* What was counted so far, by number. */
void trace_sources_counts(struct trace_sources *sources,
			  struct trace_count count[FLEXSC_TRACE_CALLS]);
/* Records that were lost so far, and times that nobody looked for too long. */
uint64_t trace_sources_lost(struct trace_sources *sources);
uint64_t trace_sources_lapses(struct trace_sources *sources);
/* Has any process shown itself at all? */
bool trace_sources_any(const struct trace_sources *sources);

#endif /* CLI_TRACE_SOURCE_H */
