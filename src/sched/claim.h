/* SPDX-License-Identifier: MIT */
/*
 * Who holds a run queue, and how it is taken from a carrier that is stuck.
 *
 * A carrier holds a bundle: run queue, timers, page set and engine. While it
 * touches any of them, or sleeps for them, it is `busy`; while it runs a
 * task's own code it is not, and neither is it in a crossing in which the
 * kernel carries calls out in this thread (fx_engine_ops.enter), which may
 * block it as a task may: so a spare carrier is what flexsc-osdi10.txt, 3.5,
 * calls a thread that is woken when one blocks. The watchdog takes the bundle from a carrier
 * that is not busy and gives it to a spare one. It cannot know whether the
 * carrier is blocked in the kernel, spins, or is about to come back:
 *
 *	carrier                         watchdog
 *	-------                         --------
 *	busy = 1                        word = PENDING (from HELD)
 *	fx_barrier_light()              fx_barrier_heavy()
 *	word HELD: goes on              busy: word = HELD (from PENDING)
 *	word PENDING: word = HELD       else: word = TAKEN (from PENDING)
 *	word TAKEN: has lost it
 *
 * The moves from PENDING are compare-and-swap, so one side decides and both
 * know. Nobody waits. If the watchdog did not see `busy`, the carrier sees
 * PENDING or later; if the carrier did not see PENDING, the watchdog sees
 * `busy`, or the carrier has left again, and then everything that it did is
 * visible to the watchdog through the release of fx_claim_leave().
 *
 * A carrier that has lost its bundle touches nothing of it, puts its task in
 * an inbox from its scheduler stack, and waits as a spare. TAKEN stays until
 * it takes another bundle.
 */
#ifndef FX_SCHED_CLAIM_H
#define FX_SCHED_CLAIM_H

#include "base/barrier.h"
#include "base/types.h"

enum fx_claim_word {
	FX_CLAIM_HELD,
	FX_CLAIM_PENDING,
	FX_CLAIM_TAKEN
};

struct fx_claim {
	uint32_t busy; /* written by the carrier */
	uint32_t word;
};

/* Return: true if the bundle is the carrier's; `busy` stays set in any case. */
static inline bool fx_claim_enter(struct fx_claim *claim)
{
	uint32_t word;

	fx_store_relaxed(&claim->busy, 1u);
	fx_barrier_light();
	word = fx_load_acquire(&claim->word);
	if (fx_likely(word == FX_CLAIM_HELD))
		return true;
	/* The one who asked may have withdrawn meanwhile. */
	return word == FX_CLAIM_PENDING &&
	       (fx_cas(&claim->word, &word, (uint32_t)FX_CLAIM_HELD) ||
		word == FX_CLAIM_HELD);
}

static inline void fx_claim_leave(struct fx_claim *claim)
{
	fx_store_release(&claim->busy, 0u);
}

/**
 * fx_claim_take - take a carrier's bundle
 *
 * Context: the watchdog; one at a time.
 * Return: true if it is the caller's now; false: the carrier keeps it.
 */
static inline bool fx_claim_take(struct fx_claim *claim)
{
	uint32_t word = FX_CLAIM_HELD;

	if (fx_load_relaxed(&claim->busy) ||
	    !fx_cas(&claim->word, &word, (uint32_t)FX_CLAIM_PENDING))
		return false;
	fx_barrier_heavy();
	word = FX_CLAIM_PENDING;
	if (!fx_load_acquire(&claim->busy))
		return fx_cas(&claim->word, &word, (uint32_t)FX_CLAIM_TAKEN);
	fx_cas(&claim->word, &word, (uint32_t)FX_CLAIM_HELD);
	return false;
}

#endif /* FX_SCHED_CLAIM_H */
