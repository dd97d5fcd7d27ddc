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
#include <signal.h>
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

	fx_arch_syscall(SYS_write, queue->rousefd, (long)&one, sizeof(one), 0,
			0, 0);
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

		if (!fx_load_relaxed(&queue->rests) &&
		    fx_idle_claim(&queue->sleeping)) {
			interrupt(queue);
			return;
		}
	}
	fx_idle_found(&fx_sched.idle); /* they woke by themselves */
}

void fx_send_ready(struct fx_queue *queue, struct fx_task *task)
{
	queue = fx_running_queue(queue);
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

/*
 * A crossing in which calls are carried out by this thread, and may block it:
 * as while it runs a task's own code the bundle may be taken from it, and a
 * spare carrier goes on with what is behind. Return: false if it was.
 */
static bool cross(struct fx_carrier *carrier)
{
	struct fx_queue *queue = carrier->queue;
	struct fx_engine *engine = queue->owner.engine;
	long ret;

	fx_watchdog_needed();
	fx_store_relaxed(&queue->waited, 1u);
	fx_store_relaxed(&carrier->crossing, 1u);
	fx_claim_leave(&carrier->claim);
	ret = engine->ops->enter(engine);
	fx_store_relaxed(&carrier->crossing, 0u);
	if (fx_unlikely(!fx_claim_enter(&carrier->claim))) {
		/* What has completed here is news to who holds it now. */
		engine->ops->interrupt(engine);
		return false;
	}
	engine->ops->entered(engine, ret);
	return true;
}

/* Return: false if the bundle is gone. */
static bool ask_engine(struct fx_carrier *carrier)
{
	struct fx_queue *queue = carrier->queue;
	struct fx_owner *owner = &queue->owner;
	struct fx_engine *engine = owner->engine;

	if (engine->enters)
		return (!fx_owner_unflushed(owner) &&
			engine->ops->quiet(engine)) ||
		       cross(carrier);
	fx_owner_flush(owner);
	/* With nothing ready the kernel is asked when going to sleep. */
	if (fx_ready_any(&queue->ready) && !fx_owner_quiet(owner))
		engine->ops->wait(engine, 0);
	if (engine->ops->work)
		engine->ops->work(engine, BATCH);
	return true;
}

/*
 * Everything that can make tasks ready without waiting. Return: false if the
 * bundle was lost.
 */
static bool look_around(struct fx_carrier *carrier)
{
	struct fx_queue *queue = carrier->queue;
	struct fx_owner *owner = &queue->owner;

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
	if (fx_unlikely(fx_load_relaxed(&fx_sched.rests_changed)))
		fx_resting_rouse();
	if (fx_unlikely(!ask_engine(carrier)))
		return false;
	fx_reap(carrier);
	run_timers(carrier);
	fx_store_relaxed(&queue->waited,
			 fx_set_claimed(&owner->set) ||
				 queue->timers[FX_CLOCK_MONOTONIC].nr ||
				 queue->timers[FX_CLOCK_REALTIME].nr);
	fx_output_round_begins(carrier);
	return true;
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

static bool anything(struct fx_queue *mine)
{
	if (fx_load_relaxed(&mine->cancels) || fx_load_relaxed(&mine->move) ||
	    fx_load_acquire(&fx_sched.stop))
		return true;
	if (fx_load_relaxed(&mine->rests))
		return fx_ready_any(&mine->ready);
	for (uint32_t i = 0; i < fx_sched.nr_queues; i++)
		if (fx_ready_any(&fx_sched.queue[i]->ready))
			return true;
	return false;
}

static void idle(struct fx_carrier *carrier)
{
	struct fx_queue *queue = carrier->queue;
	struct fx_engine *engine = queue->owner.engine;
	uint64_t timeout_ns = until_timers(queue), since_ns;
	bool rests = fx_load_relaxed(&queue->rests);

	if (rests)
		fx_idle_rest(&queue->sleeping);
	else
		fx_idle_begin(&fx_sched.idle, &queue->sleeping);
	if (timeout_ns && anything(queue)) {
		timeout_ns = 0;
		/* A thread that is being lent may need this processor. */
		fx_arch_syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	}
	if (timeout_ns) {
		fx_count(&queue->count, sleeps);
		since_ns = fx_now_ns();
		fx_store_relaxed(&queue->asleep_since_ns, since_ns);
	}
	engine->ops->wait(engine, timeout_ns);
	if (timeout_ns) {
		fx_store_relaxed(&queue->asleep_ns,
				 queue->asleep_ns + fx_now_ns() - since_ns);
		fx_store_relaxed(&queue->asleep_since_ns, 0ull);
	}
	if (rests)
		fx_idle_rested(&queue->sleeping);
	else
		fx_idle_end(&fx_sched.idle, &queue->sleeping);
}

/* What is ready here is for others to run. */
static void hand_on(struct fx_queue *queue)
{
	struct fx_task *task;
	bool left;

	while ((task = fx_ready_pop(&queue->ready, &left, false)))
		fx_send_ready(queue, task);
}

static struct fx_task *find(struct fx_carrier *carrier)
{
	struct fx_task *task;
	bool left = false;

	if (fx_unlikely(!look_around(carrier))) {
		carrier->queue = NULL;
		return NULL;
	}
	if (fx_unlikely(fx_load_relaxed(&carrier->queue->rests))) {
		hand_on(carrier->queue);
		idle(carrier);
		return NULL;
	}
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
	struct fx_engine *engine = carrier->queue->owner.engine;

	engine->holder = carrier->tid;
	/* Of what the one before has not heard of, if it is in a crossing. */
	if (engine->enters)
		carrier->queue->owner.flushed--;
	while (carrier->queue && !fx_load_acquire(&fx_sched.stop)) {
		struct fx_task *task = find(carrier);

		if (!task)
			continue;
		fx_watchdog_needed();
		fx_switch(carrier, NULL, task, FX_AFTER_NOTHING);
		if (carrier->after == FX_AFTER_LOST)
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

/* The last one stays, but watches if carriers are needed at all. */
static enum spare wait_to_be_given(struct fx_carrier *carrier)
{
	const uint64_t idle_ns = fx_sched.idle_ms * FX_NS_PER_MS;
	bool first = true;

	for (;;) {
		uint64_t count = fx_load_relaxed(&fx_sched.needed.count);
		bool watches = fx_load_acquire(&fx_sched.needed.watching);
		uint32_t given = fx_load_acquire(&carrier->given);
		int why;

		if (given == FX_GIVEN_QUEUE)
			return SPARE_GIVEN;
		if (given == FX_GIVEN_WATCH) {
			fx_cas(&carrier->given, &given,
			       (uint32_t)FX_GIVEN_NOTHING);
			continue;
		}
		why = fx_futex_wait(&carrier->given, FX_GIVEN_NOTHING,
				    watches ? idle_ns :
				    first   ? FX_SPARE_IDLE_MS * FX_NS_PER_MS :
					      FX_NEVER);
		if (why != -ETIMEDOUT)
			continue;
		first = false;
		if (retire(carrier) ||
		    (watches && fx_sched_stop(carrier, count)))
			return SPARE_GONE;
	}
}

static enum spare wait_as_spare(struct fx_carrier *carrier)
{
	fx_lock(&fx_sched.lock);
	carrier->next = fx_sched.spares;
	fx_sched.spares = carrier;
	fx_sched.nr_spares++;
	fx_unlock(&fx_sched.lock);
	if (wait_to_be_given(carrier) == SPARE_GONE)
		return SPARE_GONE;
	fx_store_relaxed(&carrier->given, (uint32_t)FX_GIVEN_NOTHING);
	if (!carrier->queue)
		return SPARE_STOP;
	keep_spare();
	return SPARE_GIVEN;
}

static void serve(struct fx_carrier *carrier)
{
	enum spare spare = SPARE_GIVEN;

	pthread_setname_np(pthread_self(), "flexsc-carrier");
	fx_arch_context_here(&carrier->context);
	fx_store_relaxed(&carrier->tid, (pid_t)syscall(SYS_gettid));
	while (!fx_load_acquire(&fx_sched.stop)) {
		if (!carrier->queue)
			spare = wait_as_spare(carrier);
		if (spare != SPARE_GIVEN)
			return;
		pin(carrier->queue->cpu);
		run(carrier);
	}
}

void *fx_carrier_main(void *arg)
{
	struct fx_carrier *carrier = arg;
	const stack_t signals = { .ss_sp = carrier->signal_stack,
				  .ss_size = FX_SIGNAL_STACK_SIZE };
	stack_t before;

	sigaltstack(&signals, &before);
	serve(carrier);
	/* ASan's, if it is there: it frees what it finds. */
	sigaltstack(&before, NULL);
	return NULL;
}
