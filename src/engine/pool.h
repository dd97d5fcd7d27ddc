/* SPDX-License-Identifier: MIT */
/*
 * The bounded pool of syscall threads, for calls that may block. Threads are
 * made on demand by the real pthread_create, up to the limit, with every
 * signal blocked except those of the C library (32, 33: setuid and
 * cancellation must reach them) and the one that interrupts a call.
 *
 * Work waits in a queue under a lock: a hop costs tens of microseconds, so
 * the lock does not show. Idle threads are woken last in, first out; those
 * that are not needed for FX_POOL_IDLE_MS end, but for one. Who pushes next, or
 * ends the pool, joins them.
 *
 * Interrupting (cancel). The lock orders three things: a thread announcing
 * which entry it is about to call for, the canceller finding that entry and
 * sending the signal, and the thread withdrawing the announcement. A thread
 * that was signalled lets the signal arrive before it takes another entry.
 * Whether the call was entered is decided by the program counter
 * (fx_arch_syscall_cancellable), so one signal is enough.
 */
#ifndef FX_ENGINE_POOL_H
#define FX_ENGINE_POOL_H

#include "base/futex.h"
#include "page/counters.h"
#include "page/set.h"

#include <pthread.h>
#include <signal.h>

#define FX_POOL_THREADS 16 /* default limit */
#define FX_POOL_IDLE_MS 3000 /* idle for so long, all but one end */

struct fx_runner;
struct fx_worker;

struct fx_pool {
	struct fx_lock lock;
	struct fx_set *set;
	struct flexsc_counters *counters;
	const struct fx_runner *model; /* copied into each thread's runner */
	uint32_t first, last; /* queue of entries, index + 1 */
	uint32_t nr_queued;
	uint32_t nr_pending; /* queued, or in a thread's hands */
	struct fx_worker *idle; /* stack */
	struct fx_worker *workers; /* all of them, but for those */
	struct fx_worker *ended; /* that are about to return */
	uint32_t nr_threads, max_threads;
	uint32_t nr_blocked; /* threads inside a call that may block */
	bool stop;
	int signal; /* interrupts a call; 0: none was free */
	/*
	 * O: may carry an entry out in place of a thread, and says so. Another
	 * engine's way; NULL: there is none.
	 */
	bool (*instead)(struct fx_pool *pool, uint32_t index);
};

/**
 * fx_pool_init - a pool without threads yet
 * @model: runner whose set, park, cost and table the threads use
 */
void fx_pool_init(struct fx_pool *pool, struct fx_set *set,
		  const struct fx_runner *model,
		  struct flexsc_counters *counters, uint32_t max_threads);

/* Ends the threads; nothing may be queued or running. */
void fx_pool_fini(struct fx_pool *pool);

/* In a forked child: the threads are not there. */
void fx_pool_abandon(struct fx_pool *pool);

/**
 * fx_pool_push - hand an entry (and its chain) to a syscall thread
 * @runner: of the caller, whose entry it is
 *
 * Context: owner, core thread; syscall threads keep what they have. Where there
 * is no thread and none can be made, the call is over: -ENOMEM.
 */
void fx_pool_push(struct fx_runner *runner, uint32_t index);

/* The same, without asking `instead` first. */
void fx_pool_queue(struct fx_runner *runner, uint32_t index);

/*
 * Give the calling thread the signal mask of a syscall thread, for threads it
 * makes; its own goes to @before.
 */
void fx_pool_mask(sigset_t *before);

/**
 * fx_pool_cancel - end an entry that is queued here or being called
 *
 * Return: true if it was queued and is now the caller's to complete. Else it
 * was interrupted if a thread was in it, and completes by itself.
 */
bool fx_pool_cancel(struct fx_pool *pool, uint32_t index);

/* fx_park_move() of what is queued. Context: owner. */
void fx_pool_move(struct fx_pool *pool, int fd, int to);

/* Is anything queued or running here? Owner's question before it sleeps. */
bool fx_pool_busy(struct fx_pool *pool);

/* All threads blocked and work waiting: a stall that only time can end. */
bool fx_pool_stalled(struct fx_pool *pool);

#endif /* FX_ENGINE_POOL_H */
