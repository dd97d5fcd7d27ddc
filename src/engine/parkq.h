/* SPDX-License-Identifier: MIT */
/*
 * Queues of parked entries, of a record and by time. For engine/park.c and
 * engine/keep.c; all under the lock of the fx_park.
 */
#ifndef FX_ENGINE_PARKQ_H
#define FX_ENGINE_PARKQ_H

#include "engine/fdrec.h"

#include <sys/syscall.h>

static inline struct fx_beside *beside(struct fx_park *park, uint32_t index)
{
	return &park->set->beside[index];
}

static inline void queue_append(struct fx_park *park, struct fx_fdrec *rec,
				unsigned dir, uint32_t index, bool at_head)
{
	struct fx_beside *b = beside(park, index);

	b->next = at_head ? rec->first[dir] : 0;
	b->prev = at_head ? 0 : rec->last[dir];
	if (b->prev)
		beside(park, b->prev - 1)->next = index + 1;
	else
		rec->first[dir] = index + 1;
	if (b->next)
		beside(park, b->next - 1)->prev = index + 1;
	else
		rec->last[dir] = index + 1;
}

static inline void queue_remove(struct fx_park *park, struct fx_fdrec *rec,
				unsigned dir, uint32_t index)
{
	struct fx_beside *b = beside(park, index);

	if (b->prev)
		beside(park, b->prev - 1)->next = b->next;
	else
		rec->first[dir] = b->next;
	if (b->next)
		beside(park, b->next - 1)->prev = b->prev;
	else
		rec->last[dir] = b->prev;
}

static inline void time_append(struct fx_park *park, unsigned queue,
			       uint32_t index, uint32_t stamp_ms)
{
	struct fx_beside *b = beside(park, index);

	b->queue = (uint8_t)queue;
	b->stamp = stamp_ms;
	b->newer = 0;
	b->older = park->newest[queue];
	if (b->older)
		beside(park, b->older - 1)->newer = index + 1;
	else
		park->oldest[queue] = index + 1;
	park->newest[queue] = index + 1;
}

static inline void time_remove(struct fx_park *park, uint32_t index)
{
	struct fx_beside *b = beside(park, index);

	if (!b->queue)
		return;
	if (b->older)
		beside(park, b->older - 1)->newer = b->newer;
	else
		park->oldest[b->queue] = b->newer;
	if (b->newer)
		beside(park, b->newer - 1)->older = b->older;
	else
		park->newest[b->queue] = b->older;
	b->queue = 0;
}

/* Out of everything; the caller owns the entry again. */
static inline void unpark(struct fx_park *park, struct fx_fdrec *rec,
			  unsigned dir, uint32_t index)
{
	queue_remove(park, rec, dir, index);
	time_remove(park, index);
	beside(park, index)->state = 0;
	fx_store_relaxed(&park->nr_parked, park->nr_parked - 1);
}

static inline void activate(struct fx_park *park, struct fx_fdrec *rec, int fd)
{
	if (rec->flags & FX_FD_ACTIVE)
		return;
	rec->flags |= FX_FD_ACTIVE;
	rec->next_active = park->active;
	fx_store_relaxed(&park->active, (uint32_t)fd + 1);
}

/* Is a part of it done? */
static inline bool begun(const struct flexsc_entry *call)
{
	return call->ret > 0 && call->nr != SYS_connect;
}

#endif /* FX_ENGINE_PARKQ_H */
