/* SPDX-License-Identifier: MIT */
/*
 * Counting threads, and those that the C library made: the first one, and its
 * helpers, which become known when they first use what threads wait on.
 */
#include "threads/alive.h"

#include "arch/arch.h"
#include "call/seen.h"
#include "threads/create.h"
#include "threads/mask.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/syscall.h>

#define LAST_ROUND (PTHREAD_DESTRUCTOR_ITERATIONS - 2)

/* Key: A anybody, atomically; I constant once made. */
static uint32_t alive; /* A */
static pthread_key_t key; /* I */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* It has left, and handlers that still run in it do not count. */
static __thread bool left;

/* Values of the key in the last thread: rounds of destructors gone by. */
static char rounds[LAST_ROUND + 1];

static void on_end(void *value)
{
	struct fx_thread *me = value;
	char *round = value;
	uint64_t mask;

	if (round >= rounds && round <= rounds + LAST_ROUND) {
		if (round == rounds + LAST_ROUND)
			exit(EXIT_SUCCESS);
		pthread_setspecific(key, round + 1);
		return;
	}
	if (fx_watched() && me->counted)
		fx_seen_exit(SYS_exit, me->tid, 0);
	mask = fx_mask_swap(FX_MASK_HANDLED);
	fx_thread_gone(me);
	if (me->counted)
		fx_alive_leave(me, true);
	fx_thread_free(me);
	fx_mask_set(mask);
}

static void make_key(void)
{
	pthread_key_create(&key, on_end);
}

void fx_alive_add(void)
{
	fx_fetch_add(&alive, 1u);
}

void fx_alive_undo(void)
{
	fx_fetch_add(&alive, UINT32_MAX);
}

void fx_alive_leave(struct fx_thread *me, bool destructors)
{
	left = destructors;
	if (fx_fetch_add(&alive, UINT32_MAX) != 1 ||
	    !fx_load_relaxed(&fx_threads_running))
		return;
	fx_thread_home(me, FX_HOME_EXIT);
	if (!destructors)
		exit(EXIT_SUCCESS);
	pthread_once(&once, make_key);
	pthread_setspecific(key, rounds);
}

void fx_alive_after_fork(void)
{
	fx_store_relaxed(&alive, fx_thread_self() ? 1u : 0u);
}

struct fx_thread *fx_thread_known_slow(void)
{
	uint64_t mask = fx_mask_swap(FX_MASK_HANDLED);
	struct fx_thread *me = fx_thread_new();

	if (!me)
		goto out;
	pthread_once(&once, make_key);
	me->self = pthread_self();
	me->tid = (pid_t)fx_arch_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
	me->stays = me->tid == fx_arch_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0) ?
			    FX_HOME_MAIN :
			    FX_HOME_FOREIGN;
	me->mask = mask;
	fx_task_attach(&me->task, NULL);
	me->counted = !left;
	me->late = left;
	if (me->counted)
		fx_alive_add();
	/* The last one counts rounds in it. */
	if (!pthread_getspecific(key))
		pthread_setspecific(key, me);
out:
	fx_mask_set(mask);
	return me;
}
