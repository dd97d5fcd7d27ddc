/* SPDX-License-Identifier: MIT */
/*
 * Rounds: results become calls of handlers (libflexsc-atc11.txt, section 4).
 * A round calls the handlers of one batch from the engine, of what was ready
 * when it began, then the timers that are due. What handlers post meanwhile
 * may be in that batch, which is bounded, so nothing starves. The kernel is asked only when
 * a round found nothing to do, or after some that did.
 */
#include "loop/seen.h"

#include "base/clock.h"
#include "page/trace.h"

#include <errno.h>

#define BATCH 256
#define BUSY_ROUNDS 4 /* without asking the kernel */

static inline void deliver(struct flexsc_loop *loop, struct flexsc_event *ev)
{
	if (fx_unlikely(ev->state_ & FX_EVENT_TIMED_OUT) &&
	    ev->ret == -ECANCELED)
		ev->ret = -ETIMEDOUT;
	if (fx_unlikely(ev->timer_))
		fx_timers_remove(&loop->timers, ev);
	ev->state_ = FX_EVENT_IDLE;
	if (ev->handler)
		ev->handler(ev);
}

/* There is a time-out, or somebody watches. */
static __attribute__((noinline)) void deliver_unusual(struct flexsc_loop *loop,
						      struct flexsc_event *ev)
{
	if (fx_watched())
		fx_loop_seen_reaped(loop, ev, ev->ret);
	deliver(loop, ev);
}

static unsigned run_ready(struct flexsc_loop *loop)
{
	struct fx_event_list now = loop->ready;
	struct flexsc_event *ev;
	unsigned nr = 0;

	if (fx_likely(!now.first))
		return 0;
	loop->ready = (struct fx_event_list){ NULL, NULL };
	while ((ev = fx_event_list_pop(&now))) {
		loop->waiting--;
		deliver(loop, ev);
		nr++;
	}
	fx_count_add(loop->owner.counters, completed, nr);
	return nr;
}

static inline __attribute__((always_inline)) void
deliver_reaped(struct flexsc_loop *loop, struct flexsc_event *ev, int64_t ret)
{
	if (!ev)
		return;
	ev->ret = ret;
	if (fx_unlikely(fx_or_watched(ev->timer_ |
				      ev->state_ / FX_EVENT_TIMED_OUT))) {
		deliver_unusual(loop, ev);
		return;
	}
	ev->state_ = FX_EVENT_IDLE;
	if (ev->handler)
		ev->handler(ev);
}

static unsigned run_reaped(struct flexsc_loop *loop)
{
	struct fx_engine *engine = loop->owner.engine;
	unsigned left = BATCH, nr;
	struct fx_done done;

	if (engine->ops->work)
		engine->ops->work(engine, BATCH);
	while (fx_owner_reap(&loop->owner, &done)) {
		deliver_reaped(loop, (void *)(uintptr_t)done.cookie, done.ret);
		if (!--left)
			break;
	}
	nr = BATCH - left;
	if (!nr)
		return 0;
	fx_count(loop->owner.counters, batches);
	fx_count_add(loop->owner.counters, batch_calls, nr);
	fx_count_add(loop->owner.counters, completed, nr);
	return nr;
}

static unsigned run_timers(struct flexsc_loop *loop)
{
	struct flexsc_event *ev;
	uint64_t now;
	unsigned nr = 0;

	if (fx_timers_empty(&loop->timers))
		return 0;
	now = fx_now_ns();
	while ((ev = fx_timers_pop(&loop->timers, now))) {
		nr++;
		if (FX_EVENT_STATE(ev) != FX_EVENT_TIMER) {
			fx_loop_time_out(loop, ev);
			continue;
		}
		loop->waiting--;
		ev->ret = 0;
		deliver(loop, ev);
	}
	fx_count_add(loop->owner.counters, timers, nr);
	return nr;
}

/* Everything that can be done without waiting. */
static unsigned run_once(struct flexsc_loop *loop)
{
	unsigned nr;

	if (fx_unlikely(fx_load_relaxed(&loop->interrupted)))
		fx_loop_receive(loop);
	/* First: a close that is done ended the calls parked before it. */
	nr = run_reaped(loop);
	nr += run_ready(loop);
	if (fx_unlikely(loop->queued.first))
		fx_loop_unqueue(loop);
	return nr + run_timers(loop);
}

static uint64_t wait_for(struct flexsc_loop *loop, int64_t timeout_ns)
{
	uint64_t limit = timeout_ns < 0 ? FX_NEVER : (uint64_t)timeout_ns;
	uint64_t now, due;

	if (fx_load_acquire(&loop->stop) || loop->ready.first)
		return 0;
	if (limit == 0 || fx_timers_empty(&loop->timers))
		return limit;
	now = fx_now_ns();
	due = loop->timers.heap[0].deadline_ns;
	due = due > now ? due - now : 0;
	return due < limit ? due : limit;
}

static unsigned run_round(struct flexsc_loop *loop, int64_t timeout_ns)
{
	struct fx_engine *engine = loop->owner.engine;
	unsigned nr;

	fx_owner_flush(&loop->owner);
	nr = run_once(loop);
	if (nr && ++loop->busy_rounds < BUSY_ROUNDS)
		return nr;
	loop->busy_rounds = 0;
	fx_owner_flush(&loop->owner);
	engine->ops->wait(engine, nr ? 0 : wait_for(loop, timeout_ns));
	return nr ? nr : run_once(loop);
}

/* Nothing happened since the last round, as far as can be told for free. */
static bool quiet(struct flexsc_loop *loop)
{
	return !(loop->mode | loop->running |
		 fx_load_relaxed(&loop->interrupted)) &&
	       !loop->ready.first && !loop->queued.first &&
	       loop->outer_fd < 0 && fx_owner_quiet(&loop->owner);
}

static unsigned run_timers_only(struct flexsc_loop *loop)
{
	unsigned nr;

	loop->running = true;
	nr = run_timers(loop);
	loop->running = false;
	return nr;
}

int flexsc_loop_poll(struct flexsc_loop *loop, int64_t timeout_ns)
{
	unsigned nr;

	if (timeout_ns == 0 && quiet(loop))
		return fx_timers_empty(&loop->timers) ?
			       0 :
			       (int)run_timers_only(loop);
	if (loop->running)
		return -EBUSY;
	if (loop->mode & FX_LOOP_BROKEN)
		return -ENOMEM;
	loop->running = true;
	if (loop->mode & FX_LOOP_ARMED)
		fx_loop_disarm(loop);
	nr = run_round(loop, timeout_ns);
	loop->running = false;
	if (loop->outer_fd >= 0)
		fx_loop_arm(loop);
	return (int)nr;
}

int flexsc_loop_run(struct flexsc_loop *loop)
{
	if (loop->running)
		return -EBUSY;
	while (fx_loop_outstanding(loop) || fx_load_acquire(&loop->sent)) {
		int nr = flexsc_loop_poll(loop, -1);

		if (nr < 0)
			return nr;
		if (fx_load_acquire(&loop->stop)) {
			fx_store_release(&loop->stop, 0u);
			return 1;
		}
	}
	return 0;
}

size_t flexsc_loop_outstanding(const struct flexsc_loop *loop)
{
	return fx_loop_outstanding(loop);
}
