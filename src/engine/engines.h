/* SPDX-License-Identifier: MIT */
/* The engines there are; included by them and by engine/select.c only. */
#ifndef FX_ENGINE_ENGINES_H
#define FX_ENGINE_ENGINES_H

#include "engine/engine.h"

#include <stdio.h>

extern const struct fx_engine_ops fx_engine_kmod;
extern const struct fx_engine_ops fx_engine_kcore;
extern const struct fx_engine_ops fx_engine_hybrid;
extern const struct fx_engine_ops fx_engine_uthread;
extern const struct fx_engine_ops fx_engine_uring;
extern const struct fx_engine_ops fx_engine_poll;
extern const struct fx_engine_ops fx_engine_sync;

#endif /* FX_ENGINE_ENGINES_H */
