// SPDX-License-Identifier: GPL-2.0-only
/* Memory of calls, and which entry has which call. */
#include "call.h"

#include "arm.h"
#include "stats.h"

#include <linux/slab.h>

/* Of one runner, kept for its next calls. */
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
	if (!ctx->inflight)
		return;
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

/* Memory that is left of an earlier call, or new: which is zeroed, and large. */
static struct fxk_call *alloc(struct fxk_runner *r)
{
	struct fxk_call *call = r->spare;

	if (unlikely(!call))
		return kmem_cache_alloc(cache, GFP_KERNEL);
	r->spare = call->next;
	r->nr_spare--;
	return call;
}

/* Not all of it is set, for the same reason. */
struct fxk_call *fxk_call_new(struct fxk_runner *r, u32 index, u16 nr, u8 flags)
{
	struct fxk_call *call = alloc(r);

	if (!call)
		return NULL;
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
	call->ctx = r->ctx;
	call->index = index;
	call->nr = nr;
	call->flags = flags;
	call->heap = true;
	atomic64_inc(&fxk_objects.calls);
	return call;
}

/* All but its memory. */
static void end(struct fxk_call *call)
{
	struct fxk_ctx *ctx = call->ctx;

	if (call->away) {
		spin_lock_irq(&ctx->lock);
		ctx->inflight[call->index / FLEXSC_PAGE_ENTRIES]
			     [call->index % FLEXSC_PAGE_ENTRIES] = NULL;
		spin_unlock_irq(&ctx->lock);
	}
	if (call->file)
		fput(call->file);
	atomic64_dec(&fxk_objects.calls);
}

void fxk_call_free(struct fxk_call *call)
{
	end(call);
	kmem_cache_free(cache, call);
}

void fxk_call_put(struct fxk_runner *r, struct fxk_call *call)
{
	end(call);
	if (r != r->ctx->own || r->nr_spare == MAX_SPARE) {
		kmem_cache_free(cache, call);
		return;
	}
	call->next = r->spare;
	r->spare = call;
	r->nr_spare++;
}

void fxk_spare_free(struct fxk_runner *r)
{
	struct fxk_call *call;

	while ((call = r->spare)) {
		r->spare = call->next;
		kmem_cache_free(cache, call);
	}
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

struct fxk_call *fxk_call_away(struct fxk_runner *r, struct fxk_call *call)
{
	struct fxk_ctx *ctx = r->ctx;
	struct fxk_call **place, *mine = call;

	if (call->away)
		return call;
	if (!map_page(ctx, call->index))
		return ERR_PTR(-ENOMEM);
	if (!call->heap) {
		mine = fxk_call_new(r, call->index, call->nr, call->flags);
		if (!mine)
			return ERR_PTR(-ENOMEM);
		copy_arguments(&mine->regs, &call->regs);
		mine->done = call->done;
		mine->thread = call->thread;
	}
	spin_lock_irq(&ctx->lock);
	place = &ctx->inflight[call->index / FLEXSC_PAGE_ENTRIES]
			      [call->index % FLEXSC_PAGE_ENTRIES];
	if (!*place) {
		*place = mine;
		mine->away = true;
	}
	spin_unlock_irq(&ctx->lock);
	if (likely(mine->away))
		return mine;
	if (mine != call)
		fxk_call_put(r, mine);
	return ERR_PTR(-EBUSY);
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
