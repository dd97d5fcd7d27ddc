/* SPDX-License-Identifier: MIT */
/*
 * Completions of the owner's own running: no ring, a list through the entries
 * in the order in which they ended. Context: owner.
 */
#ifndef FX_ENGINE_LOCAL_H
#define FX_ENGINE_LOCAL_H

#include "page/set.h"

struct fx_local {
	uint32_t first, last; /* index + 1 */
};

static inline void fx_local_add(struct fx_local *local, struct fx_set *set,
				uint32_t index, int64_t ret)
{
	struct flexsc_entry *entry = fx_set_entry(set, index);

	entry->ret = ret;
	fx_store_relaxed(&entry->status, FLEXSC_DONE);
	set->beside[index].next = 0;
	if (local->last)
		set->beside[local->last - 1].next = index + 1;
	else
		local->first = index + 1;
	local->last = index + 1;
}

/* The first one; there must be one. Its entry is free afterwards. */
static inline struct fx_done fx_local_take(struct fx_local *local,
					   struct fx_set *set)
{
	uint32_t index = local->first - 1;
	struct fx_done done = { .cookie = set->slots[index].cookie,
				.ret = fx_set_entry(set, index)->ret };

	local->first = set->beside[index].next;
	if (!local->first)
		local->last = 0;
	fx_set_recycle(set, index);
	return done;
}

#endif /* FX_ENGINE_LOCAL_H */
