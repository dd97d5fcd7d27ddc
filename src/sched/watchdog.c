/* SPDX-License-Identifier: MIT */
/*
 * Finds carriers that have run one task for longer than a tick while others
 * depend on their queue, and gives the queue to a spare carrier; the protocol
 * is in sched/claim.h. Whether the task computes, spins or is blocked in the
 * kernel makes no difference. Sleeps when all carriers do.
 */
#include "sched/carrier.h"

#include "base/clock.h"
#include "engine/pool.h"

#include <errno.h>

#define TICK_NS (400 * FX_NS_PER_US) /* stuck: two in a row, so below 1 ms */
#define IDLE_TICKS 16
#define MAX_CARRIERS 4096

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

/* A new one comes to the list by itself: for the next tick, or a later one. */
static void keep_spare(void)
{
	bool none;

	fx_lock(&fx_sched.lock);
	none = !fx_sched.spares && fx_sched.nr_carriers < MAX_CARRIERS;
	fx_unlock(&fx_sched.lock);
	if (none)
		fx_carrier_new(NULL);
}

static void hand_off(struct fx_queue *queue)
{
	struct fx_carrier *spare = get_spare();

	keep_spare();
	if (!spare)
		return;
	if (!fx_claim_take(&queue->holder->claim)) {
		put_spare(spare);
		return;
	}
	fx_count(&queue->count, handoffs);
	queue->holder = spare;
	spare->queue = queue;
	fx_store_relaxed(&spare->claim.word, (uint32_t)FX_CLAIM_HELD);
	fx_store_release(&spare->given, 1u);
	fx_futex_wake(&spare->given, 1);
}

/* Return: whether its carrier is awake. */
static bool look_at(struct fx_queue *queue)
{
	struct fx_carrier *carrier = queue->holder;
	uint32_t switches = fx_load_relaxed(&carrier->switches);

	if (fx_load_relaxed(&queue->sleeping))
		return false;
	if (fx_load_relaxed(&carrier->claim.busy) ||
	    switches != queue->stuck_switches) {
		queue->stuck_switches = switches;
		return true;
	}
	if (fx_load_relaxed(&queue->waited) || fx_ready_any(&queue->ready) ||
	    fx_load_relaxed(&queue->cancels) || fx_load_relaxed(&queue->move))
		hand_off(queue);
	return true;
}

static void sleep_till_needed(void)
{
	uint32_t *asleep = &fx_sched.watch_asleep;
	bool awake = false;

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
	unsigned idle = 0;

	(void)arg;
	pthread_setname_np(pthread_self(), "flexsc-watchdog");
	while (!fx_load_acquire(&fx_sched.stop)) {
		bool awake = false;

		for (uint32_t i = 0; i < fx_sched.nr_queues; i++)
			awake |= look_at(fx_sched.queue[i]);
		idle = awake ? 0 : idle + 1;
		if (idle >= IDLE_TICKS) {
			sleep_till_needed();
			idle = 0;
		}
		fx_futex_wait(&fx_sched.stop, 0, TICK_NS);
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
