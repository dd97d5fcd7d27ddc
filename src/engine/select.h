/* SPDX-License-Identifier: MIT */
/* Which engine serves an owner, and why. */
#ifndef FX_ENGINE_SELECT_H
#define FX_ENGINE_SELECT_H

#include "engine/engine.h"

#define FX_REASON_SIZE 256

/* All engines, best first, NULL at the end. */
extern const struct fx_engine_ops *const fx_engines[];

/* By name; NULL if there is none of that name. */
const struct fx_engine_ops *fx_engine_find(const char *name);

/**
 * fx_engine_new - the engine asked for, or the next best that works here
 * @wanted: a name, or "auto"
 * @reason: one sentence: why this one
 *
 * Never fails for lack of an engine: sync works everywhere.
 * Return: 0, -EINVAL (no engine of that name), -ENOMEM, -EMFILE.
 */
int fx_engine_new(struct fx_engine **engine, const char *wanted,
		  const struct fx_engine_config *config,
		  char reason[FX_REASON_SIZE]);

#endif /* FX_ENGINE_SELECT_H */
