/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls that have left their page: memory, and the map by which a request to
 * cancel finds them. An entry has one call under way at most.
 */
#ifndef FXK_CALL_H
#define FXK_CALL_H

#include "fxk.h"

int fxk_calls_init(void);
void fxk_calls_fini(void);

int fxk_inflight_init(struct fxk_ctx *ctx);
void fxk_inflight_free(struct fxk_ctx *ctx);

/* Under ctx->lock. NULL: not under way. */
struct fxk_call *fxk_inflight_find(struct fxk_ctx *ctx, u32 index);

/* All that no runner holds is forgotten; the set is dead. */
void fxk_inflight_drop(struct fxk_ctx *ctx);

/* A call in memory of its own; NULL: none left. */
struct fxk_call *fxk_call_new(struct fxk_runner *r, u32 index, u16 nr,
			      u8 flags);

/* The file it is armed on and its memory; no longer under way. */
void fxk_call_free(struct fxk_call *call);

/* The same; its memory may be for the next call of this runner. */
void fxk_call_put(struct fxk_runner *r, struct fxk_call *call);

/* Memory that a runner has kept. */
void fxk_spare_free(struct fxk_runner *r);

/**
 * fxk_call_away - take a call off the runner's stack, and note it as under way
 *
 * Return: the call, which the caller holds as before; or an error pointer:
 * -EBUSY (the entry has one already), -ENOMEM: that is the result.
 */
struct fxk_call *fxk_call_away(struct fxk_runner *r, struct fxk_call *call);

#endif /* FXK_CALL_H */
