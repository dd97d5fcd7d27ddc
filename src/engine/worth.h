/* SPDX-License-Identifier: MIT */
/*
 * Is a core thread worth its processor? Nobody can tell beforehand: it depends
 * on what the application does between its calls, on the machine, and on who
 * else wants that processor. So it is tried: a window without, a window with,
 * and the faster one stays, to be compared again after a while.
 *
 * No clocks and no threads here: the engine measures windows and does what it
 * is told (engine/hybrid.c).
 */
#ifndef FX_ENGINE_WORTH_H
#define FX_ENGINE_WORTH_H

#include "base/types.h"

/* Shorter ones show the scheduler, longer ones the application's phases. */
#define FX_WORTH_WINDOW_NS (8 * FX_NS_PER_MS)

enum fx_worth_state {
	FX_WORTH_WITHOUT,
	FX_WORTH_WARMING, /* with, caches cold: not measured */
	FX_WORTH_TRYING, /* with, to be compared */
	FX_WORTH_WITH,
};

struct fx_worth {
	enum fx_worth_state state;
	double without; /* completions a nanosecond */
	uint64_t next_ns; /* when to compare (again) */
	uint64_t pause_ns; /* until a new trial after one that failed */
	uint64_t hold_ns; /* until a comparison after one that succeeded */
};

/* What the engine saw; times are its own clock's. */
struct fx_worth_window {
	uint64_t now_ns, ns; /* end, length */
	uint64_t cpu_ns; /* processor time of the owner's thread */
	uint64_t completions;
	bool crowded; /* with: the core thread waited for its processor */
};

enum fx_worth_step { FX_WORTH_STAY, FX_WORTH_START, FX_WORTH_STOP };

/* A window is over: what now? The caller does it at once. */
enum fx_worth_step fx_worth_step(struct fx_worth *worth,
				 const struct fx_worth_window *window);

/* The start that was asked for is not possible at present. */
void fx_worth_refuse(struct fx_worth *worth, uint64_t now_ns);

#endif /* FX_ENGINE_WORTH_H */
