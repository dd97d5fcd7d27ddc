/* SPDX-License-Identifier: MIT */
/*
 * Collecting a chain. Between begin and end, postings of the loop's thread
 * land in an array; references to earlier results are found by their value
 * and turned into distances, the form in which entries carry them.
 */
#include "loop/seen.h"

#include "page/trace.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>

/* Which earlier call an argument means, or -1. */
static inline int reference(uint64_t argument)
{
	uint64_t n = argument - (uint64_t)FLEXSC_RESULT(0);

	return n < FLEXSC_CHAIN_MAX ? (int)n : -1;
}

/* May any of six arguments be one? A straight line: it is asked of each call. */
static inline bool any_reference(const __u64 *args)
{
	uint64_t least = UINT64_MAX;

#pragma GCC unroll 6
	for (unsigned i = 0; i < 6; i++) {
		uint64_t n = args[i] - (uint64_t)FLEXSC_RESULT(0);

		least = n < least ? n : least;
	}
	return least < FLEXSC_CHAIN_MAX;
}

/* Results into distances; which arguments were such, or -EINVAL. */
static __attribute__((noinline)) int
resolve(unsigned int nr_before, unsigned int nr_args, __u64 *args)
{
	unsigned int flags = 0;

	for (unsigned i = 0; i < nr_args; i++) {
		int which = reference(args[i]);

		if (which < 0)
			continue;
		if ((unsigned)which >= nr_before)
			return -EINVAL;
		args[i] = nr_before - (unsigned)which;
		flags |= FLEXSC_F_ARG(i);
	}
	return (int)flags;
}

int fx_loop_collect(struct flexsc_loop *loop, struct flexsc_event *ev,
		    unsigned int nr, const __u64 *args)
{
	const struct fx_call_desc *desc = &fx_call_table[nr];
	struct fx_collect *c = &loop->collect;
	struct flexsc_entry *mine = &c->calls[c->nr];
	int flags = 0;

	if (c->bad)
		return c->bad;
	if (ev && ev->state_)
		return c->bad = -EBUSY;
	if (c->nr == FLEXSC_CHAIN_MAX)
		return c->bad = -E2BIG;
	/* What depends on the calling thread cannot run on another one. */
	if (desc->flags & FX_CALL_SELF)
		return c->bad = -EOPNOTSUPP;
	memcpy(mine->args, args, sizeof(mine->args));
	if (any_reference(args)) {
		flags = resolve(c->nr, desc->nr_args, mine->args);
		if (flags < 0)
			return c->bad = flags;
	}
	mine->nr = (uint16_t)nr;
	mine->nr_args = desc->nr_args;
	mine->flags = (uint8_t)(flags | (c->always ? FLEXSC_F_ALWAYS : 0));
	mine->ret = 0;
	if (c->nr)
		mine[-1].flags |= FLEXSC_F_LINK;
	c->events[c->nr++] = ev;
	if (ev) {
		ev->loop_ = loop;
		ev->state_ = FX_EVENT_COLLECTED;
		c->timed |= ev->timeout_ns != 0;
	}
	return 0;
}

int flexsc_chain_begin(void)
{
	struct flexsc_loop *loop = fx_loop_current;

	if (!loop)
		return -EINVAL;
	if (loop->mode & FX_LOOP_BROKEN)
		return -ENOMEM;
	if (loop->mode & FX_LOOP_COLLECTING)
		return -EBUSY;
	loop->mode |= FX_LOOP_COLLECTING;
	loop->collect.always = loop->collect.timed = false;
	loop->collect.bad = 0;
	loop->collect.nr = 0;
	return 0;
}

int flexsc_chain_finally(void)
{
	struct flexsc_loop *loop = fx_loop_current;

	if (!loop || !(loop->mode & FX_LOOP_COLLECTING))
		return -EINVAL;
	loop->collect.always = true;
	return 0;
}

/* All time-outs, or none. */
static int start_timeouts(struct flexsc_loop *loop, struct fx_collect *c)
{
	uint64_t now = 0;
	int bad = 0;

	for (unsigned i = 0; i < c->nr && !bad; i++) {
		struct flexsc_event *ev = c->events[i];

		if (!ev || !ev->timeout_ns)
			continue;
		if (!now)
			now = fx_now_ns();
		bad = fx_timers_add(&loop->timers, ev,
				    ev->timeout_ns > FX_NEVER - now ?
					    FX_NEVER :
					    now + ev->timeout_ns);
	}
	return bad;
}

static int give_up(struct flexsc_loop *loop, struct fx_collect *c, int bad)
{
	for (unsigned i = 0; i < c->nr; i++) {
		struct flexsc_event *ev = c->events[i];

		if (!ev)
			continue;
		ev->state_ = FX_EVENT_IDLE;
		if (ev->timer_)
			fx_timers_remove(&loop->timers, ev);
	}
	return bad;
}

/* Carried out already: the next round calls the handlers. */
static void chain_done(struct flexsc_loop *loop, struct fx_collect *c,
		       uint64_t begun_ns)
{
	for (unsigned i = 0; i < c->nr; i++) {
		fx_loop_count_call(loop, c->calls[i].nr);
		if (fx_watched())
			fx_loop_seen_end(loop, c->events[i], &c->calls[i],
					 begun_ns, c->calls[i].ret);
		if (!c->events[i])
			continue;
		loop->waiting++;
		fx_loop_ready(loop, c->events[i], c->calls[i].ret);
	}
}

static void chain_taken(struct flexsc_loop *loop, struct fx_collect *c,
			uint64_t begun_ns)
{
	uint64_t cookies[FLEXSC_CHAIN_MAX];
	uint32_t indices[FLEXSC_CHAIN_MAX];

	for (unsigned i = 0; i < c->nr; i++)
		cookies[i] = (uint64_t)(uintptr_t)c->events[i];
	fx_owner_post_chain(&loop->owner, c->calls, cookies, indices, c->nr);
	for (unsigned i = 0; i < c->nr; i++) {
		fx_loop_count_call(loop, c->calls[i].nr);
		if (c->events[i])
			fx_event_posted(c->events[i], indices[i]);
		if (fx_watched())
			fx_loop_seen_taken(loop, indices[i], begun_ns);
	}
	if (loop->mode & FX_LOOP_ARMED) {
		fx_owner_flush(&loop->owner);
		fx_loop_nudge(loop);
	}
}

/* Return: when the last of them was. */
static uint64_t chain_seen(struct flexsc_loop *loop, struct fx_collect *c)
{
	uint64_t begun_ns = 0;

	for (unsigned i = 0; i < c->nr; i++)
		begun_ns = fx_loop_seen_begin(loop, c->events[i], &c->calls[i]);
	return begun_ns;
}

int flexsc_chain_end(void)
{
	struct flexsc_loop *loop = fx_loop_current;
	struct fx_collect *c;
	uint64_t begun_ns;

	if (!loop || !(loop->mode & FX_LOOP_COLLECTING))
		return -EINVAL;
	c = &loop->collect;
	loop->mode &= ~(uint64_t)FX_LOOP_COLLECTING;
	if (c->timed && !c->bad)
		c->bad = start_timeouts(loop, c);
	if (c->bad)
		return give_up(loop, c, c->bad);
	if (c->nr == 0)
		return 0;
	begun_ns = fx_watched() ? chain_seen(loop, c) : 0;
	switch (fx_owner_attempt_chain(&loop->owner, c->calls, c->nr)) {
	case FX_POST_FULL:
		return give_up(loop, c, -EAGAIN);
	case FX_POST_DONE:
		chain_done(loop, c, begun_ns);
		break;
	case FX_POST_TAKEN:
		chain_taken(loop, c, begun_ns);
		break;
	}
	return 0;
}
