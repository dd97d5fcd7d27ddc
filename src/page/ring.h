/* SPDX-License-Identifier: MIT */
/*
 * The two rings of a page set: positions, segments, slots. Layout and rules
 * are those of <linux/flexsc.h>; this file is their only implementation in
 * user space.
 *
 * A *view* is one party's private knowledge of which segment its position
 * lies in. Positions only grow, so a view only moves forward.
 *
 * Growth (fx_ring_grow_*): the owner decides where the next segment starts
 * and stores that before it posts any of the entries that made the growth
 * necessary.
 *  - Submission: at its own tail. A consumer that finds a start which its
 *    position has reached moves on; until it sees the start it looks at a
 *    slot of the old segment that nobody writes any more, and finds nothing.
 *  - Completion: at head + 2 * (entries before). Every entry can put at most
 *    two records on the ring (completion and acknowledged notice), so those
 *    of the entries before cannot reach that position, and whoever completes
 *    a later entry learnt of it through a slot stored after the start.
 */
#ifndef FX_PAGE_RING_H
#define FX_PAGE_RING_H

#include "base/atomic.h"
#include "base/types.h"

#include <linux/flexsc.h>

struct fx_ring_view {
	uint64_t until; /* first position that is not of this segment */
	uint32_t segment;
	uint32_t mask; /* size of the segment - 1 */
	uint32_t base; /* index of the segment's first slot */
	uint32_t shift; /* log2 of the size */
};

static inline void fx_ring_view_set(struct fx_ring_view *view, uint32_t segment)
{
	uint32_t size = FLEXSC_RING_MIN << segment;

	view->segment = segment;
	view->mask = size - 1;
	view->base = size - FLEXSC_RING_MIN;
	view->shift = (uint32_t)__builtin_ctz(FLEXSC_RING_MIN) + segment;
	view->until = UINT64_MAX;
}

/* Bring @view to @position; @starts is the shared array of segment starts. */
static inline void fx_ring_view_move(struct fx_ring_view *view,
				     const __u64 *starts, uint64_t position)
{
	view->until = fx_load_acquire(&starts[view->segment + 1]);
	while (fx_unlikely(position >= view->until)) {
		fx_ring_view_set(view, view->segment + 1);
		view->until = fx_load_acquire(&starts[view->segment + 1]);
	}
}

static inline uint32_t fx_ring_slot(const struct fx_ring_view *view,
				    uint64_t position)
{
	return view->base + ((uint32_t)position & view->mask);
}

/* What a slot of either ring holds besides the index when it is @position's. */
static inline uint32_t fx_ring_tag(const struct fx_ring_view *view,
				   uint64_t position)
{
	return FLEXSC_SLOT_VALID |
	       ((uint32_t)(position >> view->shift) & FLEXSC_SLOT_LAP_MASK)
		       << FLEXSC_SLOT_LAP_SHIFT;
}

/*
 * The owner's place on a ring: the slot at its position, what that slot holds
 * beside the index, and where this stops to be a matter of adding one.
 */
struct fx_ring_cursor {
	uint32_t next, end; /* slots */
	uint32_t tag;
	uint64_t end_position;
	struct fx_ring_view view;
};

static inline void fx_ring_cursor_init(struct fx_ring_cursor *cursor)
{
	fx_ring_view_set(&cursor->view, 0);
	cursor->next = 0;
	cursor->end = FLEXSC_RING_MIN;
	cursor->end_position = FLEXSC_RING_MIN;
	cursor->tag = fx_ring_tag(&cursor->view, 0);
}

static inline uint64_t fx_ring_position(const struct fx_ring_cursor *cursor)
{
	return cursor->end_position - (cursor->end - cursor->next);
}

/* Bring @cursor to @position: at a new lap, a new segment, or any jump. */
static inline void fx_ring_seek(struct fx_ring_cursor *cursor,
				const __u64 *starts, uint64_t position)
{
	struct fx_ring_view *view = &cursor->view;
	uint64_t lap_end;

	fx_ring_view_move(view, starts, position);
	lap_end = (position | view->mask) + 1;
	cursor->end_position = lap_end < view->until ? lap_end : view->until;
	cursor->next = fx_ring_slot(view, position);
	cursor->end = cursor->next + (uint32_t)(cursor->end_position - position);
	cursor->tag = fx_ring_tag(view, position);
}

static inline void fx_ring_advance(struct fx_ring_cursor *cursor,
				   const __u64 *starts)
{
	if (fx_unlikely(++cursor->next == cursor->end))
		fx_ring_seek(cursor, starts, cursor->end_position);
}

#define FX_RING_TAG_MASK \
	(FLEXSC_SLOT_VALID | FLEXSC_SLOT_LAP_MASK << FLEXSC_SLOT_LAP_SHIFT)

#endif /* FX_PAGE_RING_H */
