/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RUN: the calling thread carries out what is there (one crossing for a whole
 * batch), and sleeps until there is more, if it wants to.
 */
#ifndef FXK_RUN_H
#define FXK_RUN_H

#include "fxk.h"

/* FLEXSC_IOC_RUN. */
long fxk_run(struct fxk_ctx *ctx, u64 timeout_ns);

/* What is the same for all runs of a set. */
void fxk_runner_init(struct fxk_runner *r, struct fxk_ctx *ctx);

/*
 * Who runs a set alone, as is usual, has ctx->own: it is taken by its field
 * task, and what it knows of the rings is kept from one RUN to the next. No
 * lock is needed for that. Who looks at it from elsewhere does so between
 * these two, under ctx->lock: if it is in a call then, it will not end before
 * the lock is free.
 *
 * Order: poking before current_entry here, the other way round in RUN's end.
 */
static inline struct fxk_runner *fxk_look_at_own(struct fxk_ctx *ctx)
{
	WRITE_ONCE(ctx->poking, 1);
	smp_mb();
	return ctx->own;
}

static inline void fxk_leave_own(struct fxk_ctx *ctx)
{
	smp_store_release(&ctx->poking, 0);
}

/*
 * A thread becomes a runner, and stops being one. Return: 0; -EDEADLK: it is
 * one already, for this set or another: a posted request is not carried out.
 */
int fxk_runner_begin(struct fxk_runner *r, struct fxk_ctx *ctx);
void fxk_runner_end(struct fxk_runner *r);

/**
 * fxk_run_some - carry out what became ready, and submissions
 *
 * Stops for signals, and when there was enough for one round.
 * Return: false if there is nothing more to do at once.
 */
bool fxk_run_some(struct fxk_runner *r);

void fxk_run_init(void);
void fxk_run_fini(void);

#endif /* FXK_RUN_H */
