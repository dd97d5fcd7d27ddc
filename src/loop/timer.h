/* SPDX-License-Identifier: MIT */
/*
 * Timers of a loop: a heap with four children a node, of deadlines and
 * events. An event knows its place (timer_, counted from 1), so that removing
 * it is as cheap as adding it.
 */
#ifndef FX_LOOP_TIMER_H
#define FX_LOOP_TIMER_H

#include "base/types.h"

#include <flexsc.h>

struct fx_timer {
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
	struct flexsc_event *ev;
};

struct fx_timers {
	struct fx_timer *heap;
	uint32_t nr, room;
};

void fx_timers_fini(struct fx_timers *timers);

/* Return: 0 or -ENOMEM. */
int fx_timers_add(struct fx_timers *timers, struct flexsc_event *ev,
		  uint64_t deadline_ns);
void fx_timers_remove(struct fx_timers *timers, struct flexsc_event *ev);

/* The next event due at @now_ns, taken out; NULL if there is none. */
struct flexsc_event *fx_timers_pop(struct fx_timers *timers, uint64_t now_ns);

static inline bool fx_timers_empty(const struct fx_timers *timers)
{
	return timers->nr == 0;
}

#endif /* FX_LOOP_TIMER_H */
