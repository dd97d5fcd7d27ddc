/* SPDX-License-Identifier: MIT */
/*
 * Calls whose instructions are counted, and their rivals on io_uring. Only
 * where the processor's clock counts instructions: tools/vm-run --icount.
 */
#ifndef BENCH_COUNT_H
#define BENCH_COUNT_H

#include "bench/bench.h"

#define COUNT_MAX_BATCH 64
#define COUNT_SIZE 64 /* bytes to read, write, send, receive */

enum count_call {
	COUNT_GETPPID,
	COUNT_PREAD,
	COUNT_READ,
	COUNT_STAT,
	COUNT_OPEN,
	COUNT_CLOSE,
	COUNT_RECV,
	COUNT_SEND,
	COUNT_WAITING,
	NR_COUNT_CALLS
};

/* What they work on; each call of a batch has its own. */
struct count_objects {
	const char *path;
	int file; /* for pread */
	int pairs[COUNT_MAX_BATCH][2]; /* sockets */
	int files[COUNT_MAX_BATCH]; /* to be opened or closed; -1: none */
	int zero; /* for read */
	char buffers[COUNT_MAX_BATCH][COUNT_SIZE];
	long nr_bad;
};

/* Does the clock count instructions? */
bool count_possible(void);

/* One table of all calls, in place of times. 0 or an exit status. */
int count_run(const struct bench_options *options);

/*
 * The same on io_uring, by hand: one issuer with deferred task work, one
 * crossing a batch. NAN: there is none, or no such call.
 */
int count_uring_init(void); /* 0, or -errno */
void count_uring_fini(void);
/* Prepares @nr of them. What comes between the two is the caller's. */
void count_uring_prepare(struct count_objects *o, enum count_call call,
			 unsigned int nr);
void count_uring_finish(struct count_objects *o, enum count_call call,
			unsigned int nr);

#endif /* BENCH_COUNT_H */
