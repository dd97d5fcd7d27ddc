/* SPDX-License-Identifier: MIT */
/*
 * Windows of time for the rules of engine/worth.h: what engines hybrid and
 * kmod have in common, which both try a core thread and give it up.
 */
#ifndef FX_ENGINE_TRIAL_H
#define FX_ENGINE_TRIAL_H

#include "engine/engine.h"
#include "engine/worth.h"

/* All of it is the owner's. */
struct fx_trial {
	struct fx_worth worth;
	unsigned waits; /* until the next look at the clock */
	/* At the beginning of the window. */
	uint64_t begin_ns, looked_ns, cpu_ns, completed;
};

enum fx_trial_look {
	FX_TRIAL_GOES_ON,
	FX_TRIAL_AGAIN, /* there was a gap: a window has begun now */
	FX_TRIAL_OVER, /* fx_trial_begin() is to follow */
};

/* At each wait: is it time to look? */
static inline bool fx_trial_due(struct fx_trial *trial)
{
	return trial->waits-- <= 1;
}

/**
 * fx_trial_look - is a window over?
 * @window: then it is filled, but for `crowded`
 */
enum fx_trial_look fx_trial_look(struct fx_trial *trial,
				 const struct flexsc_counters *counters,
				 struct fx_worth_window *window);
void fx_trial_begin(struct fx_trial *trial,
		    const struct flexsc_counters *counters);

/* Does another processor seem to be free? */
bool fx_trial_processor_free(void);

#endif /* FX_ENGINE_TRIAL_H */
