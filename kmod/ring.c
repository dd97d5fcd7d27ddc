// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pages of the mapping, and the less usual half of the rings. Rules and
 * layout are those of <linux/flexsc.h>.
 */
#include "ring.h"
#include "stats.h"

#include <linux/gfp.h>

/* No position is below it. */
const u64 fxk_no_position;

unsigned long fxk_page_get(struct fxk_ctx *ctx, u32 nr, gfp_t gfp)
{
	unsigned long *place =
		&ctx->pages[array_index_nospec(nr, ctx->nr_pages)];
	unsigned long at = READ_ONCE(*place), before;

	if (at)
		return at;
	at = __get_free_page(gfp | __GFP_ZERO);
	if (!at)
		return 0;
	before = cmpxchg(place, 0, at);
	if (before) {
		free_page(at);
		return before;
	}
	atomic64_inc(&fxk_objects.pages);
	return at;
}

void fxk_pages_free(struct fxk_ctx *ctx)
{
	for (u32 i = 0; i < ctx->nr_pages; i++) {
		if (!ctx->pages[i])
			continue;
		free_page(ctx->pages[i]);
		atomic64_dec(&fxk_objects.pages);
		cond_resched();
	}
}

/* All of a chain from @position on; 0: another consumer was faster. */
static int peek_chain(struct fxk_runner *r, u64 position, u32 value,
		      u32 *indices)
{
	struct fxk_ctx *ctx = r->ctx;
	int nr = 0;

	for (;;) {
		u32 index = value & FLEXSC_SLOT_INDEX;
		struct flexsc_entry *entry;

		if (index >= ctx->max_entries)
			return -2;
		entry = fxk_entry(ctx, index);
		if (!entry)
			return -2;
		indices[nr++] = index;
		if (!(READ_ONCE(entry->flags) & FLEXSC_F_LINK) ||
		    nr == FLEXSC_MAX_CHAIN)
			return nr;
		value = fxk_peek(ctx, &r->sq, position + nr);
		if (!value || value & FLEXSC_SLOT_NOTICE)
			return 0;
	}
}

int fxk_take(struct fxk_runner *r, u32 *indices)
{
	struct fxk_ctx *ctx = r->ctx;
	u64 head = fxk_sq_head(ctx);

	for (;;) {
		u32 value = fxk_peek(ctx, &r->sq, head);
		struct fxk_view at_head = r->sq;
		u64 now = head;
		int nr;

		if (!value)
			return 0;
		if (value & FLEXSC_SLOT_NOTICE) {
			indices[0] = value & FLEXSC_SLOT_INDEX;
			nr = indices[0] < ctx->max_entries ? -1 : -2;
		} else {
			nr = peek_chain(r, head, value, indices);
		}
		r->sq = at_head;
		if (!nr) {
			now = fxk_sq_head(ctx);
			if (now == head)
				return 0;
			head = now;
			continue;
		}
		if (try_cmpxchg(&fxk_header(ctx)->sq_head, &now,
				head + (nr < 0 ? 1 : nr)))
			return nr;
		head = now;
	}
}

/* Where the record behind the one in @slot of the ring belongs. */
static void move_on(struct fxk_runner *r, u64 position, u32 slot, u64 *at)
{
	const struct fxk_view *view = &r->cq;
	struct fxk_cursor *c = &r->done;
	/* To the end of the page, or of the lap: segments are not smaller. */
	u32 left = min_t(u32, PAGE_SIZE / 8 - 1 - slot % (PAGE_SIZE / 8),
			 view->mask - ((u32)position & view->mask));

	c->position = position + 1;
	c->slot = at + 1;
	c->end = c->slot + left;
	c->tag = fxk_view_tag(view, position);
	c->next_start =
		left ? &fxk_header(r->ctx)->cq_start[view->segment + 1] :
		       &fxk_no_position;
}

void fxk_put_at(struct fxk_runner *r, u64 position, u32 what, u32 ret)
{
	struct fxk_ctx *ctx = r->ctx;
	unsigned long at;
	u32 slot, page;

	fxk_view_move(ctx, &r->cq, fxk_header(ctx)->cq_start, position);
	slot = fxk_view_slot(&r->cq, position);
	page = ctx->cq_page + slot / (PAGE_SIZE / 8);
	at = READ_ONCE(ctx->pages[page]);
	if (unlikely(!at))
		at = fxk_page_get(ctx, page, GFP_KERNEL_ACCOUNT | __GFP_NOFAIL);
	smp_store_release(&((u64 *)at)[slot % (PAGE_SIZE / 8)],
			  (u64)ret << 32 |
				  fxk_view_tag(&r->cq, position) | what);
	move_on(r, position, slot, &((u64 *)at)[slot % (PAGE_SIZE / 8)]);
}
