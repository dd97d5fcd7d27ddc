/* SPDX-License-Identifier: MIT */
/*
 * Condition variables; see threads/cond.h.
 *
 * Who waits gives its mutex away last, when it is known who runs next: if that
 * is one that was woken from a wait with the same mutex, as where two threads
 * take turns, it gets the mutex, locked, instead of locking it. Not if others
 * wait for the mutex, and not if a handler is to run first.
 */
#include "threads/cond.h"

#include "threads/lot.h"
#include "threads/mutex.h"
#include "threads/time.h"

#include <string.h>

#define SHARED 1u
#define MONOTONIC 2u

/* Which word of a condition variable holds the flags; it differs by release. */
static unsigned flags_at;

static uint32_t flags_of(const pthread_cond_t *c)
{
	return fx_load_relaxed(&((const uint32_t *)c)[flags_at]);
}

static uint32_t *waited(pthread_cond_t *c)
{
	return (uint32_t *)c;
}

/* How often it was signaled; under the bucket's lock. */
static uint32_t *wakes(pthread_cond_t *c)
{
	return (uint32_t *)c + 1;
}

struct parting {
	struct fx_thread *me;
	pthread_cond_t *cond;
	pthread_mutex_t *mutex;
	bool parted; /* the mutex is let go */
	uint32_t wakes; /* when it was */
};

/*
 * A handler of a signal does not end the wait, as in the C library; what was
 * signaled while it ran does.
 */
static bool join_queue(void *arg)
{
	struct parting *p = arg;

	if (!p->parted)
		p->wakes = *wakes(p->cond);
	else if (p->wakes != *wakes(p->cond))
		return false;
	fx_store_relaxed(waited(p->cond), 1u);
	return true;
}

/* If others wait for the mutex: from inside the scheduler they are woken late. */
static void let_go(void *arg)
{
	struct parting *p = arg;

	if (!p->parted)
		fx_mutex_unlock(p->me, p->mutex);
	p->parted = true;
}

static bool takes_over(const struct fx_thread *next, const pthread_mutex_t *m)
{
	uint64_t word;

	if (!next || next->wants != m || fx_load_relaxed(&next->task.pending))
		return false;
	word = fx_load_relaxed(&next->task.state);
	return fx_task_state(word) == FX_TASK_WOKEN &&
	       fx_task_reason(word) == FX_WOKEN_VALUE;
}

static void hand_over(void *arg, struct fx_task *task)
{
	struct parting *p = arg;
	struct fx_thread *next = (struct fx_thread *)task;

	if (p->parted)
		return;
	p->parted = true;
	if (!takes_over(next, p->mutex) || fx_mutex_is_wanted(p->mutex)) {
		fx_mutex_unlock(p->me, p->mutex);
		return;
	}
	p->mutex->__data.__owner = next->tid;
	next->given = true;
}

/* After a wait. Return: whether the mutex is the thread's. */
static bool was_given(struct fx_thread *me, pthread_mutex_t *m)
{
	me->wants = NULL;
	if (!me->given)
		return false;
	me->given = false;
	if (fx_likely(!fx_load_relaxed(&me->task.pending)))
		return true;
	fx_mutex_unlock(me, m); /* handlers run first */
	return false;
}

static int wait_shared(struct fx_thread *me, pthread_cond_t *c,
		       pthread_mutex_t *m, const struct fx_deadline *deadline)
{
	struct timespec ts;

	fx_thread_home(me, FX_HOME_LOCK);
	if (!deadline)
		return pthread_cond_wait(c, m);
	ts = fx_timespec(deadline->at_ns);
	return pthread_cond_clockwait(c, m, fx_clock_id(deadline->clock), &ts);
}

int fx_cond_wait(struct fx_thread *me, pthread_cond_t *c, pthread_mutex_t *m,
		 const struct fx_deadline *deadline)
{
	struct parting parting = { .me = me, .cond = c, .mutex = m };
	struct fx_lot_wait wait = { .key = c,
				    .where = "condition",
				    .deadline = deadline,
				    .cancel = true,
				    .tag = 1,
				    .check = join_queue,
				    .release = let_go,
				    .arg = &parting };
	enum fx_reason why;
	bool given;
	int bad;

	if (fx_unlikely(flags_of(c) & SHARED))
		return wait_shared(me, c, m, deadline);
	bad = fx_mutex_check(me, m);
	if (bad)
		return bad;
	fx_thread_cancel_point(me);
	if (fx_mutex_is_usual(m) && !fx_mutex_is_wanted(m)) {
		wait.release = NULL;
		wait.last = hand_over;
	}
	do {
		fx_thread_lent();
		fx_thread_enter(me);
		if (fx_mutex_is_usual(m))
			me->wants = m;
		why = fx_lot_wait(me, &wait);
		given = was_given(me, m);
		fx_thread_leave(me);
	} while (why == FX_WOKEN_SIGNAL);
	bad = given ? 0 : fx_mutex_lock(me, m, NULL);
	if (why == FX_WOKEN_CANCEL)
		fx_thread_attend(me, true);
	return why == FX_WOKEN_TIMEOUT && !bad ? ETIMEDOUT : bad;
}

static void note_left(void *cond, bool left)
{
	++*wakes(cond);
	fx_store_relaxed(waited(cond), (uint32_t)left);
}

int fx_cond_wake(struct fx_thread *me, pthread_cond_t *c, unsigned nr)
{
	if (fx_unlikely(flags_of(c) & SHARED))
		return nr == 1 ? pthread_cond_signal(c) :
				 pthread_cond_broadcast(c);
	if (!fx_load_relaxed(waited(c)))
		return 0;
	fx_thread_enter(me);
	fx_lot_wake(c, nr, FX_LOT_ANY, note_left, c);
	fx_thread_leave(me);
	return 0;
}

int fx_cond_destroy(pthread_cond_t *c)
{
	return flags_of(c) & SHARED ? pthread_cond_destroy(c) : 0;
}

clockid_t fx_cond_clock(const pthread_cond_t *c)
{
	return flags_of(c) & MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

static void init_with(pthread_cond_t *c, int shared, clockid_t clock)
{
	pthread_condattr_t attr;

	memset(c, 0, sizeof(*c));
	pthread_condattr_init(&attr);
	pthread_condattr_setpshared(&attr, shared);
	pthread_condattr_setclock(&attr, clock);
	pthread_cond_init(c, &attr);
	pthread_condattr_destroy(&attr);
}

bool fx_cond_understood(void)
{
	pthread_cond_t shared, monotonic, plain;
	unsigned nr = sizeof(plain) / sizeof(uint32_t), found = 0;

	init_with(&shared, PTHREAD_PROCESS_SHARED, CLOCK_REALTIME);
	init_with(&monotonic, PTHREAD_PROCESS_PRIVATE, CLOCK_MONOTONIC);
	init_with(&plain, PTHREAD_PROCESS_PRIVATE, CLOCK_REALTIME);
	for (unsigned i = 0; i < nr; i++) {
		uint32_t s = ((uint32_t *)&shared)[i];
		uint32_t m = ((uint32_t *)&monotonic)[i];

		if (((uint32_t *)&plain)[i])
			return false;
		if (!s && !m)
			continue;
		if (i < 2 || s != SHARED || m != MONOTONIC)
			return false;
		flags_at = i;
		found++;
	}
	return found == 1;
}
