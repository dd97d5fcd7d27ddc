/* SPDX-License-Identifier: MIT */
/* Barriers and once; see threads/once.h. */
#include "threads/once.h"

#include "threads/cleanup.h"
#include "threads/lot.h"

#include <errno.h>

#define OWN 0x66787361u /* no such count is allowed */

/* Key: B under the bucket's lock; I constant. */
struct layout {
	uint32_t own; /* I */
	uint32_t count; /* I */
	uint32_t arrived; /* B */
	uint32_t round; /* B */
	uint32_t leaving; /* A: woken, and not out yet */
};

static struct layout *of(const pthread_barrier_t *barrier)
{
	return (struct layout *)barrier;
}

bool fx_barrier_is_own(const pthread_barrier_t *barrier)
{
	return of(barrier)->own == OWN;
}

int fx_barrier_init_own(pthread_barrier_t *barrier, unsigned count)
{
	_Static_assert(sizeof(struct layout) <= sizeof(pthread_barrier_t),
		       "it has to fit");
	if (!count || count > INT32_MAX)
		return EINVAL;
	*of(barrier) = (struct layout){ .own = OWN, .count = count };
	return 0;
}

struct arrival {
	struct layout *barrier;
	uint32_t round;
	bool waited, last;
};

/* The first time it counts; after a signal it only looks. */
static bool arrive(void *arg)
{
	struct arrival *a = arg;
	struct layout *b = a->barrier;

	if (!a->waited) {
		a->waited = true;
		a->round = b->round;
		a->last = ++b->arrived == b->count;
		if (a->last) {
			b->arrived = 0;
			b->round++;
			fx_fetch_add(&b->leaving, b->count);
		}
	}
	return !a->last && b->round == a->round;
}

/* The one who destroys it waits for those who have not left. */
static void leave(struct fx_thread *me, struct layout *b)
{
	if (fx_fetch_add(&b->leaving, UINT32_MAX) == 1) {
		fx_thread_enter(me);
		fx_lot_wake(&b->leaving, UINT32_MAX, FX_LOT_ANY, NULL, NULL);
		fx_thread_leave(me);
	}
}

int fx_barrier_wait(struct fx_thread *me, pthread_barrier_t *barrier)
{
	struct layout *b = of(barrier);
	struct arrival arrival = { .barrier = b };
	struct fx_lot_wait wait = { .key = b,
				    .where = "barrier",
				    .tag = 1,
				    .check = arrive,
				    .arg = &arrival };
	enum fx_reason why;

	do {
		fx_thread_lent();
		fx_thread_enter(me);
		why = fx_lot_wait(me, &wait);
		if (arrival.last)
			fx_lot_wake(b, UINT32_MAX, FX_LOT_ANY, NULL, NULL);
		fx_thread_leave(me);
	} while (why && why != FX_WOKEN_VALUE);
	leave(me, b);
	return arrival.last ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
}

static bool some_leaving(void *arg)
{
	return fx_load_acquire(&((struct layout *)arg)->leaving);
}

int fx_barrier_destroy_own(pthread_barrier_t *barrier)
{
	struct fx_thread *me = fx_thread_known();
	struct layout *b = of(barrier);
	struct fx_lot_wait wait = { .key = &b->leaving,
				    .where = "barrier",
				    .tag = 1,
				    .check = some_leaving,
				    .arg = b };

	while (me && some_leaving(b)) {
		fx_thread_enter(me);
		fx_lot_wait(me, &wait);
		fx_thread_leave(me);
	}
	b->own = 0;
	return 0;
}

/* Once -------------------------------------------------------------------- */

/* As the C library leaves them: 2 is done. The others are ours while it runs. */
#define ONCE_NEW 0u
#define ONCE_DONE 2u
#define ONCE_RUNS 1u
#define ONCE_WAITED 3u

struct attempt {
	struct _pthread_cleanup_buffer buffer;
	uint32_t *once;
	bool over;
};

/* The thread ends, or an exception is thrown. */
static void give_up(void *arg)
{
	struct attempt *a = arg;
	struct fx_thread *me = fx_thread_self();

	a->over = true;
	if (fx_exchange(a->once, ONCE_NEW) == ONCE_WAITED) {
		fx_thread_enter(me);
		fx_lot_wake(a->once, UINT32_MAX, FX_LOT_ANY, NULL, NULL);
		fx_thread_leave(me);
	}
}

static void unwound(struct attempt *a)
{
	if (a->over)
		return;
	_pthread_cleanup_pop(&a->buffer, 0);
	give_up(a);
}

static void attempt(uint32_t *once, void (*run)(void))
{
	struct attempt a __attribute__((cleanup(unwound))) = { .once = once };

	_pthread_cleanup_push(&a.buffer, give_up, &a);
	run();
	_pthread_cleanup_pop(&a.buffer, 0);
	a.over = true;
}

static bool runs(void *arg)
{
	uint32_t state = ONCE_RUNS;

	return fx_cas((uint32_t *)arg, &state, ONCE_WAITED) ||
	       state == ONCE_WAITED;
}

int fx_once(struct fx_thread *me, int *control, void (*run)(void))
{
	uint32_t *once = (uint32_t *)control, state;
	struct fx_lot_wait wait = { .key = once,
				    .where = "once",
				    .tag = 1,
				    .check = runs,
				    .arg = once };

	for (;;) {
		state = ONCE_NEW;
		if (fx_cas(once, &state, ONCE_RUNS))
			break;
		if (state == ONCE_DONE)
			return 0;
		fx_thread_lent();
		fx_thread_enter(me);
		fx_lot_wait(me, &wait);
		fx_thread_leave(me);
	}
	attempt(once, run);
	if (fx_exchange(once, ONCE_DONE) == ONCE_WAITED) {
		fx_thread_enter(me);
		fx_lot_wake(once, UINT32_MAX, FX_LOT_ANY, NULL, NULL);
		fx_thread_leave(me);
	}
	return 0;
}
