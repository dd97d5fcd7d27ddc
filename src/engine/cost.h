/* SPDX-License-Identifier: MIT */
/*
 * How long calls that "end by themselves" take on this machine, by number:
 * a moving average of what was measured. One that takes longer than a hop to
 * a syscall thread and back is worth the hop. Updates race harmlessly.
 */
#ifndef FX_ENGINE_COST_H
#define FX_ENGINE_COST_H

#include "base/clock.h"
#include "engine/desc.h"

/* A sleeping thread is woken and back in about this time (findings, 4). */
#define FX_COST_HOP_NS 50000u

struct fx_cost {
	uint32_t average_ns[FX_NR_CALLS];
	uint32_t turn; /* one of FX_COST_SAMPLE fast calls is timed */
};

#define FX_COST_SAMPLE 8u

/* Looking at the clock twice is not free: is it this call's turn? */
static inline bool fx_cost_sample(struct fx_cost *cost, unsigned int nr)
{
	uint32_t average = __atomic_load_n(&cost->average_ns[nr],
					   __ATOMIC_RELAXED);
	uint32_t turn = __atomic_load_n(&cost->turn, __ATOMIC_RELAXED) + 1;

	__atomic_store_n(&cost->turn, turn, __ATOMIC_RELAXED);
	return !average || average > FX_COST_HOP_NS / FX_COST_SAMPLE ||
	       turn % FX_COST_SAMPLE == 0;
}

static inline bool fx_cost_slow(const struct fx_cost *cost, unsigned int nr)
{
	return __atomic_load_n(&cost->average_ns[nr], __ATOMIC_RELAXED) >
	       FX_COST_HOP_NS;
}

static inline void fx_cost_note(struct fx_cost *cost, unsigned int nr,
				uint64_t ns)
{
	uint32_t *p = &cost->average_ns[nr];
	uint64_t old = __atomic_load_n(p, __ATOMIC_RELAXED);

	/* One outlier (the thread lost its processor) must not decide. */
	if (ns > 4 * FX_COST_HOP_NS)
		ns = 4 * FX_COST_HOP_NS;
	__atomic_store_n(p, (uint32_t)((old * 7 + ns) / 8), __ATOMIC_RELAXED);
}

#endif /* FX_ENGINE_COST_H */
