/* SPDX-License-Identifier: MIT */
/*
 * Carriers: switching from task to task, and the scheduler context that looks
 * for work and sleeps. What parks and wakes is in park.c, who holds what in
 * claim.h and watchdog.c.
 */
#include "sched/carrier.h"

#include "base/clock.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BATCH 256

/*
 * Every engine's wait() ends by this descriptor. Its interrupt() may take a
 * lock, which a signal handler must not, and neither may whoever is not the
 * owner while the engine has not made threads.
 */
static void interrupt(struct fx_queue *queue)
{
	static const uint64_t one = 1;

	fx_arch_syscall(SYS_write, queue->owner.set.owner_eventfd, (long)&one,
			sizeof(one), 0, 0, 0);
}

void fx_rouse(struct fx_queue *queue)
{
	if (fx_idle_claim(&queue->sleeping))
		interrupt(queue);
}

/* Somebody has more than it can run at once. */
static void rouse_one(void)
{
	if (!fx_idle_search(&fx_sched.idle))
		return;
	for (uint32_t i = 0; i < fx_sched.nr_queues; i++) {
		struct fx_queue *queue = fx_sched.queue[i];

		if (fx_idle_claim(&queue->sleeping)) {
			interrupt(queue);
			return;
		}
	}
	fx_idle_found(&fx_sched.idle); /* they woke by themselves */
}

void fx_send_ready(struct fx_queue *queue, struct fx_task *task)
{
	fx_ready_post(&queue->ready, task);
	if (fx_load_relaxed(&queue->sleeping))
		fx_rouse(queue);
	else if (fx_unlikely(fx_load_relaxed(&fx_sched.idle.nr_sleeping)))
		rouse_one();
}

void fx_make_ready(struct fx_carrier *carrier, struct fx_task *task)
{
	if (fx_likely(carrier))
		fx_ready_push(&carrier->queue->ready, task);
	else
		fx_send_ready(fx_load_relaxed(&task->queue), task);
}

void fx_give_home(struct fx_task *task)
{
	task->carrier = NULL;
	fx_arch_handed_on(task);
	fx_store_release(&task->lender.home, 1u);
	fx_futex_wake(&task->lender.home, 1);
}

static void finish_park(struct fx_carrier *carrier, struct fx_task *task)
{
	if (fx_unlikely(!fx_task_publish(task, FX_TASK_PARKED)))
		fx_make_ready(carrier, task);
	else if (fx_unlikely(fx_load_relaxed(&task->pending)) &&
		 fx_task_interrupt(task) == FX_WAKE_READY)
		fx_make_ready(carrier, task);
}

void fx_finish(struct fx_carrier *carrier)
{
	struct fx_task *task = carrier->left;

	if (!task)
		return;
	carrier->left = NULL;
	switch (carrier->after) {
	case FX_AFTER_PARK:
		finish_park(carrier, task);
		break;
	case FX_AFTER_YIELD:
		fx_make_ready(carrier, task);
		break;
	case FX_AFTER_HOME:
		fx_give_home(task);
		break;
	case FX_AFTER_LOST:
		fx_send_ready(fx_load_relaxed(&task->queue), task);
		break;
	case FX_AFTER_NOTHING:
		break;
	}
}

struct fx_task *fx_pick(struct fx_carrier *carrier)
{
	struct fx_task *task;
	bool left = false;

	if (fx_unlikely(++carrier->round >= carrier->limit))
		return NULL;
	task = fx_ready_pop(&carrier->queue->ready, &left,
			    fx_sched.nr_queues == 1);
	if (left && fx_unlikely(fx_load_relaxed(&fx_sched.idle.nr_sleeping)))
		rouse_one();
	return task;
}

static struct fx_carrier *resumed(struct fx_task *me)
{
	struct fx_carrier *carrier = me->carrier;

	if (carrier)
		fx_finish(carrier);
	return carrier;
}

struct fx_carrier *fx_away(struct fx_carrier *carrier, struct fx_task *me,
			   enum fx_after after)
{
	return fx_away_to(carrier, me, fx_pick(carrier), after);
}

struct fx_carrier *fx_away_to(struct fx_carrier *carrier, struct fx_task *me,
			      struct fx_task *next, enum fx_after after)
{
	fx_switch(carrier, me, next, after);
	return resumed(me);
}

struct fx_carrier *fx_enter_slow(struct fx_task *me)
{
	fx_switch(me->carrier, me, NULL, FX_AFTER_LOST);
	return resumed(me);
}

/* The scheduler context --------------------------------------------------- */

static uint64_t realtime_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * FX_NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static uint64_t clock_ns(enum fx_clock clock)
{
	return clock == FX_CLOCK_REALTIME ? realtime_ns() : fx_now_ns();
}

static void run_timers(struct fx_carrier *carrier)
{
	struct fx_queue *queue = carrier->queue;
	struct fx_deadline_entry entry;

	for (unsigned clock = 0; clock < FX_NR_CLOCKS; clock++) {
		struct fx_timers_heap *heap = &queue->timers[clock];
		uint64_t now = heap->nr ? clock_ns((enum fx_clock)clock) : 0;

		while (heap->nr && fx_deadlines_pop(heap, now, &entry))
			if (fx_wake_inside(carrier, entry.task, entry.ticket,
					   FX_WOKEN_TIMEOUT))
				fx_count(&queue->count, timeouts);
	}
}

static uint64_t until_timers(const struct fx_queue *queue)
{
	uint64_t least = FX_NEVER;

	for (unsigned clock = 0; clock < FX_NR_CLOCKS; clock++) {
		uint64_t next = fx_deadlines_next(&queue->timers[clock]), now;

		if (next == UINT64_MAX)
			continue;
		now = clock_ns((enum fx_clock)clock);
		next = next > now ? next - now : 0;
		if (clock == FX_CLOCK_REALTIME && next > FX_REALTIME_LOOK_NS)
			next = FX_REALTIME_LOOK_NS;
		if (next < least)
			least = next;
	}
	return least;
}

/* Everything that can make tasks ready without waiting. */
static void look_around(struct fx_carrier *carrier)
{
	struct fx_queue *queue = carrier->queue;
	struct fx_owner *owner = &queue->owner;
	struct fx_engine *engine = owner->engine;

	fx_output_round_ends(carrier);
	carrier->round = 0;
	carrier->limit = FX_ROUND;
	carrier->calls = 0;
	if (queue->outputs)
		fx_output_all(carrier);
	fx_count(&queue->count, rounds);
	fx_store_relaxed(&queue->now_ms, fx_now_ms_coarse());
	fx_count_add(&queue->count, received,
		     fx_ready_receive(&queue->ready, &queue->ready));
	if (fx_unlikely(fx_load_relaxed(&queue->cancels)))
		fx_cancel_asked(carrier);
	if (fx_unlikely(fx_load_acquire(&queue->move)))
		fx_move_asked(carrier);
	fx_owner_flush(owner);
	/* With nothing ready the kernel is asked when going to sleep. */
	if (fx_ready_any(&queue->ready) && !fx_owner_quiet(owner))
		engine->ops->wait(engine, 0);
	if (engine->ops->work)
		engine->ops->work(engine, BATCH);
	fx_reap(carrier);
	run_timers(carrier);
	fx_store_relaxed(&queue->waited,
			 fx_set_claimed(&owner->set) ||
				 queue->timers[FX_CLOCK_MONOTONIC].nr ||
				 queue->timers[FX_CLOCK_REALTIME].nr);
	fx_output_round_begins(carrier);
}

static struct fx_task *steal(struct fx_carrier *carrier)
{
	struct fx_queue *mine = carrier->queue;

	for (uint32_t i = 1; i < fx_sched.nr_queues; i++) {
		struct fx_queue *other =
			fx_sched.queue[(mine->index + i) % fx_sched.nr_queues];
		struct fx_task *task;

		if (!fx_ready_any(&other->ready))
			continue;
		task = fx_ready_steal(&mine->ready, &other->ready);
		if (task) {
			fx_count(&mine->count, steals);
			fx_idle_found(&fx_sched.idle);
			return task;
		}
	}
	return NULL;
}

static bool anything(const struct fx_queue *mine)
{
	if (fx_load_relaxed(&mine->cancels) || fx_load_relaxed(&mine->move) ||
	    fx_load_acquire(&fx_sched.stop))
		return true;
	for (uint32_t i = 0; i < fx_sched.nr_queues; i++)
		if (fx_ready_any(&fx_sched.queue[i]->ready))
			return true;
	return false;
}

static void idle(struct fx_carrier *carrier)
{
	struct fx_queue *queue = carrier->queue;
	struct fx_engine *engine = queue->owner.engine;
	uint64_t timeout_ns = until_timers(queue);

	fx_idle_begin(&fx_sched.idle, &queue->sleeping);
	if (timeout_ns && anything(queue)) {
		timeout_ns = 0;
		/* A thread that is being lent may need this processor. */
		fx_arch_syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	}
	if (timeout_ns)
		fx_count(&queue->count, sleeps);
	engine->ops->wait(engine, timeout_ns);
	fx_idle_end(&fx_sched.idle, &queue->sleeping);
}

static struct fx_task *find(struct fx_carrier *carrier)
{
	struct fx_task *task;
	bool left = false;

	look_around(carrier);
	task = fx_ready_pop(&carrier->queue->ready, &left,
			    fx_sched.nr_queues == 1);
	if (!task)
		task = steal(carrier);
	else if (left && fx_load_relaxed(&fx_sched.idle.nr_sleeping))
		rouse_one();
	if (!task)
		idle(carrier);
	return task;
}

/* Until the bundle is lost, or the end. */
static void run(struct fx_carrier *carrier)
{
	enum fx_after after = FX_AFTER_NOTHING;

	carrier->queue->owner.engine->holder = carrier->tid;
	while (after != FX_AFTER_LOST && !fx_load_acquire(&fx_sched.stop)) {
		struct fx_task *task = find(carrier);

		if (!task)
			continue;
		fx_watchdog_needed();
		fx_switch(carrier, NULL, task, FX_AFTER_NOTHING);
		after = carrier->after;
		if (after == FX_AFTER_LOST)
			carrier->queue = NULL;
		fx_finish(carrier);
	}
}

static void pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/*
 * Idle for long, and there is another spare one: the end of this one. Nobody
 * joins it; its memory is for another carrier, so who looks at it late finds
 * one. Return: true if so; nothing of @carrier is the caller's any more.
 */
static bool retire(struct fx_carrier *carrier)
{
	struct fx_carrier **p;
	bool gone;

	fx_lock(&fx_sched.lock);
	for (p = &fx_sched.spares; *p && *p != carrier; p = &(*p)->next)
		;
	gone = *p && fx_sched.nr_spares > 1 && !fx_load_relaxed(&fx_sched.stop);
	if (gone) {
		*p = carrier->next;
		fx_sched.nr_spares--;
		for (p = &fx_sched.carriers; *p != carrier; p = &(*p)->all)
			;
		*p = carrier->all;
		fx_sched.nr_carriers--;
		fx_store_relaxed(&carrier->tid, 0);
		pthread_detach(pthread_self());
		carrier->next = fx_sched.ended;
		fx_sched.ended = carrier;
	}
	fx_unlock(&fx_sched.lock);
	return gone;
}

/* The watchdog makes none: see fx_thread_unshare_files(). */
static void keep_spare(void)
{
	bool none;

	fx_lock(&fx_sched.lock);
	none = !fx_sched.spares && fx_sched.nr_carriers < FX_MAX_CARRIERS;
	fx_unlock(&fx_sched.lock);
	if (none)
		fx_carrier_new(NULL);
}

enum spare {
	SPARE_GIVEN, /* it has a queue */
	SPARE_STOP, /* the end of all */
	SPARE_GONE, /* see retire() */
};

static enum spare wait_as_spare(struct fx_carrier *carrier)
{
	uint64_t end = fx_now_ns() + FX_SPARE_IDLE_MS * FX_NS_PER_MS, now;

	fx_lock(&fx_sched.lock);
	carrier->next = fx_sched.spares;
	fx_sched.spares = carrier;
	fx_sched.nr_spares++;
	fx_unlock(&fx_sched.lock);
	while (!fx_load_acquire(&carrier->given)) {
		now = end == FX_NEVER ? 0 : fx_now_ns();
		if (now >= end) {
			if (retire(carrier))
				return SPARE_GONE;
			end = FX_NEVER; /* the last one stays */
			continue;
		}
		fx_futex_wait(&carrier->given, 0,
			      end == FX_NEVER ? FX_NEVER : end - now);
	}
	fx_store_relaxed(&carrier->given, 0u);
	if (!carrier->queue)
		return SPARE_STOP;
	keep_spare();
	return SPARE_GIVEN;
}

void *fx_carrier_main(void *arg)
{
	struct fx_carrier *carrier = arg;
	enum spare spare = SPARE_GIVEN;

	pthread_setname_np(pthread_self(), "flexsc-carrier");
	fx_arch_context_here(&carrier->context);
	fx_store_relaxed(&carrier->tid, (pid_t)syscall(SYS_gettid));
	while (!fx_load_acquire(&fx_sched.stop)) {
		if (!carrier->queue)
			spare = wait_as_spare(carrier);
		if (spare == SPARE_GONE)
			return NULL;
		if (spare == SPARE_STOP)
			break;
		pin(carrier->queue->cpu);
		run(carrier);
	}
	return NULL;
}
