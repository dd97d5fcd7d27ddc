/* SPDX-License-Identifier: MIT */
/*
 * Ending carriers, watchdog and engines while nobody needs them, and beginning
 * again; protocol in sched/needed.h. Queues stay, since tasks that are never
 * lent name one, and so does the descriptor that ends a carrier's sleep: who
 * was about to write to it may do so late.
 */
#include "sched/carrier.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int keep_rousefd(struct fx_queue *queue)
{
	int fd = queue->owner.set.owner_eventfd;

	if (queue->rousefd >= 0)
		return dup3(fd, queue->rousefd, O_CLOEXEC) < 0 ? -EMFILE : 0;
	queue->rousefd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return queue->rousefd < 0 ? -EMFILE : 0;
}

int fx_queue_start(struct fx_queue *queue)
{
	int bad = fx_owner_start(&queue->owner, &fx_sched.options);

	if (bad)
		return bad;
	bad = keep_rousefd(queue);
	if (bad)
		fx_owner_stop(&queue->owner);
	else
		fx_store_release(&queue->started, true);
	return bad;
}

void fx_queue_stop(struct fx_queue *queue)
{
	if (!queue->started)
		return;
	fx_store_release(&queue->started, false);
	fx_owner_stop(&queue->owner);
	for (unsigned c = 0; c < FX_NR_CLOCKS; c++) {
		fx_deadlines_fini(&queue->timers[c]);
		memset(&queue->timers[c], 0, sizeof(queue->timers[c]));
	}
	queue->sleeping = queue->rests = queue->waited = 0;
	queue->heir = NULL;
	queue->holder = NULL;
	queue->asleep_since_ns = 0;
}

static void end_all(const struct fx_carrier *but)
{
	fx_carriers_end(but);
	for (uint32_t i = 0; i < fx_sched.nr_queues; i++)
		fx_queue_stop(fx_sched.queue[i]);
	fx_lock(&fx_sched.lock);
	fx_sched.carriers = fx_sched.spares = NULL;
	fx_sched.nr_carriers = fx_sched.nr_spares = 0;
	fx_unlock(&fx_sched.lock);
	fx_sched.idle = (struct fx_idle){ 0, 0 };
	fx_sched.nr_resting = fx_sched.rests_changed = 0;
	fx_sched.watch_asleep = 0;
	fx_resting_reset();
	fx_store_release(&fx_sched.stop, 0u);
}

static int begin_again(void)
{
	int bad = 0;

	/* It has forbidden itself calls since: these, perhaps. */
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != fx_sched.filtered)
		return -EPERM;
	for (uint32_t i = 0; i < fx_sched.nr_queues && !bad; i++)
		bad = fx_queue_start(fx_sched.queue[i]);
	if (!bad)
		bad = fx_carriers_begin();
	if (bad)
		end_all(NULL);
	return bad;
}

int fx_sched_need(void)
{
	int saved = errno, bad = 0;

	if (fx_likely(fx_needed_more(&fx_sched.needed)))
		return 0;
	fx_lock(&fx_sched.changing);
	if (fx_sched.needed.state == FX_STOPPED) {
		bad = begin_again();
		if (!bad)
			fx_store_release(&fx_sched.needed.state,
					 (uint32_t)FX_RUNS);
	}
	fx_unlock(&fx_sched.changing);
	if (bad)
		fx_sched_need_not();
	errno = saved;
	return bad;
}

void fx_sched_need_not(void)
{
	uint32_t nothing = FX_GIVEN_NOTHING;
	struct fx_carrier *spare;

	if (!fx_needed_less(&fx_sched.needed))
		return;
	fx_lock(&fx_sched.lock);
	spare = fx_sched.spares;
	if (spare &&
	    fx_cas(&spare->given, &nothing, (uint32_t)FX_GIVEN_WATCH))
		fx_futex_wake(&spare->given, 1);
	fx_unlock(&fx_sched.lock);
}

/* Return: false if it is none any more: it has been given a queue. */
static bool leave_spares(struct fx_carrier *spare)
{
	struct fx_carrier **p;
	bool there;

	fx_lock(&fx_sched.lock);
	for (p = &fx_sched.spares; *p && *p != spare; p = &(*p)->next)
		;
	there = *p;
	if (there) {
		*p = spare->next;
		fx_sched.nr_spares--;
	}
	fx_unlock(&fx_sched.lock);
	return there;
}

static void join_spares(struct fx_carrier *spare)
{
	fx_lock(&fx_sched.lock);
	spare->next = fx_sched.spares;
	fx_sched.spares = spare;
	fx_sched.nr_spares++;
	fx_unlock(&fx_sched.lock);
}

/* Under the lock `changing`. */
static bool stop(struct fx_carrier *spare, uint64_t count)
{
	if (fx_load_acquire(&fx_sched.stop) || !leave_spares(spare))
		return false;
	if (!fx_needed_stop(&fx_sched.needed, count)) {
		join_spares(spare);
		return false;
	}
	end_all(spare);
	pthread_detach(pthread_self());
	fx_store_relaxed(&spare->tid, 0);
	spare->next = fx_sched.ended;
	fx_sched.ended = spare;
	fx_store_relaxed(&fx_sched.needed.watching, 0u);
	fx_store_release(&fx_sched.needed.state, (uint32_t)FX_STOPPED);
	return true;
}

bool fx_sched_stop(struct fx_carrier *spare, uint64_t count)
{
	bool stopped;

	if (!fx_needed_none(count)) {
		fx_needed_unwatch(&fx_sched.needed);
		return false;
	}
	fx_lock(&fx_sched.changing);
	stopped = stop(spare, count);
	fx_unlock(&fx_sched.changing);
	return stopped;
}
