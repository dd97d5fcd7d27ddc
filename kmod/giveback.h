/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Giving calls back to user space, which goes on by itself: for a process that
 * may not be served any more, because a filter was put on it, say.
 */
#ifndef FXK_GIVEBACK_H
#define FXK_GIVEBACK_H

#include "fxk.h"

/* FLEXSC_IOC_STOP with an argument; the set is stopped. */
long fxk_give_back(struct fxk_ctx *ctx, struct flexsc_stop __user *argument);

#endif /* FXK_GIVEBACK_H */
