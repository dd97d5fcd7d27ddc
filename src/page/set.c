/* SPDX-License-Identifier: MIT */
/*
 * The half of a page set that is not on the hottest path: taking, cancelling,
 * reaping, growing, sleeping. It knows nothing of what a call means, and no
 * mapping (page/map.c), so that the interleaving checker can run it.
 */
#include "page/set.h"

void fx_worker_view_init(struct fx_worker_view *view)
{
	fx_ring_view_set(&view->sq, 0);
	fx_ring_view_set(&view->cq, 0);
}

bool fx_set_grow(struct fx_set *set)
{
	uint32_t before = set->nr_entries;
	uint32_t after = before + FLEXSC_PAGE_ENTRIES;
	struct flexsc_set *shared = set->shared;

	if (after > set->max_entries)
		return false;
	if (2 * after > set->sq_tail.view.mask + 1) {
		uint32_t next = set->sq_tail.view.segment + 1;
		uint64_t tail = fx_ring_position(&set->sq_tail);
		uint64_t head = fx_ring_position(&set->cq_head);

		/* Order: before any entry of the new page is published. */
		fx_store_release(&shared->sq_start[next], tail);
		fx_store_release(&shared->cq_start[next],
				 head + 2ull * before);
		fx_ring_seek(&set->sq_tail, shared->sq_start, tail);
		fx_ring_seek(&set->cq_head, shared->cq_start, head);
	}
	for (uint32_t i = after; i-- > before;)
		set->free[set->nr_free++] = i;
	set->nr_entries = after;
	fx_store_release(&shared->nr_entries, after);
	return true;
}

int fx_set_next_lap(struct fx_set *set)
{
	fx_ring_seek(&set->sq_tail, set->shared->sq_start,
		     set->sq_tail.end_position);
	return 0;
}

bool fx_set_reap_unusual(struct fx_set *set, struct fx_done *done)
{
	*done = (struct fx_done){ 0 };
	while (fx_set_has_completion(set)) {
		uint64_t word = fx_load_relaxed(&set->cq[set->cq_head.next]);
		uint32_t index = (uint32_t)word & FLEXSC_SLOT_INDEX;
		struct fx_slot *mine = &set->slots[index];

		fx_ring_advance(&set->cq_head, set->shared->cq_start);
		done->cookie = set->cookies[index];
		done->ret = (int32_t)(word >> 32);
		if (done->ret == FLEXSC_SLOT_WIDE)
			done->ret = fx_load_relaxed(&set->entries[index].ret);
		/* Which record comes last does not matter. */
		if (mine->notices)
			mine->notices--;
		else
			fx_set_recycle(set, index);
		if (!(word & FLEXSC_SLOT_NOTICE))
			return true;
	}
	return false;
}

void fx_set_publish_chain(struct fx_set *set, const uint32_t *indices,
			  unsigned nr)
{
	const struct fx_ring_view *view = &set->sq_tail.view;
	uint64_t first = fx_ring_position(&set->sq_tail);

	/* The owner grows the ring, so its view is the newest segment. */
	for (unsigned i = nr; i-- > 0;) {
		uint64_t position = first + i;

		fx_store_release(&set->sq[fx_ring_slot(view, position)],
				 fx_ring_tag(view, position) | indices[i]);
	}
	fx_ring_seek(&set->sq_tail, set->shared->sq_start, first + nr);
}

/* The slot at @position, or 0 if it is not filled yet. */
static uint32_t peek(struct fx_set *set, struct fx_ring_view *view,
		     uint64_t position)
{
	uint32_t value;

	fx_ring_view_move(view, set->shared->sq_start, position);
	value = fx_load_acquire(&set->sq[fx_ring_slot(view, position)]);
	return (value & FX_RING_TAG_MASK) == fx_ring_tag(view, position) ? value : 0;
}

/*
 * Read a whole chain from @position on. What is read may be stale or torn if
 * another consumer was faster; the caller's compare-and-swap on sq_head tells.
 */
static int peek_chain(struct fx_set *set, struct fx_worker_view *view,
		      uint64_t position, uint32_t value, uint32_t *indices)
{
	unsigned nr = 0;

	for (;;) {
		uint32_t index = value & FLEXSC_SLOT_INDEX;

		indices[nr++] = index;
		if (!(fx_load_relaxed(&set->entries[index].flags) &
		      FLEXSC_F_LINK) ||
		    nr == FLEXSC_MAX_CHAIN)
			return (int)nr;
		value = peek(set, &view->sq, position + nr);
		if (!value)
			return 0;
	}
}

int fx_set_take(struct fx_set *set, struct fx_worker_view *view,
		uint32_t *indices,
		bool (*wanted)(const struct flexsc_entry *entry, void *arg),
		void *arg)
{
	struct flexsc_set *shared = set->shared;
	uint64_t head = fx_load_acquire(&shared->sq_head);

	for (;;) {
		struct fx_ring_view at_head;
		uint32_t value = peek(set, &view->sq, head);
		int nr;

		if (!value)
			return 0;
		at_head = view->sq;
		if (value & FLEXSC_SLOT_NOTICE) {
			indices[0] = value & FLEXSC_SLOT_INDEX;
			nr = -1;
		} else {
			nr = peek_chain(set, view, head, value, indices);
			/* Lost the head to somebody: start over there. */
			if (nr == 0) {
				uint64_t now = fx_load_acquire(&shared->sq_head);

				view->sq = at_head;
				if (now == head)
					return 0;
				head = now;
				continue;
			}
			if (wanted &&
			    !wanted(&set->entries[indices[0]], arg)) {
				view->sq = at_head;
				return 0;
			}
		}
		if (fx_cas(&shared->sq_head, &head,
			   head + (nr < 0 ? 1 : (uint64_t)nr))) {
			for (int i = 0; i < nr; i++) {
				set->beside[indices[i]].posted =
					(uint32_t)head + (uint32_t)i;
				fx_store_relaxed(
					&set->entries[indices[i]].ret, 0);
			}
			return nr;
		}
		/* The view may have run ahead into a segment head is not in. */
		view->sq = at_head;
	}
}

bool fx_set_has_work(struct fx_set *set, struct fx_worker_view *view)
{
	return peek(set, &view->sq, fx_load_acquire(&set->shared->sq_head)) !=
	       0;
}

static bool is_marked(const struct fx_slot *mine)
{
	return mine->notices || mine->cancelled;
}

static struct fx_slot *mark(struct fx_set *set, uint32_t index)
{
	struct fx_slot *mine = &set->slots[index];

	if (!is_marked(mine))
		set->nr_marked++;
	return mine;
}

void fx_set_unmark(struct fx_set *set, uint32_t index)
{
	struct fx_slot *mine = &set->slots[index];

	if (is_marked(mine))
		set->nr_marked--;
	*mine = (struct fx_slot){ 0 };
}

enum fx_cancel fx_set_cancel(struct fx_set *set, uint32_t index)
{
	uint32_t *status = &set->entries[index].status;
	uint32_t expected = FLEXSC_SUBMITTED;

	if (set->slots[index].cancelled)
		return FX_CANCEL_DONE;
	if (fx_cas(status, &expected, FLEXSC_CANCEL)) {
		mark(set, index)->cancelled = 1;
		return FX_CANCEL_BEFORE;
	}
	if (expected == FLEXSC_BUSY &&
	    fx_cas(status, &expected, FLEXSC_CANCEL)) {
		mark(set, index)->cancelled = 1;
		return FX_CANCEL_BUSY;
	}
	return FX_CANCEL_DONE;
}

void fx_set_notify(struct fx_set *set, uint32_t index)
{
	mark(set, index)->notices++;
	fx_set_publish(set, index | FLEXSC_SLOT_NOTICE);
}

bool fx_set_owner_sleep(struct fx_set *set)
{
	uint32_t *flag = &set->shared->owner_sleeping;

	fx_store_relaxed(flag, 1u);
	fx_fence();
	if (!fx_set_has_completion(set))
		return true;
	fx_set_owner_awake(set);
	return false;
}
