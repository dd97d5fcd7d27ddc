/* SPDX-License-Identifier: MIT */
/*
 * Are carriers needed? While no task is there that could be lent, nobody needs
 * them: after a while they end, with everything else that runs for them, and
 * begin again when a task is about to be made.
 *
 *	who makes a task           a spare carrier, after a while
 *	----------------           ------------------------------
 *	count + 1                  state = STOPS
 *	fence                      fence
 *	state RUNS: goes on        count as it was, and nobody: ends all,
 *	else: the lock;              state = STOPPED; all under the lock
 *	  STOPPED: begins all      else: state = RUNS
 *
 * One of the two sees the other. The count keeps, in its upper half, how often
 * it was raised, so "as it was" means that nobody came and went meanwhile.
 *
 * A spare carrier that has no queue sleeps without a limit, but while somebody
 * has to watch: after the count has become 0.
 *
 *	the last one               the spare carrier
 *	------------               -----------------
 *	count - 1                  watching = 0
 *	fence                      fence
 *	watching 0: makes it 1,    count 0: watches all the same
 *	  wakes a spare one
 */
#ifndef FX_SCHED_NEEDED_H
#define FX_SCHED_NEEDED_H

#include "base/atomic.h"
#include "base/types.h"

#define FX_NEEDED_EVER (1ull << 32)

enum fx_needed_state {
	FX_RUNS,
	FX_STOPS,
	FX_STOPPED
};

/* Key: A anybody, atomically; L written under the lock. */
struct fx_needed {
	uint64_t count; /* A: now; in the upper half: ever */
	uint32_t state; /* L; A to read: enum fx_needed_state */
	uint32_t watching; /* A */
};

/* Return: false: under the lock, see whether all is to begin again. */
static inline bool fx_needed_more(struct fx_needed *n)
{
	fx_fetch_add(&n->count, FX_NEEDED_EVER + 1);
	fx_fence_after_cas();
	return fx_load_acquire(&n->state) == FX_RUNS;
}

static inline bool fx_needed_none(uint64_t count)
{
	return (uint32_t)count == 0;
}

/* Return: true if the caller wakes a spare carrier. */
static inline bool fx_needed_less(struct fx_needed *n)
{
	if (!fx_needed_none(fx_fetch_add(&n->count, ~0ull) - 1))
		return false;
	fx_fence_after_cas();
	return !fx_load_relaxed(&n->watching) && !fx_exchange(&n->watching, 1u);
}

/**
 * fx_needed_stop - by the spare carrier, under the lock
 * @count: what it was a while ago
 *
 * Return: true if nobody was there since, and all is the caller's to end.
 */
static inline bool fx_needed_stop(struct fx_needed *n, uint64_t count)
{
	fx_store_relaxed(&n->state, (uint32_t)FX_STOPS);
	fx_fence();
	if (fx_needed_none(count) && fx_load_acquire(&n->count) == count)
		return true;
	fx_store_release(&n->state, (uint32_t)FX_RUNS);
	return false;
}

/* Return: whether to watch on. */
static inline bool fx_needed_unwatch(struct fx_needed *n)
{
	fx_store_relaxed(&n->watching, 0u);
	fx_fence();
	return fx_needed_none(fx_load_relaxed(&n->count)) &&
	       !fx_exchange(&n->watching, 1u);
}

#endif /* FX_SCHED_NEEDED_H */
