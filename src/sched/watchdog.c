/* SPDX-License-Identifier: MIT */
/*
 * Finds carriers that are stuck with one task while others depend on their
 * queue, and gives the queue to a spare carrier; the protocol is in
 * sched/claim.h. Sleeps when all carriers do.
 *
 * A task that is blocked in the kernel is answered within two ticks. One that
 * computes or spins may do so for RUN_NS of CPU time, as if the kernel shared
 * the processor out; for RUN_BESIDE_NS while a processor is idle, since what
 * its queue's engine has found ready is not seen by others. (Measured on a
 * noisy machine beside a task that computes 5 ms at a time: p99 of an echo 10.7,
 * 0.48, 0.02 and 1.5 ms with the former alone, 0.47, 0.04, 1.9 and 0.05 ms with
 * 0.5 ms for the latter; two such tasks made it worse. Not measured at 1 ms.)
 * One that waits for its processor is left alone: another carrier would only
 * wait beside it.
 *
 * A tick takes the processor from a carrier: 2.5 to 3.7 % of a server's time.
 * So while nobody was in one task from tick to tick for long, ticks are fewer,
 * and the first one to be blocked then is answered some 1.5 ms later.
 */
#include "sched/carrier.h"

#include "base/clock.h"
#include "base/thread.h"
#include "engine/pool.h"

#include <errno.h>

#define TICK_NS (400 * FX_NS_PER_US) /* stuck: two in a row, so below 1 ms */
#define RUN_NS (10 * FX_NS_PER_MS)
#define RUN_BESIDE_NS FX_NS_PER_MS
#define CALM_TICK_NS (4 * TICK_NS)
#define CALM_TICKS 256 /* so many in a row without a suspect */
#define IDLE_TICKS 16

static void put_spare(struct fx_carrier *spare)
{
	fx_lock(&fx_sched.lock);
	spare->next = fx_sched.spares;
	fx_sched.spares = spare;
	fx_sched.nr_spares++;
	fx_unlock(&fx_sched.lock);
}

static struct fx_carrier *get_spare(void)
{
	struct fx_carrier *spare;

	fx_lock(&fx_sched.lock);
	spare = fx_sched.spares;
	if (spare) {
		fx_sched.spares = spare->next;
		fx_sched.nr_spares--;
	}
	fx_unlock(&fx_sched.lock);
	return spare;
}

enum fx_stuck {
	FX_NOT_STUCK,
	FX_STUCK_BLOCKED,
	FX_STUCK_RUNNING
};

/* What it computes goes on elsewhere, if a processor is idle. */
static void move_away(struct fx_queue *queue)
{
	cpu_set_t set = fx_sched.allowed;

	if (queue->cpu < 0)
		return;
	if (CPU_COUNT(&set) > 1 && fx_processor_idle())
		CPU_CLR(queue->cpu, &set);
	sched_setaffinity(fx_load_relaxed(&queue->holder->tid), sizeof(set),
			  &set);
}

static void hand_off(struct fx_queue *queue, enum fx_stuck how)
{
	struct fx_carrier *spare = get_spare();

	if (!spare)
		return;
	if (!fx_claim_take(&queue->holder->claim)) {
		put_spare(spare);
		return;
	}
	fx_probe3(handoff, queue->index, queue->holder->tid, spare->tid);
	fx_count(&queue->count, handoffs);
	if (how == FX_STUCK_RUNNING) {
		fx_count(&queue->count, handoffs_running);
		move_away(queue);
	}
	queue->holder = spare;
	spare->queue = queue;
	fx_store_relaxed(&spare->claim.word, (uint32_t)FX_CLAIM_HELD);
	fx_store_release(&spare->given, (uint32_t)FX_GIVEN_QUEUE);
	fx_futex_wake(&spare->given, 1);
}

static bool private_files;

/* It has been in one task since the tick before. */
static enum fx_stuck how_stuck(struct fx_queue *queue)
{
	const struct fx_carrier *carrier = queue->holder;
	uint64_t cpu_ns = fx_thread_cpu_ns(fx_load_relaxed(&carrier->tid));
	bool ran = cpu_ns != queue->stuck_cpu_ns;

	queue->stuck_cpu_ns = cpu_ns;
	/* A crossing may have much to do, for all tasks. */
	if (cpu_ns - queue->stuck_since_ns >=
	    (fx_processor_idle() && !fx_load_relaxed(&carrier->crossing) ?
		     RUN_BESIDE_NS :
		     RUN_NS))
		return FX_STUCK_RUNNING;
	/* Where that cannot be asked: as if it was blocked. */
	if (ran || (private_files &&
		    fx_thread_runnable(fx_load_relaxed(&carrier->tid))))
		return FX_NOT_STUCK;
	return FX_STUCK_BLOCKED;
}

static void note(struct fx_queue *queue, uint32_t switches)
{
	queue->stuck_switches = switches;
	queue->stuck_since_ns = queue->stuck_cpu_ns =
		fx_thread_cpu_ns(fx_load_relaxed(&queue->holder->tid));
}

static bool is_needed(struct fx_queue *queue)
{
	return fx_load_relaxed(&queue->waited) || fx_ready_any(&queue->ready) ||
	       fx_load_relaxed(&queue->cancels) ||
	       fx_load_relaxed(&queue->move);
}

/* Return: whether its carrier is awake; @suspect: and still in one task. */
static bool look_at(struct fx_queue *queue, bool *suspect)
{
	struct fx_carrier *carrier = queue->holder;
	uint32_t switches = fx_load_relaxed(&carrier->switches);
	enum fx_stuck stuck;

	if (fx_load_relaxed(&queue->sleeping))
		return false;
	if (fx_load_acquire(&carrier->claim.busy) ||
	    switches != queue->stuck_switches) {
		note(queue, switches);
		return true;
	}
	*suspect = true;
	stuck = how_stuck(queue);
	if (stuck != FX_NOT_STUCK && is_needed(queue))
		hand_off(queue, stuck);
	return true;
}

static void sleep_till_needed(void)
{
	uint32_t *asleep = &fx_sched.watch_asleep;
	bool awake = false;

	fx_resting_pause();
	fx_store_relaxed(asleep, 1u);
	fx_barrier_heavy();
	for (uint32_t i = 0; i < fx_sched.nr_queues; i++)
		awake |= !fx_load_relaxed(&fx_sched.queue[i]->sleeping);
	while (!awake && fx_load_acquire(asleep) &&
	       !fx_load_acquire(&fx_sched.stop))
		fx_futex_wait(asleep, 1, FX_NEVER);
	fx_store_relaxed(asleep, 0u);
}

static void *watch(void *arg)
{
	unsigned idle = 0, calm = 0;

	(void)arg;
	private_files = fx_thread_unshare_files();
	pthread_setname_np(pthread_self(), "flexsc-watchdog");
	while (!fx_load_acquire(&fx_sched.stop)) {
		bool awake = false, suspect = false;

		for (uint32_t i = 0; i < fx_sched.nr_queues; i++)
			awake |= look_at(fx_sched.queue[i], &suspect);
		fx_resting_tick();
		calm = suspect ? 0 : calm + 1;
		idle = awake ? 0 : idle + 1;
		if (idle >= IDLE_TICKS) {
			sleep_till_needed();
			idle = 0;
		}
		fx_futex_wait(&fx_sched.stop, 0,
			      calm < CALM_TICKS ? TICK_NS : CALM_TICK_NS);
	}
	return NULL;
}

void fx_watchdog_needed_slow(void)
{
	if (fx_exchange(&fx_sched.watch_asleep, 0u))
		fx_futex_wake(&fx_sched.watch_asleep, 1);
}

int fx_watchdog_start(void)
{
	pthread_attr_t attr;
	sigset_t before;
	int bad;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 * 1024);
	fx_pool_mask(&before);
	bad = pthread_create(&fx_sched.watchdog, &attr, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	fx_sched.watched = !bad;
	return -bad;
}

void fx_watchdog_stop(void)
{
	if (!fx_sched.watched)
		return;
	fx_futex_wake(&fx_sched.stop, INT32_MAX);
	fx_watchdog_needed_slow();
	fx_futex_wake(&fx_sched.watch_asleep, 1);
	pthread_join(fx_sched.watchdog, NULL);
	fx_sched.watched = false;
}
