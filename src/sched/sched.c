/* SPDX-License-Identifier: MIT */
/* Making and ending the queues, their carriers and the watchdog. */
#include "sched/carrier.h"

#include "arch/fd.h"
#include "base/clock.h"
#include "base/pages.h"
#include "base/thread.h"
#include "engine/hold.h"
#include "engine/pool.h"
#include "engine/quiet.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MAX_QUEUES 1024

struct fx_sched fx_sched;

static void *new_lines(size_t size)
{
	void *p = aligned_alloc(FX_CACHE_LINE, (size + FX_CACHE_LINE - 1) /
						       FX_CACHE_LINE *
						       FX_CACHE_LINE);

	if (p)
		memset(p, 0, size);
	return p;
}

static void free_carrier(struct fx_carrier *carrier)
{
	fx_pages_free(carrier->signal_stack, FX_SIGNAL_STACK_SIZE);
	free(carrier);
}

/* That of one that has ended, or more. */
static struct fx_carrier *carrier_memory(void)
{
	struct fx_carrier *carrier;
	void *signal_stack;

	fx_lock(&fx_sched.lock);
	carrier = fx_sched.ended;
	if (carrier)
		fx_sched.ended = carrier->next;
	fx_unlock(&fx_sched.lock);
	if (carrier) {
		signal_stack = carrier->signal_stack;
		memset(carrier, 0, sizeof(*carrier));
		carrier->signal_stack = signal_stack;
		return carrier;
	}
	carrier = new_lines(sizeof(*carrier));
	if (!carrier)
		return NULL;
	carrier->signal_stack = fx_pages_resize(NULL, 0, FX_SIGNAL_STACK_SIZE);
	if (!carrier->signal_stack) {
		free(carrier);
		return NULL;
	}
	return carrier;
}

static void free_ended(void)
{
	struct fx_carrier *carrier;

	while ((carrier = fx_sched.ended)) {
		fx_sched.ended = carrier->next;
		free_carrier(carrier);
	}
}

struct fx_carrier *fx_carrier_new(struct fx_queue *queue)
{
	struct fx_carrier *carrier = carrier_memory();
	sigset_t before;
	int bad;

	if (!carrier)
		return NULL;
	carrier->queue = queue;
	carrier->claim.busy = 1;
	carrier->claim.word = queue ? FX_CLAIM_HELD : FX_CLAIM_TAKEN;
	if (queue)
		queue->holder = carrier;
	fx_pool_mask(&before);
	bad = pthread_create(&carrier->thread, NULL, fx_carrier_main, carrier);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (bad) {
		free_carrier(carrier);
		return NULL;
	}
	fx_lock(&fx_sched.lock);
	carrier->all = fx_sched.carriers;
	fx_sched.carriers = carrier;
	fx_sched.nr_carriers++;
	fx_sched.nr_made++;
	fx_unlock(&fx_sched.lock);
	return carrier;
}

static int new_queue(uint32_t index, int cpu)
{
	struct fx_queue *queue = new_lines(sizeof(*queue));
	int bad;

	if (!queue)
		return -ENOMEM;
	queue->index = index;
	queue->cpu = cpu;
	queue->rousefd = -1;
	bad = fx_owner_prepare(&queue->owner, &fx_sched.options);
	if (!bad) {
		bad = fx_queue_start(queue);
		if (bad)
			fx_counters_free(queue->owner.counters);
	}
	if (bad)
		free(queue);
	else
		fx_sched.queue[index] = queue;
	return bad;
}

static void free_queue(struct fx_queue *queue)
{
	if (queue->rousefd >= 0)
		fx_close(queue->rousefd);
	for (unsigned c = 0; c < FX_NR_CLOCKS; c++)
		fx_deadlines_fini(&queue->timers[c]);
	free(queue);
}

static void free_queues(void)
{
	for (uint32_t i = 0; i < fx_sched.nr_queues; i++) {
		struct fx_queue *queue = fx_sched.queue[i];

		if (queue->started)
			fx_owner_stop(&queue->owner);
		fx_counters_free(queue->owner.counters);
		free_queue(queue);
	}
	free(fx_sched.queue);
}

static int next_cpu(const cpu_set_t *set, int cpu)
{
	do
		cpu = (cpu + 1) % CPU_SETSIZE;
	while (!CPU_ISSET(cpu, set));
	return cpu;
}

static int make_queues(const struct fx_sched_options *options)
{
	uint32_t nr = options->nr_carriers;
	cpu_set_t *set = &fx_sched.allowed;
	int cpu = -1, bad;

	if (sched_getaffinity(0, sizeof(*set), set)) {
		CPU_ZERO(set);
		CPU_SET(0, set);
	}
	fx_thread_cpus = set;
	fx_thread_cpus_size = sizeof(*set);
	if (!nr)
		nr = (uint32_t)CPU_COUNT(set);
	if (nr > MAX_QUEUES)
		nr = MAX_QUEUES;
	fx_sched.queue = calloc(nr, sizeof(struct fx_queue *));
	if (!fx_sched.queue)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		cpu = next_cpu(set, cpu);
		bad = new_queue(i, options->no_pinning ? -1 : cpu);
		if (bad)
			return bad;
		fx_sched.nr_queues = i + 1;
	}
	return 0;
}

static void keep_options(const struct fx_sched_options *o)
{
	snprintf(fx_sched.engine, sizeof(fx_sched.engine), "%s",
		 o->engine ? o->engine : "poll");
	fx_sched.idle_ms = o->idle_ms ? o->idle_ms : FX_STOP_IDLE_MS;
	fx_sched.options = (struct fx_owner_options){
		.engine = fx_sched.engine,
		.max_entries = o->max_entries ? o->max_entries :
						FLEXSC_MAX_ENTRIES,
		.max_threads = o->max_threads,
		.spin_ns = FX_NEVER,
		.keeps_files = true,
		.leaves = true,
	};
}

int fx_carriers_begin(void)
{
	int bad = 0;

	for (uint32_t i = 0; i < fx_sched.nr_queues; i++)
		if (!fx_carrier_new(fx_sched.queue[i]))
			bad = -EAGAIN;
	if (!bad)
		bad = fx_watchdog_start();
	if (!bad)
		fx_carrier_new(NULL); /* the first spare */
	return bad;
}

int fx_sched_init(const struct fx_sched_options *options)
{
	int saved = errno, bad;

	fx_arch_init();
	fx_barrier_init();
	fx_sched.pid = getpid();
	fx_sched.filtered = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
	fx_call_signals_blocked = true; /* by all carriers */
	fx_resting_reset();
	keep_options(options);
	bad = make_queues(options);
	if (bad) {
		free_queues();
		memset(&fx_sched, 0, sizeof(fx_sched));
	} else {
		bad = fx_carriers_begin();
		if (bad)
			fx_sched_fini();
	}
	errno = saved;
	return bad;
}

/* One after the other: one that ends may just have made a spare one. */
static struct fx_carrier *next_to_end(const struct fx_carrier *but)
{
	struct fx_carrier **p, *carrier;

	fx_lock(&fx_sched.lock);
	for (p = &fx_sched.carriers; *p && *p == but; p = &(*p)->all)
		;
	carrier = *p;
	if (carrier) {
		*p = carrier->all;
		fx_store_release(&carrier->given, (uint32_t)FX_GIVEN_QUEUE);
		fx_futex_wake(&carrier->given, 1);
	}
	fx_unlock(&fx_sched.lock);
	return carrier;
}

void fx_carriers_end(const struct fx_carrier *but)
{
	struct fx_carrier *carrier;

	fx_store_release(&fx_sched.stop, 1u); /* nobody retires from now on */
	fx_fence();
	fx_watchdog_stop();
	for (uint32_t i = 0; i < fx_sched.nr_queues; i++)
		fx_rouse(fx_sched.queue[i]);
	while ((carrier = next_to_end(but))) {
		pthread_join(carrier->thread, NULL);
		free_carrier(carrier);
	}
}

void fx_sched_fini(void)
{
	/* A spare one may be about to end all. */
	fx_lock(&fx_sched.changing);
	fx_store_release(&fx_sched.stop, 1u);
	fx_unlock(&fx_sched.changing);
	fx_carriers_end(NULL);
	free_ended();
	free_queues();
	memset(&fx_sched, 0, sizeof(fx_sched));
}

void fx_sched_after_fork(void)
{
	struct fx_task *me = fx_task_self;
	struct fx_carrier *carrier = fx_sched.carriers, *next;

	fx_barrier_after_fork();
	fx_hold_after_fork();
	if (me && me->carrier)
		sched_setaffinity(0, sizeof(fx_sched.allowed),
				  &fx_sched.allowed);
	if (me) {
		me->carrier = NULL;
		me->heap = NULL;
		me->lender = (struct fx_arch_lender){ 0, 0 };
	}
	for (uint32_t i = 0; i < fx_sched.nr_queues; i++) {
		struct fx_queue *queue = fx_sched.queue[i];

		/* Else it was being made, or ended: what is left is lost. */
		if (queue->started)
			fx_owner_abandon(&queue->owner);
		else
			fx_counters_free(queue->owner.counters);
		free_queue(queue);
	}
	free(fx_sched.queue);
	for (; carrier; carrier = next) {
		next = carrier->all;
		free_carrier(carrier);
	}
	free_ended();
	memset(&fx_sched, 0, sizeof(fx_sched));
}

void fx_sched_unpin(void)
{
	/* Carriers have no other one then. */
	if (CPU_COUNT(&fx_sched.allowed) == 1)
		return;
	sched_setaffinity(0, sizeof(fx_sched.allowed), &fx_sched.allowed);
}

bool fx_sched_restricts(const cpu_set_t *set)
{
	cpu_set_t both;

	CPU_AND(&both, set, &fx_sched.allowed);
	return CPU_COUNT(&both) < CPU_COUNT(&fx_sched.allowed);
}

uint32_t fx_sched_nr_queues(void)
{
	return fx_sched.nr_queues;
}

const char *fx_sched_engine(void)
{
	return fx_sched.queue[0]->owner.counters->engine;
}

void fx_sched_counters(uint32_t queue, struct fx_queue_counters *counters)
{
	const uint64_t *from = (uint64_t *)&fx_sched.queue[queue]->count;
	uint64_t *to = (uint64_t *)counters;

	for (size_t i = 0; i < sizeof(*counters) / sizeof(*to); i++)
		to[i] = fx_load_relaxed(&from[i]);
}

void fx_sched_carriers(struct fx_carrier_counters *counters)
{
	fx_lock(&fx_sched.lock);
	*counters = (struct fx_carrier_counters){
		.carriers = fx_sched.nr_carriers,
		.spares = fx_sched.nr_spares,
		.sleeping = fx_load_relaxed(&fx_sched.idle.nr_sleeping),
		.resting = fx_load_relaxed(&fx_sched.nr_resting),
		.made = fx_sched.nr_made,
		.ended = fx_sched.nr_made - fx_sched.nr_carriers,
		.closes_moved = fx_load_relaxed(&fx_sched.closes_moved),
	};
	fx_unlock(&fx_sched.lock);
}

void fx_task_look(const struct fx_task *task, struct fx_task_look *look)
{
	uint64_t word = fx_load_acquire(&task->state);
	enum fx_task_state state = fx_task_state(word);

	*look = (struct fx_task_look){
		.state = state, .at_home = !fx_load_relaxed(&task->carrier)
	};
	if (state != FX_TASK_PARKED && state != FX_TASK_HOME)
		return;
	look->at_home = state == FX_TASK_HOME;
	look->where = fx_load_relaxed(&task->where);
	look->since_ms = fx_load_relaxed(&task->since_ms);
	/* Of the parking before, or the next one: then it ran between. */
	if (fx_load_acquire(&task->state) != word) {
		look->state = FX_TASK_RUNNING;
		look->where = NULL;
	}
}
