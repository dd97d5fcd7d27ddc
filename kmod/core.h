/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A kernel core: threads in WAIT_POLL, of which one at a time polls the ring
 * (flexsc-osdi10.txt, 3.6: one active thread per core and process). It has the
 * role; when it blocks in a call, the role goes to one that stands by, at once
 * and by the preempt notifier, and it stands by itself when its call is over.
 *
 * Protocol. ctx->core is the thread with the role, under ctx->lock.
 * ctx->core_awake says that there is one and that it is not blocked in a call:
 * then who has work for a runner tells it, else the owner, who helps. Who
 * blocks clears it, and then looks by irq_work if there was work that the
 * others left to it; who comes back sets it if the role is still its own.
 */
#ifndef FXK_CORE_H
#define FXK_CORE_H

#include "fxk.h"

void fxk_core_init(struct fxk_ctx *ctx);
void fxk_core_fini(struct fxk_ctx *ctx);

/* Until it must stop; a negative number says why. By a thread that joined. */
int fxk_core_poll(struct fxk_runner *r, const struct flexsc_wait *want);

/* It is to look, if it sleeps. Context: any, no lock of a file's queue. */
static inline void fxk_core_kick(struct fxk_ctx *ctx)
{
	/* Order: pairs with who goes to sleep there. */
	smp_mb();
	if (waitqueue_active(&ctx->core_wq))
		wake_up(&ctx->core_wq);
}

/* Threads of WAIT_POLL that are inside come back with -ECANCELED. */
void fxk_core_dismiss(struct fxk_ctx *ctx);

#endif /* FXK_CORE_H */
