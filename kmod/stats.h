/* SPDX-License-Identifier: GPL-2.0-only */
/* What there is, and what happened: for tests, and for administrators. */
#ifndef FXK_STATS_H
#define FXK_STATS_H

#include "fxk.h"

/* Over all sets; all of them are 0 when the module can be unloaded. */
extern struct fxk_objects {
	atomic64_t sets, calls, threads, pages;
} fxk_objects;

/* A set begins, and ends: its events are added to those of all. */
void fxk_stats_add(struct fxk_ctx *ctx);
void fxk_stats_drop(struct fxk_ctx *ctx);

/* @ctx: NULL if there is none. Return: 0, -EFAULT. */
long fxk_stats_read(struct fxk_ctx *ctx, struct flexsc_stats __user *to);

#define fxk_count(ctx, what) atomic64_inc(&(ctx)->events.what)

#endif /* FXK_STATS_H */
