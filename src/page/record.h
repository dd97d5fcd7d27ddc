/* SPDX-License-Identifier: MIT */
/*
 * The two protocols of <flexsc/trace.h> on the side of who records: writing to a
 * ring that observers read meanwhile, and noticing that nobody wants it any more.
 * tests/model/record.c runs both under every schedule.
 */
#ifndef FX_PAGE_RECORD_H
#define FX_PAGE_RECORD_H

#include "base/atomic.h"
#include "base/types.h"

#include <flexsc/trace.h>

/* Return: false: somebody writes there. */
static inline bool fx_record_claim(struct flexsc_trace_ring *ring)
{
	uint32_t expected = 0;

	return !fx_load_relaxed(&ring->lock) &&
	       fx_cas(&ring->lock, &expected, 1u);
}

static inline void fx_record_release(struct flexsc_trace_ring *ring)
{
	fx_store_release(&ring->lock, 0u);
}

/**
 * fx_record_begin - where the next record goes
 * @room: what it may take at most
 * @block: records lie in blocks of so many bytes
 * @skip: takes how many bytes before it are to be skipped
 *
 * Context: holds the lock. Order: what may be written over is announced before
 * any of it is.
 */
static inline uint64_t fx_record_begin(struct flexsc_trace_ring *ring,
				       uint64_t room, uint64_t block,
				       uint64_t *skip)
{
	uint64_t at = fx_load_relaxed(&ring->end), left = block - at % block;

	*skip = left < room ? left : 0;
	fx_store_relaxed(&ring->reserved, at + *skip + room);
	fx_fence();
	return at + *skip;
}

/* The record at @at has so many bytes. */
static inline void fx_record_end(struct flexsc_trace_ring *ring, uint64_t at,
				 uint64_t size)
{
	fx_store_relaxed(&ring->nr, fx_load_relaxed(&ring->nr) + 1);
	fx_store_release(&ring->end, at + size);
}

static inline bool fx_record_until(const uint32_t *until_ms, uint32_t now_ms)
{
	uint32_t until = fx_load_acquire(until_ms);

	return until && (int32_t)(until - now_ms) > 0;
}

/**
 * fx_record_lapse - nobody wants anything, as far as could be seen
 *
 * Order: pairs with an observer, who writes the time first, and then the word.
 * Return: whether it stays so.
 */
static inline bool fx_record_lapse(uint32_t *wanted,
				   const struct flexsc_trace *trace,
				   uint32_t now_ms)
{
	fx_exchange(wanted, 0u);
	fx_fence_after_cas();
	if (!fx_record_until(&trace->trace_until_ms, now_ms) &&
	    !fx_record_until(&trace->latency_until_ms, now_ms))
		return true;
	fx_store_release(wanted, 1u);
	return false;
}

#endif /* FX_PAGE_RECORD_H */
