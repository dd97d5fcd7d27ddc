/* SPDX-License-Identifier: MIT */
/*
 * Counting threads, and those that the C library made: the first one, and its
 * helpers, which become known when they first use what threads wait on.
 */
#include "threads/alive.h"

#include "arch/arch.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/syscall.h>

#define LAST_ROUND (PTHREAD_DESTRUCTOR_ITERATIONS - 2)

/* Key: A anybody, atomically; I constant once made. */
static uint32_t alive; /* A */
static pthread_key_t key; /* I */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Values of the key in the last thread: rounds of destructors gone by. */
static char rounds[LAST_ROUND + 1];

static void on_end(void *value)
{
	struct fx_thread *me = value;
	char *round = value;

	if (round >= rounds && round <= rounds + LAST_ROUND) {
		if (round == rounds + LAST_ROUND)
			exit(EXIT_SUCCESS);
		pthread_setspecific(key, round + 1);
		return;
	}
	fx_task_detach(&me->task);
	fx_alive_leave(me, true);
	fx_thread_free(me);
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
	struct fx_thread *me = fx_thread_new();

	if (!me)
		return NULL;
	pthread_once(&once, make_key);
	me->self = pthread_self();
	me->tid = (pid_t)fx_arch_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
	me->stays = me->tid == fx_arch_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0) ?
			    FX_HOME_MAIN :
			    FX_HOME_FOREIGN;
	fx_arch_syscall(SYS_rt_sigprocmask, SIG_SETMASK, 0, (long)&me->mask,
			sizeof(me->mask), 0, 0);
	fx_task_attach(&me->task, NULL);
	fx_alive_add();
	pthread_setspecific(key, me);
	return me;
}
