/* SPDX-License-Identifier: MIT */
/*
 * Completions of the owner's own running: no ring, a list through the entries
 * in the order in which they ended. Context: owner.
 */
#ifndef FX_ENGINE_LOCAL_H
#define FX_ENGINE_LOCAL_H

#include "page/set.h"

static inline bool fx_local_has(const struct fx_set *set)
{
	return set->local_first;
}

static inline void fx_local_add(struct fx_set *set, uint32_t index, int64_t ret)
{
	struct flexsc_entry *entry = fx_set_entry(set, index);

	entry->ret = ret;
	fx_store_relaxed(&entry->status, FLEXSC_DONE);
	set->beside[index].next = 0;
	if (set->local_last)
		set->beside[set->local_last - 1].next = index + 1;
	else
		set->local_first = index + 1;
	set->local_last = index + 1;
}

/* The first one; there must be one. Its entry is free afterwards. */
static inline struct fx_done fx_local_take(struct fx_set *set)
{
	uint32_t index = set->local_first - 1;
	struct fx_done done = { .cookie = set->cookies[index],
				.ret = fx_set_entry(set, index)->ret };

	set->local_first = set->beside[index].next;
	if (!set->local_first)
		set->local_last = 0;
	fx_set_recycle(set, index);
	return done;
}

#endif /* FX_ENGINE_LOCAL_H */
