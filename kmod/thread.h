/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Syscall threads: threads of the process, lent by WAIT (flexsc-osdi10.txt,
 * 3.4). They carry out calls that may wait for ever; with FLEXSC_WAIT_POLL they
 * are a kernel core (core.h).
 */
#ifndef FXK_THREAD_H
#define FXK_THREAD_H

#include "fxk.h"

/* FLEXSC_IOC_WAIT. */
long fxk_wait(struct fxk_ctx *ctx, const struct flexsc_wait *want);

/* Leave a call, away and held, to the threads. */
void fxk_queue(struct fxk_ctx *ctx, struct fxk_call *call);

/* How many calls are short of a thread? */
static inline u32 fxk_wants_threads(const struct fxk_ctx *ctx)
{
	u32 queued = READ_ONCE(ctx->nr_queued), idle = READ_ONCE(ctx->nr_idle);

	return queued > idle ? queued - idle : 0;
}

/* Carry it out however long it takes. By a runner that may block. */
enum fxk_step fxk_block(struct fxk_runner *r, struct fxk_call *call, s64 *ret);

/* For core.c: why a thread cannot go on, or 0; the owner hears of results. */
int fxk_must_stop(struct fxk_runner *r);
void fxk_tell_completed(struct fxk_runner *r);

#endif /* FXK_THREAD_H */
