/* SPDX-License-Identifier: MIT */
/*
 * Carriers that rest because the others are enough; sched/cores.h has the
 * rules. One that rests runs no task: what becomes ready in its queue (its
 * engine and timers have been waited for when it went to rest) it hands on to
 * its heir, and whoever puts something in its inbox puts it in the heir's at
 * once. What waits comes over by and by, since a task's next call is posted
 * where it runs. Nobody looks for it when there is more to do, so a task that
 * runs long while others wait calls all back.
 *
 *	watchdog             a carrier that runs       its carrier
 *	--------             -------------------       -----------
 *	rests = 0                                      sleeping = 1
 *	rests_changed = 1    exchanges it for 0        fence
 *	                     sleeping: interrupts      looks at rests: 0, then
 *	                                               everywhere
 *
 * The watchdog has no descriptor to interrupt by. If no carrier runs, nothing
 * has to be done, until one does. It alone writes `rests` and `heir`; an heir
 * did not rest when it was chosen, so going from heir to heir ends.
 */
#include "sched/carrier.h"

#include "base/clock.h"
#include "base/thread.h"
#include "sched/cores.h"

/* Processor time in one task, while others wait; and of a window, awake. */
#define LONG_NS (500 * FX_NS_PER_US)
#define SATURATED 0.97

static struct fx_cores cores;
static uint64_t began_ns; /* the window; 0: there is none */

static uint32_t running(void)
{
	return fx_sched.nr_queues - fx_load_relaxed(&fx_sched.nr_resting);
}

static void call_back(struct fx_queue *queue)
{
	fx_store_relaxed(&queue->rests, 0u);
	fx_fetch_add(&fx_sched.nr_resting, (uint32_t)-1);
}

static void send_to_rest(struct fx_queue *queue, struct fx_queue *heir)
{
	fx_store_relaxed(&queue->heir, heir);
	fx_fetch_add(&fx_sched.nr_resting, 1u);
	fx_store_release(&queue->rests, 1u);
	fx_count(&queue->count, rests);
}

static struct fx_queue_window look(const struct fx_queue *queue,
				   uint64_t now_ns)
{
	const struct fx_carrier *holder = queue->holder;
	uint64_t since_ns = fx_load_relaxed(&queue->asleep_since_ns);
	uint64_t asleep_ns = fx_load_relaxed(&queue->asleep_ns);

	if (since_ns && since_ns < now_ns)
		asleep_ns += now_ns - since_ns;
	return (struct fx_queue_window){
		.holder = holder,
		.cpu_ns = fx_thread_cpu_ns(fx_load_relaxed(&holder->tid)),
		.asleep_ns = asleep_ns,
		.calls = fx_load_relaxed(&queue->count.calls),
		.switches = fx_load_relaxed(&holder->switches),
	};
}

static void begin_window(uint64_t now_ns)
{
	for (uint32_t i = 0; i < fx_sched.nr_queues; i++)
		fx_sched.queue[i]->window = look(fx_sched.queue[i], now_ns);
	began_ns = now_ns;
}

/* Return: false if it has got another carrier meanwhile. */
static bool add_up(struct fx_queue *queue, struct fx_cores_window *all)
{
	struct fx_queue_window *then = &queue->window;
	struct fx_queue_window now = look(queue, all->now_ns);
	uint64_t asleep_ns = now.asleep_ns - then->asleep_ns;
	uint64_t awake_ns = asleep_ns < all->ns ? all->ns - asleep_ns : 0;

	then->ran_ns = now.cpu_ns - then->cpu_ns;
	then->crowded_ns =
		awake_ns > then->ran_ns ? awake_ns - then->ran_ns : 0;
	all->cpu_ns += then->ran_ns;
	all->calls += now.calls - then->calls;
	all->slices += now.switches - then->switches;
	if (!queue->rests && (double)awake_ns < SATURATED * (double)all->ns)
		all->saturated = false;
	return now.holder == then->holder;
}

/* Is a better one to rest: on a crowded processor, or with less to do? */
static bool before(const struct fx_queue *a, const struct fx_queue *b)
{
	const struct fx_queue_window *wa = &a->window, *wb = &b->window;

	return wa->crowded_ns != wb->crowded_ns ?
		       wa->crowded_ns > wb->crowded_ns :
		       wa->ran_ns < wb->ran_ns;
}

static struct fx_queue *first_to_rest(void)
{
	struct fx_queue *first = NULL;

	for (uint32_t i = 0; i < fx_sched.nr_queues; i++) {
		struct fx_queue *queue = fx_sched.queue[i];

		if (!queue->rests && (!first || before(queue, first)))
			first = queue;
	}
	return first;
}

/* In turn, so that no heir gets more than its share. */
static struct fx_queue *heir_of(const struct fx_queue *queue)
{
	static uint32_t last;
	struct fx_queue *heir;

	do
		heir = fx_sched.queue[++last % fx_sched.nr_queues];
	while (heir == queue || heir->rests);
	return heir;
}

static void set_number(uint32_t nr)
{
	if (nr == running())
		return;
	for (uint32_t i = 0; i < fx_sched.nr_queues; i++)
		if (fx_sched.queue[i]->rests && running() < nr)
			call_back(fx_sched.queue[i]);
	while (running() > nr) {
		struct fx_queue *queue = first_to_rest();

		send_to_rest(queue, heir_of(queue));
	}
	fx_store_release(&fx_sched.rests_changed, 1u);
}

void fx_resting_rouse(void)
{
	if (!fx_exchange(&fx_sched.rests_changed, 0u))
		return;
	fx_fence_after_cas();
	for (uint32_t i = 0; i < fx_sched.nr_queues; i++)
		fx_rouse(fx_sched.queue[i]);
}

/*
 * Does a task run for long while others wait behind it? One whose carrier waits
 * for its processor does not: windows tell whether another one does better.
 */
static bool long_one(void)
{
	for (uint32_t i = 0; i < fx_sched.nr_queues; i++) {
		struct fx_queue *queue = fx_sched.queue[i];

		if (queue->stuck_cpu_ns - queue->stuck_since_ns >= LONG_NS &&
		    fx_ready_any(&queue->ready))
			return true;
	}
	return false;
}

void fx_resting_tick(void)
{
	uint64_t now_ns = fx_now_ns();
	struct fx_cores_window window = { .now_ns = now_ns,
					  .ns = now_ns - began_ns,
					  .saturated = true,
					  .most = fx_sched.nr_queues };
	bool valid = began_ns;

	if (fx_sched.nr_queues == 1)
		return;
	if (fx_load_relaxed(&fx_sched.nr_resting) && long_one()) {
		fx_cores_all(&cores, now_ns, window.most);
		set_number(window.most);
		valid = false;
	} else if (valid && window.ns < FX_CORES_WINDOW_NS) {
		return;
	}
	for (uint32_t i = 0; i < window.most && valid; i++)
		valid = add_up(fx_sched.queue[i], &window);
	if (valid)
		set_number(fx_cores_step(&cores, &window));
	begin_window(now_ns);
}

void fx_resting_pause(void)
{
	began_ns = 0;
}

void fx_resting_reset(void)
{
	began_ns = 0;
	cores = (struct fx_cores){ 0 };
}
