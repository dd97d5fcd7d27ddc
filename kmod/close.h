/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Closing descriptors that calls wait on: they end before it. What another
 * runner took before the close it may not have come to arm yet, or to look its
 * descriptor up: who closes lets it get so far. (Two runners take entries where
 * there is a kernel core: it, and the owner in RUN, who helps.)
 *
 * A call is listed as armed and then looks if its descriptor is still there;
 * who closes does so and then looks what is armed: one of them sees the other,
 * even where there was no waiting (a process that was killed, a disk).
 */
#ifndef FXK_CLOSE_H
#define FXK_CLOSE_H

#include "fxk.h"

/*
 * Could there be calls that this one has to end, or to wait for? Without a
 * lock: who takes an entry later is not meant.
 */
static inline bool fxk_closes_nothing(const struct fxk_runner *r)
{
	const struct fxk_ctx *ctx = r->ctx;

	return ctx->flags & FLEXSC_REG_KEEP_FILES ||
	       (!READ_ONCE(ctx->nr_armed) && r == ctx->own &&
		hlist_empty(&ctx->runners));
}

/**
 * fxk_close_begin - @call will close a descriptor, if it succeeds
 *
 * What waits for it is complete on return. Context: may sleep. Return: which;
 * -1: none, or nobody waits there.
 */
int fxk_close_begin(struct fxk_runner *r, const struct fxk_call *call);

/* It was made. @fd: from fxk_close_begin(), not -1. */
void fxk_close_end(struct fxk_runner *r, int fd);

#endif /* FXK_CLOSE_H */
