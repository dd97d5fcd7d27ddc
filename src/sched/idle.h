/* SPDX-License-Identifier: MIT */
/*
 * Sleeping carriers, and who wakes them. A carrier sleeps in its engine's
 * wait(); a write to the page set's owner_eventfd ends that.
 *
 *	sleeper                         who has made something ready
 *	-------                         ----------------------------
 *	sleeping = 1                    inbox, by compare-and-swap
 *	fence                           (fenced by that)
 *	looks everywhere, then waits    looks at sleeping
 *	sleeping = 0                    exchanges it for 0: interrupts
 *
 * Both sides fence: the waker's is the compare-and-swap that it needs anyway.
 * membarrier(2), which would spare it, interrupts the other processors, and a
 * server's carrier sleeps often. Whoever changes the flag from 1 to 0 owes the
 * interrupt, so there is one for a sleep; it may come late and end the next
 * one, which looks and sleeps again.
 *
 * Of those who only have work to be stolen, one at a time is woken for it
 * (searching): it wakes the next when it has found something and more is left.
 */
#ifndef FX_SCHED_IDLE_H
#define FX_SCHED_IDLE_H

#include "base/atomic.h"
#include "base/types.h"

/* Of all carriers. */
struct fx_idle {
	uint32_t nr_sleeping;
	uint32_t searching;
};

/* After it: look once more, then sleep. Order: full fence. */
static inline void fx_idle_begin(struct fx_idle *idle, uint32_t *sleeping)
{
	fx_store_relaxed(&idle->searching, 0u);
	fx_store_relaxed(sleeping, 1u);
	fx_fetch_add(&idle->nr_sleeping, 1u);
	fx_fence_after_cas();
}

static inline void fx_idle_end(struct fx_idle *idle, uint32_t *sleeping)
{
	fx_exchange(sleeping, 0u);
	fx_fetch_add(&idle->nr_sleeping, (uint32_t)-1);
}

/* The same where nobody is to be looked for: see sched/resting.c. */
static inline void fx_idle_rest(uint32_t *sleeping)
{
	fx_store_relaxed(sleeping, 1u);
	fx_fence();
}

static inline void fx_idle_rested(uint32_t *sleeping)
{
	fx_exchange(sleeping, 0u);
}

/* Return: true if the caller must interrupt the engine. */
static inline bool fx_idle_claim(uint32_t *sleeping)
{
	return fx_load_relaxed(sleeping) && fx_exchange(sleeping, 0u);
}

/* May the caller look for one to wake? */
static inline bool fx_idle_search(struct fx_idle *idle)
{
	uint32_t none = 0;

	return fx_load_relaxed(&idle->nr_sleeping) &&
	       !fx_load_relaxed(&idle->searching) &&
	       fx_cas(&idle->searching, &none, 1u);
}

static inline void fx_idle_found(struct fx_idle *idle)
{
	if (fx_load_relaxed(&idle->searching))
		fx_store_relaxed(&idle->searching, 0u);
}

#endif /* FX_SCHED_IDLE_H */
