/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Access to the mapping: pages, entries, slots of the rings. All of it can
 * change under us at any time. Every value is read once; what is used as an
 * index is bounded by what the module keeps in its own memory.
 */
#ifndef FXK_RING_H
#define FXK_RING_H

#include "fxk.h"
#include "trace.h"

#include <linux/nospec.h>

#define FXK_TAG_MASK \
	(FLEXSC_SLOT_VALID | FLEXSC_SLOT_LAP_MASK << FLEXSC_SLOT_LAP_SHIFT)

/**
 * fxk_page_get - a page of the mapping, which comes to be if it was not there
 * @nr: below ctx->nr_pages
 * @gfp: GFP_KERNEL_ACCOUNT, perhaps with __GFP_NOFAIL
 *
 * Context: process. Return: its address, or 0.
 */
unsigned long fxk_page_get(struct fxk_ctx *ctx, u32 nr, gfp_t gfp);
void fxk_pages_free(struct fxk_ctx *ctx);

static inline struct flexsc_set *fxk_header(const struct fxk_ctx *ctx)
{
	return (struct flexsc_set *)ctx->pages[0];
}

/* Any position: it is user space's, too, and only ever used modulo a size. */
static inline u64 fxk_sq_head(const struct fxk_ctx *ctx)
{
	return smp_load_acquire(&fxk_header(ctx)->sq_head);
}

/* @index: below ctx->max_entries. NULL: nobody ever wrote to its page. */
static inline struct flexsc_entry *fxk_entry(const struct fxk_ctx *ctx,
					     u32 index)
{
	u32 page = ctx->entries_page + index / FLEXSC_PAGE_ENTRIES;
	unsigned long at =
		READ_ONCE(ctx->pages[array_index_nospec(page, ctx->nr_pages)]);

	if (unlikely(!at))
		return NULL;
	return (struct flexsc_entry *)at + index % FLEXSC_PAGE_ENTRIES;
}

static inline void fxk_view_set(struct fxk_view *view, u32 segment)
{
	u32 size = FLEXSC_RING_MIN << segment;

	view->segment = segment;
	view->mask = size - 1;
	view->base = size - FLEXSC_RING_MIN;
	view->shift = ilog2(FLEXSC_RING_MIN) + segment;
	view->until = U64_MAX;
}

/* Bring @view to @position; @starts: user space's, in the header. */
static inline void fxk_view_move(const struct fxk_ctx *ctx,
				 struct fxk_view *view, const __u64 *starts,
				 u64 position)
{
	for (;;) {
		view->until = smp_load_acquire(&starts[view->segment + 1]);
		if (likely(position < view->until) ||
		    view->segment + 1 >= ctx->nr_segments)
			return;
		fxk_view_set(view, view->segment + 1);
	}
}

/* Below the number of slots, whatever @position is. */
static inline u32 fxk_view_slot(const struct fxk_view *view, u64 position)
{
	return view->base + ((u32)position & view->mask);
}

static inline u32 fxk_view_tag(const struct fxk_view *view, u64 position)
{
	return FLEXSC_SLOT_VALID |
	       ((u32)(position >> view->shift) & FLEXSC_SLOT_LAP_MASK)
		       << FLEXSC_SLOT_LAP_SHIFT;
}

/**
 * fxk_peek - the slot of the submission ring at @position, 0 if it is not filled
 */
static inline u32 fxk_peek(const struct fxk_ctx *ctx, struct fxk_view *view,
			   u64 position)
{
	u32 slot, value;
	unsigned long at;

	fxk_view_move(ctx, view, fxk_header(ctx)->sq_start, position);
	slot = fxk_view_slot(view, position);
	at = READ_ONCE(ctx->pages[ctx->sq_page + slot / (PAGE_SIZE / 4)]);
	if (unlikely(!at))
		return 0;
	value = smp_load_acquire(&((u32 *)at)[slot % (PAGE_SIZE / 4)]);
	return (value & FXK_TAG_MASK) == fxk_view_tag(view, position) ? value :
									0;
}

/**
 * fxk_take - take a chain, or an entry with which something is unusual
 * @indices: room for FLEXSC_MAX_CHAIN
 *
 * Return: how many; 0: nothing there; -1: a notice for indices[0]; -2: a slot
 * that names no entry was dropped.
 */
int fxk_take(struct fxk_runner *r, u32 *indices);

extern const u64 fxk_no_position;

/* It is nowhere: the first record finds its place. */
static inline void fxk_cursor_init(struct fxk_cursor *c)
{
	c->next_start = &fxk_no_position;
}

/* The record at a position that was reserved, wherever that is. */
void fxk_put_at(struct fxk_runner *r, u64 position, u32 what, u32 ret);

/*
 * A record on the completion ring. @what: index, perhaps with NOTICE; @ret: the
 * slot's upper half. Order: a segment that was begun before the entry was published
 * is seen, since its start is read after the entry was taken.
 */
static __always_inline void fxk_put_narrow(struct fxk_runner *r,
					   struct flexsc_set *set, u32 what,
					   u32 ret)
{
	struct fxk_cursor *c = &r->done;
	u64 position = xadd(&set->cq_tail, 1);
	u64 *slot = c->slot;

	if (unlikely(position != c->position ||
		     position >= READ_ONCE(*c->next_start))) {
		fxk_put_at(r, position, what, ret);
		return;
	}
	c->slot = slot + 1;
	c->position = position + 1;
	if (unlikely(slot + 1 == c->end))
		fxk_cursor_init(c);
	smp_store_release(slot, (u64)ret << 32 | c->tag | what);
}

static inline void fxk_put(struct fxk_runner *r, u32 what, s64 ret)
{
	fxk_put_narrow(r, fxk_header(r->ctx), what,
		       ret == (s32)ret ? (u32)ret : (u32)FLEXSC_SLOT_WIDE);
}

/* Result, DONE, slot. Who is not the owner tells it: fxk_tell(). */
static inline void fxk_complete_at(struct fxk_runner *r,
				   struct flexsc_entry *entry, u32 index,
				   s64 ret)
{
	WRITE_ONCE(entry->ret, ret);
	smp_store_release(&entry->status, FLEXSC_DONE);
	trace_flexsc_done(r->ctx, index, ret);
	fxk_put(r, index, ret);
	r->nr_completed++;
}

static inline void fxk_complete(struct fxk_runner *r, u32 index, s64 ret)
{
	fxk_complete_at(r, fxk_entry(r->ctx, index), index, ret);
}

static inline bool fxk_cancel_wanted(const struct fxk_ctx *ctx, u32 index)
{
	return smp_load_acquire(&fxk_entry(ctx, index)->status) ==
	       FLEXSC_CANCEL;
}

#endif /* FXK_RING_H */
