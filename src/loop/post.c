/* SPDX-License-Identifier: MIT */
/*
 * Posting: from a function of the application to an entry, to a result known
 * at once, or to the queue of those that wait for an entry. Handlers are
 * never called from here.
 */
#include "loop/seen.h"

#include "base/clock.h"
#include "engine/attempt.h"
#include "page/trace.h"

#include <errno.h>
#include <poll.h>

void fx_loop_ready(struct flexsc_loop *loop, struct flexsc_event *ev,
		   int64_t ret)
{
	ev->ret = ret;
	ev->state_ =
		(uint16_t)((ev->state_ & FX_EVENT_TIMED_OUT) | FX_EVENT_READY);
	fx_event_list_add(&loop->ready, ev);
	if (loop->mode & FX_LOOP_ARMED)
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
				     FX_NEVER :
				     now + ev->timeout_ns);
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
	uint64_t begun_ns =
		fx_watched() ? fx_loop_seen_begin(loop, ev, call) : 0;
	uint32_t index;
	int bad;

	switch (fx_owner_post(&loop->owner, call, (uint64_t)(uintptr_t)ev,
			      &index)) {
	case FX_POST_DONE:
		if (fx_watched())
			fx_loop_seen_end(loop, ev, call, begun_ns, call->ret);
		if (ev) {
			loop->waiting++;
			fx_loop_ready(loop, ev, call->ret);
		}
		return 0;
	case FX_POST_TAKEN:
		if (ev)
			fx_event_posted(ev, index);
		if (fx_watched())
			fx_loop_seen_taken(loop, index, begun_ns);
		/* The outer loop sleeps: nobody else would start it. */
		if (fx_unlikely(loop->mode & FX_LOOP_ARMED)) {
			fx_owner_flush(&loop->owner);
			fx_loop_nudge(loop);
		}
		return 0;
	case FX_POST_FULL:
		break;
	}
	if (!ev) {
		bad = post_unwanted(call);
		if (fx_watched())
			fx_loop_seen_end(loop, ev, call, begun_ns,
					 bad ? bad : call->ret);
		return bad;
	}
	loop->waiting++;
	queue(loop, ev, call);
	return 0;
}

/* The usual postings have been sorted out. @call: its arguments are there. */
static int post_in_full(struct flexsc_event *ev, unsigned int nr,
			struct flexsc_entry *call)
{
	struct flexsc_loop *loop = fx_loop_current;
	int bad;

	if (!loop)
		return -EINVAL;
	if (loop->mode & FX_LOOP_BROKEN)
		return -ENOMEM;
	if (ev) {
		if (ev->state_)
			return -EBUSY;
		ev->loop_ = loop;
	}
	call->nr = (uint16_t)nr;
	call->nr_args = fx_call_table[nr].nr_args;
	call->flags = 0;
	call->ret = 0;
	if (ev && ev->timeout_ns) {
		bad = start_timeout(loop, ev);
		if (bad)
			return bad;
	}
	fx_loop_count_call(loop, nr);
	bad = post(loop, ev, call);
	if (fx_unlikely(bad) && ev && ev->timer_)
		fx_timers_remove(&loop->timers, ev);
	return bad;
}

/*
 * What is not usual. It has the arguments as the caller has them, so that
 * passing them on costs the usual case nothing.
 */
static __attribute__((noinline)) int
post_unusual(struct flexsc_event *ev, unsigned int nr, __u64 a0, __u64 a1,
	     __u64 a2, __u64 a3, __u64 a4, __u64 a5)
{
	struct flexsc_loop *loop = fx_loop_current;
	struct flexsc_entry call;

	call.args[0] = a0;
	call.args[1] = a1;
	call.args[2] = a2;
	call.args[3] = a3;
	call.args[4] = a4;
	call.args[5] = a5;
	if (nr >= FX_NR_CALLS)
		nr = FX_NR_CALLS - 1; /* does not exist either */
	if (loop && loop->mode & FX_LOOP_COLLECTING)
		return fx_loop_collect(loop, ev, nr, call.args);
	return post_in_full(ev, nr, &call);
}

/*
 * The usual case goes straight through: it is paid for every call. What is
 * unusual of loop, event and process is asked in one.
 */
static inline __attribute__((always_inline)) bool
is_usual(const struct flexsc_loop *loop, const struct flexsc_event *ev,
	 unsigned int nr)
{
	return fx_likely(ev && nr < FX_NR_CALLS) &&
	       fx_likely(!fx_or_watched(ev->state_ | ev->timeout_ns |
					loop->mode));
}

/* The entry is filled. */
static inline __attribute__((always_inline)) int
publish(struct flexsc_loop *loop, struct flexsc_event *ev, uint32_t index)
{
	ev->loop_ = loop;
	fx_event_posted(ev, index);
	return fx_set_publish_last(&loop->owner.set, index);
}

/* Of the number nothing is needed any more afterwards. */
static inline __attribute__((always_inline)) void
count_posted(struct flexsc_loop *loop, unsigned int nr)
{
	fx_count(loop->owner.counters, calls[nr]);
}

__attribute__((noinline)) int fx_post_long(struct flexsc_event *ev,
					   unsigned int nr, long a0, long a1,
					   long a2, long a3, long a4, long a5)
{
	struct flexsc_loop *loop = fx_loop_posting;
	struct fx_set *set = &loop->owner.set;
	union fx_head head;
	uint32_t index;

	if (!is_usual(loop, ev, nr) || !set->nr_free || !loop->owner.heads[nr])
		return post_unusual(ev, nr, (__u64)a0, (__u64)a1, (__u64)a2,
				    (__u64)a3, (__u64)a4, (__u64)a5);
	head.word = (uint64_t)(loop->owner.heads[nr] & ~FX_HEAD_LONG);
	fx_probe3(post, nr, ev, a0);
	count_posted(loop, nr);
	index = set->free[--set->nr_free];
	fx_set_fill(set, index, head, (__u64)a0, (__u64)a1, (__u64)a2,
		    (__u64)a3, (__u64)a4, (__u64)a5, (uintptr_t)ev);
	return publish(loop, ev, index);
}

/*
 * Most calls have four arguments at most, and then nothing is on the stack.
 * Return: false: it has more, or is unusual.
 */
static inline __attribute__((always_inline)) bool
post_straight(struct flexsc_event *ev, unsigned int nr, long a0, long a1,
	      long a2, long a3)
{
	struct flexsc_loop *loop = fx_loop_posting;
	struct fx_set *set = &loop->owner.set;
	uint32_t nr_free, index;
	int64_t head;

	if (!is_usual(loop, ev, nr))
		return false;
	head = loop->owner.heads[nr];
	nr_free = set->nr_free;
	if (fx_unlikely(head <= 0 || !nr_free))
		return false;
	/* First: the number is not needed any more then. */
	fx_probe3(post, nr, ev, a0);
	count_posted(loop, nr);
	set->nr_free = --nr_free;
	index = set->free[nr_free];
	fx_set_fill_short(set, index, (uint64_t)head, (__u64)a0, (__u64)a1,
			  (__u64)a2, (__u64)a3, (uintptr_t)ev);
	publish(loop, ev, index);
	return true;
}

int fx_post_short(struct flexsc_event *ev, unsigned int nr, long a0, long a1,
		  long a2, long a3)
{
	if (fx_likely(post_straight(ev, nr, a0, a1, a2, a3)))
		return 0;
	return post_unusual(ev, nr, (__u64)a0, (__u64)a1, (__u64)a2, (__u64)a3,
			    0, 0);
}

int flexsc_post(struct flexsc_event *ev, unsigned int nr, long a0, long a1,
		long a2, long a3, long a4, long a5)
{
	const long *last[2] = { &a4, &a5 };

	if (fx_likely(post_straight(ev, nr, a0, a1, a2, a3)))
		return 0;
	/* By their addresses: on the stack already, they cost others nothing. */
	__asm__("" : "+r"(last[0]), "+r"(last[1]));
	return fx_post_long(ev, nr, a0, a1, a2, a3, *last[0], *last[1]);
}

int flexsc_ready(struct flexsc_event *ev, int fd, unsigned int events)
{
	const unsigned int out = POLLOUT | POLLWRNORM | POLLWRBAND;
	struct flexsc_entry call = { .args = { (__u64)fd, events } };
	struct flexsc_loop *loop = fx_loop_current;
	unsigned int nr = events & out ? FX_READY_OUT : FX_READY_IN;

	if (!(events & 0xffff) || events >> 17 ||
	    (events & out && events & 0xffff & ~out))
		return -EINVAL;
	if (loop && loop->mode & FX_LOOP_COLLECTING)
		return fx_loop_collect(loop, ev, nr, call.args);
	return post_in_full(ev, nr, &call);
}

int flexsc_take(struct flexsc_event *ev)
{
	struct flexsc_loop *loop = ev->loop_;

	/* What a round has in its hands gets its handler called. */
	if (FX_EVENT_STATE(ev) != FX_EVENT_READY ||
	    !fx_event_list_remove(&loop->ready, ev))
		return 0;
	loop->waiting--;
	if (ev->timer_)
		fx_timers_remove(&loop->timers, ev);
	ev->state_ = FX_EVENT_IDLE;
	fx_count(loop->owner.counters, completed);
	return 1;
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
		if (fx_set_claimed(&loop->owner.set) >=
		    loop->owner.set.max_entries)
			return;
		fx_event_list_pop(&loop->queued);
		switch (fx_owner_post(&loop->owner, &call,
				      (uint64_t)(uintptr_t)ev, &index)) {
		case FX_POST_DONE:
			if (fx_watched())
				fx_loop_seen_end(loop, ev, &call, 0, call.ret);
			fx_loop_ready(loop, ev, call.ret);
			break;
		case FX_POST_TAKEN:
			loop->waiting--;
			fx_event_posted(ev, index);
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
	if (loop->mode & FX_LOOP_BROKEN)
		return -ENOMEM;
	if (ev->state_)
		return -EBUSY;
	now = fx_now_ns();
	deadline = after_ns > FX_NEVER - now ? FX_NEVER : now + after_ns;
	bad = fx_timers_add(&loop->timers, ev, deadline);
	if (bad)
		return bad;
	ev->loop_ = loop;
	ev->state_ = FX_EVENT_TIMER;
	loop->waiting++;
	if (loop->mode & FX_LOOP_ARMED)
		fx_loop_nudge(loop);
	return 0;
}

int flexsc_pending(const struct flexsc_event *ev)
{
	return ev->state_ != FX_EVENT_IDLE;
}

const char *flexsc_refusal(unsigned int nr)
{
	const struct fx_call_desc *desc =
		fx_owner_desc(nr < FX_NR_CALLS ? nr : FX_NR_CALLS - 1);

	switch ((enum fx_call_class)desc->call_class) {
	case FX_CALL_ABSENT:
		return "this machine has no such system call";
	case FX_CALL_NONE:
		return desc->reason;
	default:
		return NULL;
	}
}
