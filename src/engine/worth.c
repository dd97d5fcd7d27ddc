/* SPDX-License-Identifier: MIT */
/* The rules by which a core thread is tried, kept and given up. */
#include "engine/worth.h"

/* An owner that is not busy for this share of its time waits for others. */
#define BUSY 0.9
/* One that is idle for most of it, even with a core thread, needs none. */
#define IDLE 0.25
/* A second processor for less than this would be a poor use of it. */
#define GAIN 1.15

#define FIRST_PAUSE_NS (500 * FX_NS_PER_MS)
#define LAST_PAUSE_NS (64 * FX_NS_PER_SEC)
#define FIRST_HOLD_NS (1 * FX_NS_PER_SEC)
#define LAST_HOLD_NS (32 * FX_NS_PER_SEC)

static uint64_t twice(uint64_t ns, uint64_t first, uint64_t last)
{
	return ns == 0 ? first : ns * 2 > last ? last : ns * 2;
}

void fx_worth_refuse(struct fx_worth *w, uint64_t now_ns)
{
	w->state = FX_WORTH_WITHOUT;
	w->pause_ns = twice(w->pause_ns, FIRST_PAUSE_NS, LAST_PAUSE_NS);
	w->next_ns = now_ns + w->pause_ns;
	w->hold_ns = 0;
}

static enum fx_worth_step give_up(struct fx_worth *w, uint64_t now_ns)
{
	fx_worth_refuse(w, now_ns);
	return FX_WORTH_STOP;
}

static enum fx_worth_step without(struct fx_worth *w,
				  const struct fx_worth_window *v, double busy)
{
	if (v->now_ns < w->next_ns || busy < BUSY || !v->completions)
		return FX_WORTH_STAY;
	w->without = (double)v->completions / (double)v->ns;
	w->state = FX_WORTH_WARMING;
	return FX_WORTH_START;
}

static enum fx_worth_step with(struct fx_worth *w,
			       const struct fx_worth_window *v, double busy)
{
	if (v->crowded || busy < IDLE)
		return give_up(w, v->now_ns);
	if (v->now_ns < w->next_ns)
		return FX_WORTH_STAY;
	/* A window without, then another trial. */
	w->state = FX_WORTH_WITHOUT;
	w->next_ns = v->now_ns;
	return FX_WORTH_STOP;
}

enum fx_worth_step fx_worth_step(struct fx_worth *w,
				 const struct fx_worth_window *v)
{
	double busy = (double)v->cpu_ns / (double)v->ns;

	switch (w->state) {
	case FX_WORTH_WITHOUT:
		return without(w, v, busy);
	case FX_WORTH_WARMING:
		w->state = FX_WORTH_TRYING;
		return FX_WORTH_STAY;
	case FX_WORTH_TRYING:
		if (v->crowded ||
		    (double)v->completions < GAIN * w->without * (double)v->ns)
			return give_up(w, v->now_ns);
		w->state = FX_WORTH_WITH;
		w->pause_ns = 0;
		w->hold_ns = twice(w->hold_ns, FIRST_HOLD_NS, LAST_HOLD_NS);
		w->next_ns = v->now_ns + w->hold_ns;
		return FX_WORTH_STAY;
	case FX_WORTH_WITH:
		break;
	}
	return with(w, v, busy);
}
