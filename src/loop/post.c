/* SPDX-License-Identifier: MIT */
/*
 * Posting: from a function of the application to an entry, to a result known
 * at once, or to the queue of those that wait for an entry. Handlers are
 * never called from here.
 */
#include "loop/loop.h"

#include "base/clock.h"
#include "engine/attempt.h"

#include <errno.h>

void fx_loop_ready(struct flexsc_loop *loop, struct flexsc_event *ev,
		   int64_t ret)
{
	ev->ret = ret;
	ev->state_ = (uint16_t)((ev->state_ & FX_EVENT_TIMED_OUT) |
				FX_EVENT_READY);
	fx_event_list_add(&loop->ready, ev);
	if (loop->armed)
		fx_loop_nudge(loop);
}

bool fx_event_list_remove(struct fx_event_list *list, struct flexsc_event *ev)
{
	struct flexsc_event *before = NULL;

	for (struct flexsc_event *e = list->first; e; e = e->next_) {
		if (e != ev) {
			before = e;
			continue;
		}
		if (before)
			before->next_ = ev->next_;
		else
			list->first = ev->next_;
		if (list->last == ev)
			list->last = before;
		return true;
	}
	return false;
}

static int start_timeout(struct flexsc_loop *loop, struct flexsc_event *ev)
{
	uint64_t now = fx_now_ns();

	return fx_timers_add(&loop->timers, ev,
			     ev->timeout_ns > FX_NEVER - now ?
				     FX_NEVER : now + ev->timeout_ns);
}

/* Keep the call in the event until an entry is free. */
static void queue(struct flexsc_loop *loop, struct flexsc_event *ev,
		  const struct flexsc_entry *call)
{
	ev->state_ = FX_EVENT_QUEUED;
	ev->nr_ = call->nr;
	ev->nr_args_ = call->nr_args;
	ev->flags_ = call->flags;
	for (unsigned i = 0; i < 6; i++)
		ev->args_[i] = call->args[i];
	ev->ret = call->ret; /* what was done of it so far */
	fx_event_list_add(&loop->queued, ev);
	fx_count(loop->owner.counters, queued);
}

/* Nobody cares for the result, and there is no entry. */
static int post_unwanted(struct flexsc_entry *call)
{
	enum fx_call_class class = fx_owner_desc(call->nr)->call_class;

	if (class != FX_CALL_NEVER && class != FX_CALL_DISK)
		return -EAGAIN;
	fx_call_plain(call);
	return 0;
}

static int post(struct flexsc_loop *loop, struct flexsc_event *ev,
		struct flexsc_entry *call)
{
	uint32_t index;

	switch (fx_owner_post(&loop->owner, call, (uint64_t)(uintptr_t)ev,
			      &index)) {
	case FX_POST_DONE:
		if (ev) {
			loop->outstanding++;
			fx_loop_ready(loop, ev, call->ret);
		}
		return 0;
	case FX_POST_TAKEN:
		loop->outstanding++;
		if (ev) {
			ev->index_ = index;
			ev->state_ = FX_EVENT_POSTED;
		}
		/* The outer loop sleeps: nobody else would start it. */
		if (fx_unlikely(loop->armed)) {
			loop->owner.engine->ops->flush(loop->owner.engine);
			fx_loop_nudge(loop);
		}
		return 0;
	case FX_POST_FULL:
		break;
	}
	if (!ev)
		return post_unwanted(call);
	loop->outstanding++;
	queue(loop, ev, call);
	return 0;
}

int flexsc_post(struct flexsc_event *ev, unsigned int nr, long a0, long a1,
		long a2, long a3, long a4, long a5)
{
	struct flexsc_loop *loop = fx_loop_current;
	struct flexsc_entry call;
	int bad;

	if (fx_unlikely(!loop))
		return -EINVAL;
	if (fx_unlikely(loop->broken))
		return -ENOMEM;
	if (ev) {
		if (fx_unlikely(ev->state_)) {
			if (loop->collect.active && !loop->collect.bad)
				loop->collect.bad = -EBUSY;
			return -EBUSY;
		}
		ev->loop_ = loop;
	}
	if (fx_unlikely(nr >= FX_NR_CALLS))
		nr = FX_NR_CALLS - 1; /* does not exist either */
	call.nr = (uint16_t)nr;
	call.nr_args = fx_call_table[nr].nr_args;
	call.flags = 0;
	call.args[0] = (uint64_t)a0;
	call.args[1] = (uint64_t)a1;
	call.args[2] = (uint64_t)a2;
	call.args[3] = (uint64_t)a3;
	call.args[4] = (uint64_t)a4;
	call.args[5] = (uint64_t)a5;
	call.ret = 0;
	if (fx_unlikely(loop->collect.active))
		return fx_loop_collect(loop, ev, &call);

	if (ev && fx_unlikely(ev->timeout_ns)) {
		bad = start_timeout(loop, ev);
		if (bad)
			return bad;
	}
	fx_count(loop->owner.counters, posted);
	fx_count(loop->owner.counters, calls[nr]);
	bad = post(loop, ev, &call);
	if (fx_unlikely(bad) && ev && ev->timer_)
		fx_timers_remove(&loop->timers, ev);
	return bad;
}

void fx_loop_unqueue(struct flexsc_loop *loop)
{
	struct flexsc_event *ev;

	while ((ev = loop->queued.first)) {
		struct flexsc_entry call = {
			.nr = ev->nr_,
			.nr_args = ev->nr_args_,
			.flags = ev->flags_,
			.ret = ev->ret,
		};
		uint32_t index;

		for (unsigned i = 0; i < 6; i++)
			call.args[i] = ev->args_[i];
		if (loop->owner.set.nr_claimed >= loop->owner.set.max_entries)
			return;
		fx_event_list_pop(&loop->queued);
		switch (fx_owner_post(&loop->owner, &call,
				      (uint64_t)(uintptr_t)ev, &index)) {
		case FX_POST_DONE:
			fx_loop_ready(loop, ev, call.ret);
			break;
		case FX_POST_TAKEN:
			ev->index_ = index;
			ev->state_ = FX_EVENT_POSTED;
			break;
		case FX_POST_FULL:
			fx_bug(__FILE__, __LINE__, "an entry was free");
		}
	}
}

int flexsc_timer(struct flexsc_event *ev, uint64_t after_ns)
{
	struct flexsc_loop *loop = fx_loop_current;
	uint64_t now, deadline;
	int bad;

	if (!loop || !ev)
		return -EINVAL;
	if (ev->state_)
		return -EBUSY;
	now = fx_now_ns();
	deadline = after_ns > FX_NEVER - now ? FX_NEVER : now + after_ns;
	bad = fx_timers_add(&loop->timers, ev, deadline);
	if (bad)
		return bad;
	ev->loop_ = loop;
	ev->state_ = FX_EVENT_TIMER;
	loop->outstanding++;
	if (loop->armed)
		fx_loop_nudge(loop);
	return 0;
}

int flexsc_pending(const struct flexsc_event *ev)
{
	return ev->state_ != FX_EVENT_IDLE;
}

const char *flexsc_refusal(unsigned int nr)
{
	const struct fx_call_desc *desc = fx_owner_desc(nr);

	switch ((enum fx_call_class)desc->call_class) {
	case FX_CALL_ABSENT:
		return "this machine has no such system call";
	case FX_CALL_NONE:
		return desc->reason;
	default:
		return NULL;
	}
}
