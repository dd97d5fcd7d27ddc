/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls that were expected to end soon: who blocks in one for long is
 * interrupted, so that the rest of its entries go on.
 */
#ifndef FXK_WATCH_H
#define FXK_WATCH_H

#include "fxk.h"

void fxk_watch_init(struct fxk_ctx *ctx);
void fxk_watch_fini(struct fxk_ctx *ctx);

/* Under ctx->lock: there is a runner. Costs nothing while others just were. */
static inline void fxk_watch(struct fxk_ctx *ctx)
{
	if (likely(ctx->watching))
		return;
	WRITE_ONCE(ctx->watching, true);
	mod_timer(&ctx->watch, jiffies + msecs_to_jiffies(10));
}

/* The runner sleeps, in no call: nothing is to be watched until it resumes. */
static inline void fxk_watch_pause(struct fxk_runner *r)
{
	WRITE_ONCE(r->idle, true);
}

static inline void fxk_watch_resume(struct fxk_runner *r)
{
	WRITE_ONCE(r->idle, false);
	/* Order: pairs with the tick that sees nobody awake. */
	smp_mb();
	if (likely(READ_ONCE(r->ctx->watching)))
		return;
	spin_lock_irq(&r->ctx->lock);
	fxk_watch(r->ctx);
	spin_unlock_irq(&r->ctx->lock);
}

#endif /* FXK_WATCH_H */
