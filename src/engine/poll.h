/* SPDX-License-Identifier: MIT */
/*
 * The state of engine poll, for engines that are that and one thing more:
 * they embed it first, pass their calls on to fx_engine_poll's functions, and
 * take in fx_pool.instead what would have cost a thread.
 */
#ifndef FX_ENGINE_POLL_H
#define FX_ENGINE_POLL_H

#include "engine/engine.h"
#include "engine/run.h"

/* Key: O owner only, except what has a lock of its own. */
struct fx_poll {
	struct fx_engine base;
	struct fx_runner runner; /* the owner's */

	/* Written by whoever carries calls out. */
	struct fx_park park __attribute__((aligned(FX_CACHE_LINE)));
	struct fx_pool pool;
	struct fx_cost cost;

	/* of the owner's thread */
	struct fx_guard guard __attribute__((aligned(FX_CACHE_LINE)));
	enum fx_try verdict; /* O: of the attempt before a post */
	uint32_t seq; /* O */
	unsigned done; /* O: calls of the chain that were done in the attempt */
	uint32_t idle_looks; /* O: empty looks in a row, nothing posted since */
};

/* Zeroed memory for an engine that begins with struct fx_poll, or NULL. */
void *fx_poll_alloc(size_t size);

/* @wakefd: the park's; the owner's eventfd, or beside it. */
int fx_poll_init(struct fx_poll *poll, const struct fx_engine_ops *ops,
		 const struct fx_engine_config *config, int wakefd);
void fx_poll_fini(struct fx_poll *poll);

/* In a forked child, in place of fx_poll_fini(). */
void fx_poll_abandon(struct fx_poll *poll);

/* fx_engine_ops.made, .patient, .moving */
void fx_poll_made(struct fx_engine *engine, const struct flexsc_entry *call,
		  uint64_t ns);
int fx_poll_patient(struct fx_engine *engine, int fd);
bool fx_poll_moving(struct fx_engine *engine, int fd, int to);

#endif /* FX_ENGINE_POLL_H */
