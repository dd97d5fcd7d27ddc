/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ending calls by request (libflexsc-atc11.txt, 4.2). What waits is made ready
 * and finds, when it goes on, that it is to end; what a thread is in is
 * interrupted as by a signal that nobody sees.
 */
#ifndef FXK_CANCEL_H
#define FXK_CANCEL_H

#include "fxk.h"

/* FLEXSC_IOC_CANCEL. Return: 0; -ENOENT: about to complete; -EINVAL. */
long fxk_cancel(struct fxk_ctx *ctx, u64 index);

/* FLEXSC_IOC_CLOSING: what is armed on a descriptor. */
long fxk_closing(struct fxk_ctx *ctx, u64 fd);

/*
 * The same; @gone: of those whose file is not there any more. What was armed
 * is ready then, and a runner was told. Return: was there any?
 */
bool fxk_end_armed_on(struct fxk_ctx *ctx, int fd, bool gone);

/*
 * Under ctx->lock: make a runner's task come out of its call, if it waits
 * interruptibly.
 */
void fxk_poke(struct fxk_runner *r);

#endif /* FXK_CANCEL_H */
