/* SPDX-License-Identifier: MIT */
/*
 * Looks at another process that uses FlexSC, from outside: its memory is read,
 * the process does nothing and never waits for it. What is read may change
 * meanwhile; a look is of about one moment, and whatever does not fit together
 * is left out of it. (<flexsc/observe.h>, <flexsc/counters.h>)
 */
#ifndef CLI_OBSERVE_H
#define CLI_OBSERVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <flexsc/counters.h>
#include <flexsc/observe.h>
#include <flexsc/trace.h>
#include <linux/flexsc.h>

/* What a user thread is doing. */
enum doing {
	DOING_RUNS, /* on a carrier */
	DOING_READY,
	DOING_PARKED,
	DOING_HOME, /* runs, or waits, on its own kernel thread */
	DOING_NOTHING, /* has ended; kept for the next creation */
	NR_DOINGS
};

struct seen_thread {
	uint64_t record; /* its address there */
	pid_t tid; /* as the observer sees it; 0: not known here */
	char name[16];
	enum doing doing;
	bool at_home; /* parked, on its own kernel thread */
	char where[24]; /* parked: for what; or empty */
	uint32_t for_ms; /* parked: how long */
	uint64_t on; /* parked: the object; 0: none, or a call */
	bool has_call;
	struct flexsc_entry call; /* parked for it */
	const char *stays; /* why it never leaves home, or NULL */
	uint64_t cpu_ns;
};

struct seen_queue {
	int cpu;
	bool sleeps, rests;
	uint64_t ready; /* user threads that could run */
	int carrier; /* index, or -1 */
	uint64_t *counts; /* as many as names */
	uint64_t calls_address; /* of struct flexsc_counters */
};

struct seen_carrier {
	pid_t tid;
	int queue; /* index, or -1: spare */
	bool lost;
	uint32_t switches;
	char state; /* of its kernel thread: R, S, D ... as in proc(5) */
	uint64_t cpu_ns;
};

/* Calls of one owner: a loop of libflexsc, or a run queue. */
struct seen_calls {
	uint64_t address;
	bool of_queue;
	struct flexsc_counters counters;
};

struct look {
	uint64_t at_ns; /* CLOCK_MONOTONIC */
	bool has_threads; /* the process is on FlexSC-Threads */
	struct seen_thread *threads;
	struct seen_queue *queues;
	struct seen_carrier *carriers;
	struct seen_calls *calls;
	unsigned int nr_threads, nr_queues, nr_carriers, nr_calls;
	uint64_t *homes, *thread_counts; /* as many as names */
	/* FLEXSC_TRACE_CALLS each, if it is asked for; or NULL */
	struct flexsc_trace_latency *latency;
	uint64_t *made; /* about so many calls were made so far */
};

/* Names that do not change while the process is observed. */
struct observed {
	pid_t pid;
	char program[16];
	char declined[128]; /* why it is not on FlexSC-Threads; or empty */
	char **reasons; /* of homes; NULL where there is none */
	char **queue_names, **thread_names;
	unsigned int nr_reasons, nr_queue_names, nr_thread_names;
	uint32_t latency_ms; /* ask for it, at most so long from a look; 0: no */
	uint32_t interval_ms; /* between looks, for how much of it to ask */
};

enum {
	OBSERVE_REASON = 256
};

/**
 * observe_new() - find what a process shows
 * @why: takes why not, and what to do about it
 *
 * Return: NULL if there is no such process, it may not be observed, or it does
 * not use FlexSC (now).
 */
struct observed *observe_new(pid_t pid, char why[OBSERVE_REASON]);
void observe_free(struct observed *observed);

/**
 * observe_look() - what it is doing
 *
 * Return: 0, -ESRCH when the process has ended or become another program.
 * look_free() in any case.
 */
int observe_look(struct observed *observed, struct look *look);
void look_free(struct look *look);

#endif /* CLI_OBSERVE_H */
