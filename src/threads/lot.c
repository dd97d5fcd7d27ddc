/* SPDX-License-Identifier: MIT */
/*
 * The table of waiters; protocol in threads/lot.h. It has a fixed size: a
 * bucket is shared by addresses, never by more than a short list of them.
 */
#include "threads/lot.h"

#include "base/futex.h"

#include <string.h>

#define BUCKETS 1024u
#define BATCH 32u

/* Lies on the waiter's stack. Key: B under the bucket's lock; W waiter. */
struct waiter {
	struct waiter *next, *previous; /* B */
	const void *key; /* W before queueing */
	struct fx_task *task; /* W */
	fx_ticket ticket; /* W */
	uint32_t tag; /* W */
	bool queued; /* B */
};

struct bucket {
	uint32_t locked; /* futex without a wake: see below */
	struct waiter *first, *last;
} __attribute__((aligned(FX_CACHE_LINE)));

static struct bucket table[BUCKETS];

/*
 * Held for some ten instructions and hardly ever wanted by two, so that giving
 * it back is a plain store that wakes nobody. Who finds it held for longer
 * than that waits for a holder without a processor, and looks again by time.
 */
#ifdef FX_MODEL
#define SPINS 1
#else
#define SPINS 200
#endif
#define NAP_NS (50 * FX_NS_PER_US)

static __attribute__((noinline)) void lock_slow(struct bucket *b)
{
	for (;;) {
		for (unsigned i = 0; i < SPINS; i++) {
			uint32_t unlocked = 0;

			if (fx_cas(&b->locked, &unlocked, 1u))
				return;
			fx_cpu_relax();
		}
		fx_futex_wait(&b->locked, 1, NAP_NS);
	}
}

static inline void lock(struct bucket *b)
{
	uint32_t unlocked = 0;

	if (fx_unlikely(!fx_cas(&b->locked, &unlocked, 1u)))
		lock_slow(b);
}

static inline void unlock(struct bucket *b)
{
	fx_store_release(&b->locked, 0u);
}

static struct bucket *bucket_of(const void *key)
{
	uint64_t h = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15ull;

	return &table[h >> 54];
}

static void append(struct bucket *b, struct waiter *w)
{
	w->queued = true;
	w->next = NULL;
	w->previous = b->last;
	if (b->last)
		b->last->next = w;
	else
		b->first = w;
	b->last = w;
}

static void take_out(struct bucket *b, struct waiter *w)
{
	w->queued = false;
	if (w->previous)
		w->previous->next = w->next;
	else
		b->first = w->next;
	if (w->next)
		w->next->previous = w->previous;
	else
		b->last = w->previous;
}

enum fx_reason fx_lot_wait(struct fx_thread *me, const struct fx_lot_wait *wait)
{
	struct bucket *b = bucket_of(wait->key);
	struct waiter w = { .key = wait->key,
			    .task = &me->task,
			    .tag = wait->tag };
	enum fx_reason reason;
	uint32_t listens;

	lock(b);
	if (!wait->check(wait->arg)) {
		unlock(b);
		return (enum fx_reason)0;
	}
	w.ticket = fx_task_arm(&me->task);
	append(b, &w);
	unlock(b);
	if (wait->release)
		wait->release(wait->arg);
	fx_store_relaxed(&me->task.on, (uint64_t)(uintptr_t)wait->key);
	listens = fx_thread_listens(me, wait->cancel);
	if (wait->last)
		reason = fx_park_last(&me->task, wait->where, wait->deadline,
				      listens, wait->last, wait->arg);
	else
		reason = fx_park(&me->task, wait->where, wait->deadline,
				 listens);
	if (reason == FX_WOKEN_VALUE)
		return reason;
	lock(b);
	if (w.queued)
		take_out(b, &w);
	unlock(b);
	return reason;
}

struct woken {
	struct fx_task *task;
	fx_ticket ticket;
};

/* Under the lock. @left: whether there are more of the same. */
static unsigned collect(struct bucket *b, const void *key, unsigned nr,
			uint32_t tags, struct woken *list, bool *left)
{
	struct waiter *w, *next;
	unsigned n = 0;

	*left = false;
	for (w = b->first; w; w = next) {
		next = w->next;
		if (w->key != key || !(w->tag & tags))
			continue;
		if (n == nr) {
			*left = true;
			break;
		}
		take_out(b, w);
		list[n++] = (struct woken){ w->task, w->ticket };
	}
	return n;
}

unsigned fx_lot_wake(const void *key, unsigned nr, uint32_t tags,
		     void (*last)(void *arg, bool left), void *arg)
{
	struct bucket *b = bucket_of(key);
	struct woken list[BATCH];
	unsigned done = 0, n, i;
	bool left;

	do {
		unsigned want = nr - done < BATCH ? nr - done : BATCH;

		lock(b);
		n = collect(b, key, want, tags, list, &left);
		if (last)
			last(arg, left);
		unlock(b);
		for (i = 0; i < n; i++)
			done += fx_wake(list[i].task, list[i].ticket,
					FX_WOKEN_VALUE);
	} while (done < nr && left);
	return done;
}

void fx_lot_locked(const void *key, void (*change)(void *arg), void *arg)
{
	struct bucket *b = bucket_of(key);

	lock(b);
	change(arg);
	unlock(b);
}

void fx_lot_after_fork(void)
{
	memset(table, 0, sizeof(table));
}
