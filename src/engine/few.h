/* SPDX-License-Identifier: MIT */
/*
 * Batches that are too small for a crossing of their own: a RUN costs more
 * than that many plain calls, so the owner makes them itself. How many, is
 * measured when the engine is made (wrapped-system-call.txt, eq. 5: batching
 * pays from where the cost of the batched call is less than that of all).
 */
#ifndef FX_ENGINE_FEW_H
#define FX_ENGINE_FEW_H

#include "engine/engine.h"

struct fx_few {
	uint32_t most; /* so many are few */
	bool plain[FX_NR_CALLS]; /* calls that are made here, by number */
};

/* Of RUN's the descriptor is @fd; takes some 50 microseconds. */
void fx_few_init(struct fx_few *few, const struct fx_call_desc *table, int fd);

/**
 * fx_few_run - make the calls on the ring, if they are few and do not wait
 *
 * Only calls that cannot block, or that only look at a file; no chains.
 * Return: false: something is left for RUN.
 */
bool fx_few_run(const struct fx_few *few, struct fx_engine *engine);

#endif /* FX_ENGINE_FEW_H */
