/* SPDX-License-Identifier: MIT */
/*
 * Engine uthread, its parts: the owner's side is engine/uthread.c, the core
 * thread and who watches it is engine/core.c.
 *
 * A core thread that is stuck in a call (a dead network file system) must not
 * hold up what is behind it: a watcher, which ticks while the core thread is
 * awake, takes the role from it and gives it to a new thread (engine/role.h).
 * The stuck one completes its call, whenever that is, and ends.
 */
#ifndef FX_ENGINE_CORE_H
#define FX_ENGINE_CORE_H

#include "engine/poll.h"
#include "engine/role.h"

#include <pthread.h>
#include <sched.h>

/* Empty looks between two looks at the clock. */
#define FX_CORE_LOOKS 128

/* A thread that is, will be (START) or was the core thread. */
struct fx_core {
	struct fx_runner runner; /* first: the runner's functions cast back */
	struct fx_worker_view view;
	struct fx_guard guard;
	struct fx_uthread *engine;
	struct fx_core *next; /* watcher's: stuck before it */
	pthread_t thread;
	uint32_t go; /* futex: START, RUN or END */
	uint32_t over; /* it is about to return */
	unsigned untold; /* its own: completions without a look at the owner */
	bool lost; /* its own: not the core thread any more */
	struct fx_role role __attribute__((aligned(FX_CACHE_LINE)));
};

/* Without its core thread it is engine poll. */
struct fx_uthread {
	struct fx_poll poll;
	struct fx_worker_view view; /* O */

	/* Read-mostly. */
	uint64_t spin_ns __attribute__((aligned(FX_CACHE_LINE)));
	int core_eventfd;
	struct fx_core *core; /* watcher's: the earlier ones are behind it */
	pthread_t watcher;
	uint32_t nr_stuck; /* watcher writes: of those */
	uint32_t stop; /* futex */
	uint32_t watcher_asleep; /* futex */
	int core_cpu; /* where the core thread was seen last */
	pid_t core_tid;
};

/* engine/uthread.c: with everything but the core thread. 0 or -errno. */
int fx_uthread_init(struct fx_uthread *e, const struct fx_engine_ops *ops,
		    const struct fx_engine_config *config);
void fx_uthread_fini(struct fx_uthread *e);
void fx_uthread_abandon(struct fx_uthread *e);

/*
 * Begin and end to leave calls to a core thread. Context: owner, between two
 * postings. Starting fails with -errno; stopping carries on with what the
 * core thread had not taken, and must wait while one is stuck (nr_stuck).
 */
int fx_uthread_start(struct fx_uthread *e);
void fx_uthread_stop(struct fx_uthread *e);

/* Start the core thread and its watcher; 0 or -errno, then nothing runs. */
int fx_core_init(struct fx_uthread *e);
/* Ends all of them; nothing may be in flight. */
void fx_core_fini(struct fx_uthread *e);
/* In a forked child: the threads are not there. */
void fx_core_abandon(struct fx_uthread *e);

/*
 * The processors that the core thread may use: not the caller's, and only
 * those that the process was given. False if there are none.
 */
bool fx_core_processors(cpu_set_t *set);

#endif /* FX_ENGINE_CORE_H */
