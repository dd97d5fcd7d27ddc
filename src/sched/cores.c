/* SPDX-License-Identifier: MIT */
/* The rules by which carriers rest and are called back. */
#include "sched/cores.h"

/* Longer slices, or fewer a second, are no short requests. */
#define SLICE_NS (100 * FX_NS_PER_US)
#define SLICES_A_SECOND 5000

/* How full fewer carriers would be, at most, and what they save. */
#define FULL 0.95
#define SAVING 0.7

/* Fewer must do nearly as much, more must do more. */
#define FEWER_DO 0.93
#define MORE_DO 1.1

#define FIRST_PAUSE_NS (200 * FX_NS_PER_MS)
#define LAST_PAUSE_NS (12 * FX_NS_PER_SEC)
/* Windows that are compared; a noisy neighbour takes one or two. */
#define TRIAL_WINDOWS 3

/* Left alone for so many pauses, the number was right. */
#define FORGETS 8

static void failed(struct fx_cores_pause *p, uint64_t now_ns)
{
	if (!p->pause_ns || now_ns > p->next_ns + FORGETS * p->pause_ns)
		p->pause_ns = FIRST_PAUSE_NS;
	else if (p->pause_ns < LAST_PAUSE_NS)
		p->pause_ns *= 2;
	p->next_ns = now_ns + p->pause_ns;
}

static bool short_slices(const struct fx_cores_window *w)
{
	return w->slices * FX_NS_PER_SEC >= SLICES_A_SECOND * w->ns &&
	       w->cpu_ns <= w->slices * SLICE_NS;
}

/* How many would do, if fewer: half of them at least. */
static uint32_t fewer(const struct fx_cores *c, const struct fx_cores_window *w)
{
	double load = (double)w->cpu_ns / (double)w->ns;
	uint32_t nr = 1 + (uint32_t)(load * SAVING / FULL);

	return nr > (c->nr + 1) / 2 ? nr : (c->nr + 1) / 2;
}

static uint32_t twice(const struct fx_cores *c, const struct fx_cores_window *w)
{
	return c->nr < w->most / 2 ? c->nr * 2 : w->most;
}

/* Half of what was before: the last two windows are most of it. */
static void add(struct fx_cores *c, const struct fx_cores_window *w)
{
	c->calls = c->calls / 2 + (double)w->calls;
	c->slices = c->slices / 2 + (double)w->slices;
	c->ns = c->ns / 2 + (double)w->ns;
}

static double rate(const struct fx_cores *c)
{
	return (c->by_slices ? c->slices : c->calls) / c->ns;
}

static void try(struct fx_cores *c, uint32_t nr)
{
	c->by_slices = c->calls < c->slices / 4;
	c->rate = rate(c);
	c->before = c->nr;
	c->nr = nr;
	c->state = FX_CORES_WARMING;
}

static void begin(struct fx_cores *c, enum fx_cores_state state)
{
	c->state = state;
	c->calls = c->slices = c->ns = 0;
	c->windows = 0;
}

static void steady(struct fx_cores *c, const struct fx_cores_window *w)
{
	bool are_short = short_slices(w);

	add(c, w);
	if (w->saturated && c->nr < w->most) {
		if (!are_short)
			fx_cores_all(c, w->now_ns, w->most);
		else if (w->now_ns >= c->more.next_ns)
			try(c, twice(c, w));
		return;
	}
	if (are_short && w->now_ns >= c->fewer.next_ns && fewer(c, w) < c->nr)
		try(c, fewer(c, w));
}

static void compare(struct fx_cores *c, const struct fx_cores_window *w)
{
	bool less = c->nr < c->before;

	if (++c->windows < TRIAL_WINDOWS)
		return;
	if (rate(c) < c->rate * (less ? FEWER_DO : MORE_DO)) {
		failed(less ? &c->fewer : &c->more, w->now_ns);
		c->nr = c->before;
	} else if (!less) {
		failed(&c->fewer, w->now_ns);
	}
	begin(c, FX_CORES_STEADY);
}

uint32_t fx_cores_step(struct fx_cores *c, const struct fx_cores_window *w)
{
	if (!c->nr)
		c->nr = w->most;
	switch (c->state) {
	case FX_CORES_STEADY:
		steady(c, w);
		break;
	case FX_CORES_WARMING:
		begin(c, FX_CORES_TRYING);
		break;
	case FX_CORES_TRYING:
		add(c, w);
		compare(c, w);
		break;
	}
	return c->nr;
}

void fx_cores_all(struct fx_cores *c, uint64_t now_ns, uint32_t most)
{
	if (c->nr < most)
		failed(&c->fewer, now_ns);
	c->nr = most;
	begin(c, FX_CORES_STEADY);
}
