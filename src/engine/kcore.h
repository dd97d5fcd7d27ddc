/* SPDX-License-Identifier: MIT */
/*
 * A kernel core for one page set of flexsc.ko: threads lent by WAIT_POLL, on a
 * processor that no other kernel core of this process has (flexsc-osdi10.txt,
 * 3.6: one active per core and process, the next core on the list when the
 * first is busy). One polls, the other stands by for when it blocks.
 */
#ifndef FX_ENGINE_KCORE_H
#define FX_ENGINE_KCORE_H

#include "base/atomic.h"
#include "base/types.h"

#include <pthread.h>
#include <sys/types.h>

#define FX_KCORE_THREADS 2

struct fx_kcore;

struct fx_kcore_thread {
	struct fx_kcore *core;
	pthread_t thread;
	pid_t tid; /* its own */
	uint32_t over; /* futex: it is about to return */
};

/* Key: O, but for what the threads read and write. */
struct fx_kcore {
	bool on;
	int fd; /* the set's */
	int cpu; /* where it is; claimed */
	unsigned moves; /* in a row, to other processors */
	uint64_t spin_ns;
	uint32_t stop; /* threads are to end */
	uint32_t nr_over; /* threads that have ended */
	unsigned nr_threads;
	struct fx_kcore_thread threads[FX_KCORE_THREADS];
};

/* Is there a processor for one, beside the caller's? */
bool fx_kcore_possible(void);

/*
 * Context: owner. Return: 0; -EAGAIN: every processor on the list has one, or
 * there can be no thread.
 */
int fx_kcore_start(struct fx_kcore *core, int fd, uint64_t spin_ns);
void fx_kcore_stop(struct fx_kcore *core);
/* In a forked child: the threads are not there. */
void fx_kcore_abandon(struct fx_kcore *core);

/* The threads were sent away: nobody polls, or soon nobody can. */
static inline bool fx_kcore_broken(const struct fx_kcore *core)
{
	return fx_unlikely(fx_load_relaxed(&core->nr_over));
}

/* Processor time of its threads, and time that they waited for theirs. */
uint64_t fx_kcore_cpu_ns(const struct fx_kcore *core);
uint64_t fx_kcore_delay_ns(const struct fx_kcore *core);

/*
 * The processor is busy: the next one on the list that has none. Return: false
 * if there is none, or each of them has had its turn.
 */
bool fx_kcore_move(struct fx_kcore *core);

#endif /* FX_ENGINE_KCORE_H */
