/* SPDX-License-Identifier: MIT */
/* Semaphores; see threads/sem.h. */
#include "threads/sem.h"

#include "threads/io.h"
#include "threads/lot.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define WAITER (1ull << 32)

struct layout {
	uint64_t data;
	uint32_t shared;
};

static struct layout *of(sem_t *sem)
{
	return (struct layout *)sem;
}

/* @leave: WAITER: and be no waiter any more; or 0. */
static inline bool take(struct layout *s, uint64_t leave)
{
	uint64_t data = fx_load_relaxed(&s->data);

	while ((uint32_t)data)
		if (fx_cas(&s->data, &data, data - leave - 1))
			return true;
	return false;
}

static bool is_empty(void *arg)
{
	struct layout *s = arg;

	return (uint32_t)fx_load_acquire(&s->data) == 0;
}

/* At home, for one that is shared. A handler's wait is no place to leave. */
static int by_libc(struct fx_thread *me)
{
	fx_thread_home(me, FX_HOME_LOCK);
	return 1;
}

/*
 * Return: 1: it is to be tried again. Who was woken takes before anything
 * else, cancelation too: it is the only one that was woken for what is there.
 */
static int wait_for(struct fx_thread *me, struct layout *s,
		    const struct fx_deadline *deadline)
{
	struct fx_lot_wait wait = { .key = s,
				    .where = "semaphore",
				    .deadline = deadline,
				    .cancel = true,
				    .tag = 1,
				    .check = is_empty,
				    .arg = s };
	uint32_t handlers = me->handlers, rigid = me->no_restart;
	enum fx_reason why;
	bool taken;

	fx_thread_enter(me);
	fx_fetch_add(&s->data, WAITER);
	do {
		why = fx_lot_wait(me, &wait);
		taken = (!why || why == FX_WOKEN_VALUE) && take(s, WAITER);
	} while (!taken && (!why || why == FX_WOKEN_VALUE));
	if (!taken)
		fx_fetch_add(&s->data, -WAITER);
	fx_thread_leave(me);
	if (taken)
		return 0;
	if (why == FX_WOKEN_TIMEOUT) {
		errno = ETIMEDOUT;
		return -1;
	}
	if (why == FX_WOKEN_SIGNAL &&
	    fx_interrupted(me, handlers, rigid, !deadline)) {
		errno = EINTR;
		return -1;
	}
	return 1;
}

int fx_sem_wait(struct fx_thread *me, sem_t *sem,
		const struct fx_deadline *deadline)
{
	struct layout *s = of(sem);
	int ret;

	fx_thread_cancel_point(me);
	while (!take(s, 0)) {
		if (s->shared)
			return by_libc(me);
		fx_thread_lent();
		ret = wait_for(me, s, deadline);
		if (!ret)
			return 0;
		fx_thread_cancel_point(me);
		if (ret < 0)
			return ret;
	}
	return 0;
}

int fx_sem_post(sem_t *sem)
{
	struct fx_thread *me = fx_thread_self();
	struct layout *s = of(sem);
	uint64_t data = fx_load_relaxed(&s->data);

	if (s->shared)
		return sem_post(sem);
	do {
		if ((uint32_t)data == SEM_VALUE_MAX) {
			errno = EOVERFLOW;
			return -1;
		}
	} while (!fx_cas(&s->data, &data, data + 1));
	if (!(data / WAITER))
		return 0;
	if (me)
		fx_thread_enter(me);
	fx_lot_wake(s, 1, FX_LOT_ANY, NULL, NULL);
	if (me)
		fx_thread_leave(me);
	return 0;
}

bool fx_sem_understood(void)
{
	sem_t own, shared;

	memset(&own, 0, sizeof(own));
	memset(&shared, 0, sizeof(shared));
	if (sem_init(&own, 0, 5) || sem_init(&shared, 1, 5))
		return false;
	return of(&own)->data == 5 && of(&shared)->data == 5 &&
	       !of(&own)->shared && of(&shared)->shared;
}
