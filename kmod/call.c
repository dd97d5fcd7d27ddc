// SPDX-License-Identifier: GPL-2.0-only
/* Memory of calls, and which entry has which call. */
#include "call.h"

#include "arm.h"
#include "stats.h"

#include <linux/slab.h>

/* Of one set, kept for the next calls that wait. */
#define MAX_SPARE 64

static struct kmem_cache *cache;

int fxk_calls_init(void)
{
	cache = KMEM_CACHE(fxk_call, SLAB_ACCOUNT);
	return cache ? 0 : -ENOMEM;
}

void fxk_calls_fini(void)
{
	kmem_cache_destroy(cache);
}

int fxk_inflight_init(struct fxk_ctx *ctx)
{
	ctx->inflight = kvcalloc(ctx->max_entries / FLEXSC_PAGE_ENTRIES,
				 sizeof(*ctx->inflight), GFP_KERNEL_ACCOUNT);
	return ctx->inflight ? 0 : -ENOMEM;
}

void fxk_inflight_free(struct fxk_ctx *ctx)
{
	struct fxk_call *call;

	if (!ctx->inflight)
		return;
	while ((call = ctx->spare)) {
		ctx->spare = call->next;
		kmem_cache_free(cache, call);
	}
	for (u32 i = 0; i < ctx->max_entries / FLEXSC_PAGE_ENTRIES; i++) {
		kfree(ctx->inflight[i]);
		cond_resched();
	}
	kvfree(ctx->inflight);
}

struct fxk_call *fxk_inflight_find(struct fxk_ctx *ctx, u32 index)
{
	struct fxk_call **page = ctx->inflight[index / FLEXSC_PAGE_ENTRIES];

	return page ? page[index % FLEXSC_PAGE_ENTRIES] : NULL;
}

/* Its page of the map; that there is none is rare. */
static bool map_page(struct fxk_ctx *ctx, u32 index)
{
	struct fxk_call ***place = &ctx->inflight[index / FLEXSC_PAGE_ENTRIES];
	struct fxk_call **page;

	if (likely(READ_ONCE(*place)))
		return true;
	page = kcalloc(FLEXSC_PAGE_ENTRIES, sizeof(*page), GFP_KERNEL_ACCOUNT);
	if (!page)
		return false;
	if (cmpxchg(place, NULL, page))
		kfree(page);
	return true;
}

/* Not all of it: it is large, and each call that waits has one. */
static void init(struct fxk_call *call, struct fxk_ctx *ctx, u32 index, u16 nr,
		 u8 flags)
{
	call->done = 0;
	call->thread = call->denied = false;
	call->file = NULL;
	call->next = NULL;
	call->state = FXK_HELD;
	call->away = call->woken = call->cancelled = false;
	call->nested = call->restarts = false;
	call->fd = -1;
	call->waits[0].head = call->waits[1].head = NULL;
	call->stay = NULL;
	call->ctx = ctx;
	call->index = index;
	call->nr = nr;
	call->flags = flags;
	call->heap = true;
	atomic64_inc(&fxk_objects.calls);
}

struct fxk_call *fxk_call_new(struct fxk_ctx *ctx, u32 index, u16 nr, u8 flags)
{
	struct fxk_call *call = kmem_cache_alloc(cache, GFP_KERNEL);

	if (call)
		init(call, ctx, index, nr, flags);
	return call;
}

/* Under ctx->lock: for the next one that waits; less than a new one. */
static bool save(struct fxk_ctx *ctx, struct fxk_call *call)
{
	if (ctx->nr_spare == MAX_SPARE)
		return false;
	call->next = ctx->spare;
	ctx->spare = call;
	ctx->nr_spare++;
	return true;
}

/* Under ctx->lock: one of those. NULL: none left. */
static struct fxk_call *take_spare(struct fxk_ctx *ctx,
				   const struct fxk_call *like)
{
	struct fxk_call *call = ctx->spare;

	if (!call)
		return NULL;
	ctx->spare = call->next;
	ctx->nr_spare--;
	init(call, ctx, like->index, like->nr, like->flags);
	return call;
}

void fxk_call_free(struct fxk_call *call)
{
	struct fxk_ctx *ctx = call->ctx;
	struct file *file = call->file;
	bool saved = false;

	if (call->away) {
		spin_lock_irq(&ctx->lock);
		ctx->inflight[call->index / FLEXSC_PAGE_ENTRIES]
			     [call->index % FLEXSC_PAGE_ENTRIES] = NULL;
		saved = save(ctx, call);
		spin_unlock_irq(&ctx->lock);
	}
	if (file)
		fput(file);
	if (!saved)
		kmem_cache_free(cache, call);
	atomic64_dec(&fxk_objects.calls);
}

/* The rest of the registers is nobody's. */
static void copy_arguments(struct pt_regs *to, const struct pt_regs *from)
{
	to->di = from->di;
	to->si = from->si;
	to->dx = from->dx;
	to->r10 = from->r10;
	to->r8 = from->r8;
	to->r9 = from->r9;
}

/* What it is, from the runner's stack. */
static void copy(struct fxk_call *to, const struct fxk_call *from)
{
	copy_arguments(&to->regs, &from->regs);
	to->done = from->done;
	to->thread = from->thread;
}

/* Its place is free, or it is -EBUSY. @call: NULL: one of the spare. */
static struct fxk_call *note(struct fxk_ctx *ctx, struct fxk_call *call,
			     const struct fxk_call *like)
{
	struct fxk_call **place;

	spin_lock_irq(&ctx->lock);
	place = &ctx->inflight[like->index / FLEXSC_PAGE_ENTRIES]
			      [like->index % FLEXSC_PAGE_ENTRIES];
	if (unlikely(*place)) {
		call = ERR_PTR(-EBUSY);
	} else if (call || (call = take_spare(ctx, like))) {
		*place = call;
		call->away = true;
	}
	spin_unlock_irq(&ctx->lock);
	return call;
}

struct fxk_call *fxk_call_away(struct fxk_runner *r, struct fxk_call *call)
{
	struct fxk_ctx *ctx = r->ctx;
	struct fxk_call *mine, *noted;

	if (call->away)
		return call;
	if (!map_page(ctx, call->index))
		return ERR_PTR(-ENOMEM);
	if (call->heap)
		return note(ctx, call, call);
	noted = note(ctx, NULL, call);
	if (unlikely(!noted)) {
		mine = fxk_call_new(ctx, call->index, call->nr, call->flags);
		if (!mine)
			return ERR_PTR(-ENOMEM);
		noted = note(ctx, mine, call);
		if (noted != mine)
			fxk_call_free(mine);
	}
	if (!IS_ERR(noted))
		copy(noted, call);
	return noted;
}

/* Off the lists, if no runner holds it. */
static bool seize(struct fxk_ctx *ctx, struct fxk_call *call)
{
	switch (call->state) {
	case FXK_ARMED:
		fxk_unlist(call);
		break;
	case FXK_QUEUED:
		ctx->nr_queued--;
		fallthrough;
	case FXK_READY:
		list_del(&call->link);
		break;
	case FXK_HELD:
		return false;
	}
	call->state = FXK_HELD;
	return true;
}

static void drop(struct fxk_ctx *ctx, u32 index)
{
	struct fxk_call *call, *next;

	spin_lock_irq(&ctx->lock);
	call = fxk_inflight_find(ctx, index);
	if (call && !seize(ctx, call))
		call = NULL;
	spin_unlock_irq(&ctx->lock);
	for (; call; call = next) {
		next = call->next;
		fxk_disarm(call);
		fxk_call_free(call);
	}
}

void fxk_inflight_drop(struct fxk_ctx *ctx)
{
	for (u32 page = 0; page < ctx->max_entries / FLEXSC_PAGE_ENTRIES;
	     page++) {
		if (!READ_ONCE(ctx->inflight[page]))
			continue;
		for (u32 i = 0; i < FLEXSC_PAGE_ENTRIES; i++)
			drop(ctx, page * FLEXSC_PAGE_ENTRIES + i);
		cond_resched();
	}
}
