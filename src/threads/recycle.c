/* SPDX-License-Identifier: MIT */
/* The list of kept threads; see threads/recycle.h. */
#include "threads/recycle.h"

#include "base/clock.h"
#include "base/futex.h"
#include "call/seen.h"
#include "threads/alive.h"
#include "threads/create.h"
#include "threads/fresh.h"
#include "threads/lot.h"

#include <signal.h>
#include <sys/syscall.h>

#define MAX_IDLE 128u
#define KEPT_NS (2 * FX_NS_PER_SEC) /* not taken for so long, it ends */

enum fx_taken {
	WAITS,
	TAKEN, /* start and arg are set */
	DISMISSED, /* it is to end */
};

/* Key: L under the lock. */
static struct {
	struct fx_lock lock;
	struct fx_thread *first; /* L: last in, first out */
	unsigned nr; /* L */
} idle;

static void tell(struct fx_thread *t, enum fx_taken what)
{
	fx_store_release(&t->taken, (uint32_t)what);
	fx_lot_wake(t, 1, FX_LOT_ANY, NULL, NULL);
}

void fx_recycle_put(struct fx_thread *t)
{
	struct fx_thread *me = fx_thread_known();
	bool full;

	if (me)
		fx_thread_enter(me);
	fx_lock(&idle.lock);
	full = idle.nr >= MAX_IDLE;
	if (!full) {
		t->next = idle.first;
		idle.first = t;
		idle.nr++;
	}
	fx_unlock(&idle.lock);
	if (full) {
		t->life |= FX_LIFE_DETACHED;
		tell(t, DISMISSED);
	}
	if (me)
		fx_thread_leave(me);
}

/* Under the lock. */
static struct fx_thread *find(const struct fx_thread *like)
{
	struct fx_thread **at = &idle.first, *t;

	for (; (t = *at); at = &t->next) {
		if (t->stack_size != like->stack_size ||
		    t->guard_size != like->guard_size ||
		    t->mask != like->first_mask)
			continue;
		*at = t->next;
		idle.nr--;
		return t;
	}
	return NULL;
}

bool fx_recycle_take(struct fx_thread *me, pthread_t *out,
		     const struct fx_thread *like)
{
	struct fx_thread *t;

	if (!fx_load_relaxed(&idle.nr) || like->worn || like->stays)
		return false;
	fx_thread_enter(me);
	fx_lock(&idle.lock);
	t = find(like);
	fx_unlock(&idle.lock);
	if (t) {
		t->start = like->start;
		t->arg = like->arg;
		t->life = like->life;
		t->counted = true;
		*out = t->self;
		fx_fetch_add(&fx_thread_counters.recycled, 1ull);
		tell(t, TAKEN);
	}
	fx_thread_leave(me);
	return t;
}

static bool waits(void *arg)
{
	struct fx_thread *me = arg;

	return fx_load_acquire(&me->taken) == WAITS;
}

/* Return: false if it is not in the list: it is being taken, or joined. */
static bool take_back(struct fx_thread *me)
{
	struct fx_thread **at;
	bool found;

	fx_thread_enter(me);
	fx_lock(&idle.lock);
	for (at = &idle.first; *at && *at != me; at = &(*at)->next)
		;
	found = *at;
	if (found) {
		*at = me->next;
		idle.nr--;
		me->life |= FX_LIFE_DETACHED;
	}
	fx_unlock(&idle.lock);
	fx_thread_leave(me);
	return found;
}

static void wait_to_be_taken(struct fx_thread *me)
{
	struct fx_deadline until = { .clock = FX_CLOCK_MONOTONIC };
	struct fx_lot_wait wait = { .key = me,
				    .where = "idle",
				    .deadline = &until,
				    .tag = 1,
				    .check = waits,
				    .arg = me };
	enum fx_reason why;

	until.at_ns = fx_now_ns() + KEPT_NS;
	while (fx_load_acquire(&me->taken) == WAITS) {
		/* A signal of the process that reached it goes home, and on. */
		fx_thread_enter(me);
		why = fx_lot_wait(me, &wait);
		fx_thread_leave(me);
		if (why != FX_WOKEN_TIMEOUT)
			continue;
		if (fx_thread_leaves(me) || take_back(me))
			return;
		until.at_ns = fx_now_ns() + KEPT_NS;
	}
}

bool fx_recycle(struct fx_thread *me, void *result)
{
	bool detached;

	if (me->worn || me->stays || me->exiting || me->held ||
	    !fx_thread_lent() || !fx_fresh_can(me))
		return false;
	fx_fresh_make(me);
	if (me->worn || me->stays || !fx_thread_lent() ||
	    (me->has_alternate && !me->first_alternate))
		return false;
	if (fx_watched())
		fx_seen_exit(SYS_exit, me->tid, 0);
	me->result = result;
	me->taken = WAITS;
	me->counted = false;
	fx_alive_leave(me, false);
	fx_thread_enter(me);
	detached = fx_thread_ended(me);
	fx_thread_leave(me);
	if (detached)
		fx_recycle_put(me);
	wait_to_be_taken(me);
	fx_thread_lent();
	return fx_load_acquire(&me->taken) == TAKEN;
}

void fx_recycle_after_fork(void)
{
	idle.lock.word = 0;
	idle.first = NULL;
	idle.nr = 0;
}
