/* SPDX-License-Identifier: MIT */
/*
 * The core thread of engine uthread, which polls the submission ring and
 * carries calls out, and the watcher that finds it stuck; see engine/core.h.
 */
#include "engine/core.h"

#include "arch/arch.h"
#include "base/futex.h"
#include "base/thread.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Calls in a row after which parked descriptors get their turn. */
#define CALLS_IN_A_ROW 64
/*
 * Completions in a row after which a sleeping owner is woken; at the latest
 * when there are no more to come at once.
 */
#define COMPLETIONS_A_WAKE 16
/* In one call at two ticks of this length, the core thread is stuck. */
#define TICK_NS (10 * FX_NS_PER_MS)
/* So many stuck ones at a time: then it is the machine, or the program. */
#define MAX_STUCK 8

/* fx_core.go */
enum { START, RUN, END };

/*
 * An owner that is woken by the first of many completions goes back to sleep
 * after each: so it is told of some at a time.
 */
static void tell_owner(struct fx_core *c)
{
	if (!c->untold)
		return;
	c->untold = 0;
	fx_set_look_at_owner(c->runner.set);
}

static void core_complete(struct fx_runner *runner, uint32_t index, int64_t ret)
{
	struct fx_core *c = (struct fx_core *)runner;

	fx_set_finish(runner->set, &c->view, index, ret);
	if (++c->untold == COMPLETIONS_A_WAKE)
		tell_owner(c);
}

/* Carrying out -------------------------------------------------------------- */

/* An entry and what follows it; the role can be lost by that. */
static void carry(struct fx_core *c, uint32_t index)
{
	fx_role_enter(&c->role);
	fx_run(&c->runner, index);
	if (fx_unlikely(!fx_role_leave(&c->role)))
		c->lost = true;
}

/* Up to CALLS_IN_A_ROW submissions; returns how many chains were taken. */
static unsigned take(struct fx_core *c)
{
	struct fx_set *set = c->runner.set;
	uint32_t indices[FLEXSC_MAX_CHAIN];
	unsigned n = 0;

	while (n < CALLS_IN_A_ROW && !c->lost) {
		int nr = fx_set_take(set, &c->view, indices, NULL, NULL);

		if (nr <= 0)
			break;
		fx_run_link(set, indices, (unsigned)nr);
		carry(c, indices[0]);
		n++;
	}
	tell_owner(c);
	return n;
}

static unsigned resume_parked(struct fx_core *c)
{
	unsigned n = 0;
	uint32_t index;

	while (n < CALLS_IN_A_ROW && !c->lost &&
	       (index = fx_park_next(&c->engine->poll.park)) != FX_NO_ENTRY) {
		carry(c, index);
		n++;
	}
	tell_owner(c);
	return n;
}

static void wait_for_descriptors(struct fx_uthread *e, uint64_t timeout_ns)
{
	uint64_t n;
	bool woken;

	fx_park_wait(&e->poll.park, timeout_ns, &woken);
	if (woken)
		fx_arch_syscall(SYS_read, e->core_eventfd, (long)&n, sizeof(n),
				0, 0, 0);
}

static void check_parked(struct fx_core *c)
{
	struct fx_uthread *e = c->engine;
	uint32_t index;

	while (!c->lost && (index = fx_park_check(&e->poll.park)) != FX_NO_ENTRY) {
		fx_role_enter(&c->role);
		fx_run_over(&c->runner, index,
			    fx_set_entry(e->poll.base.set, index)->ret);
		if (!fx_role_leave(&c->role))
			c->lost = true;
	}
	tell_owner(c);
}

static void core_sleep(struct fx_core *c)
{
	struct fx_uthread *e = c->engine;
	struct fx_set *set = e->poll.base.set;
	uint32_t *flag = &set->shared->engine_sleeping;

	fx_store_relaxed(flag, 1u);
	fx_barrier_heavy();
	if (!fx_set_has_work(set, &c->view) &&
	    !fx_load_acquire(&e->stop)) {
		fx_count(e->poll.base.counters, core_sleeps);
		wait_for_descriptors(e, fx_park_due(&e->poll.park));
	}
	fx_exchange(flag, 0u);
	/* Before anything that it could be stuck in. */
	if (fx_load_relaxed(&e->watcher_asleep) &&
	    fx_exchange(&e->watcher_asleep, 0u))
		fx_futex_wake(&e->watcher_asleep, 1);
	fx_store_relaxed(&e->core_cpu, sched_getcpu());
	check_parked(c);
}

static void core_loop(struct fx_core *c)
{
	struct fx_uthread *e = c->engine;
	uint64_t last_work = fx_now_ns();
	unsigned looks = 0;

	while (!c->lost && !fx_load_acquire(&e->stop)) {
		unsigned n = take(c);

		if (n) {
			fx_count_add(e->poll.base.counters, core_calls, n);
			looks = 0;
			last_work = 0;
			if (n < CALLS_IN_A_ROW)
				continue;
		} else if (++looks < FX_CORE_LOOKS) {
			fx_cpu_relax();
			continue;
		}
		looks = 0;
		if (!c->lost && fx_load_relaxed(&e->poll.park.nr_parked)) {
			wait_for_descriptors(e, 0);
			check_parked(c);
		}
		if (resume_parked(c) || n || !last_work) {
			last_work = fx_now_ns();
			continue;
		}
		if (!c->lost && fx_now_ns() - last_work > e->spin_ns)
			core_sleep(c);
	}
}

static void *core_main(void *arg)
{
	struct fx_core *c = arg;

	pthread_setname_np(pthread_self(), "flexsc-core");
	while (fx_load_acquire(&c->go) == START)
		fx_futex_wait(&c->go, START, FX_NEVER);
	if (fx_load_relaxed(&c->go) == RUN) {
		fx_store_relaxed(&c->engine->core_cpu, sched_getcpu());
		fx_store_relaxed(&c->engine->core_tid,
				 (pid_t)syscall(SYS_gettid));
		core_loop(c);
	}
	fx_store_release(&c->over, 1u);
	return NULL;
}

/* Threads ------------------------------------------------------------------- */

/* What the process was given, before it bound threads of its own. */
static cpu_set_t at_start;

__attribute__((constructor)) static void note_processors(void)
{
	int saved = errno;

	if (sched_getaffinity(0, sizeof(at_start), &at_start))
		CPU_ZERO(&at_start);
	errno = saved;
}

/*
 * An owner that bound itself to one processor leaves the others to the core
 * thread; a process that was bound to one from outside (taskset) has no other.
 */
bool fx_core_processors(cpu_set_t *set)
{
	int here = sched_getcpu();

	if (sched_getaffinity(0, sizeof(*set), set) || CPU_COUNT(set) < 2)
		*set = at_start;
	if (here >= 0)
		CPU_CLR(here, set);
	return CPU_COUNT(set) > 0;
}

/* Where the stuck one was allowed to run; the first one: not here. */
static bool choose_processors(struct fx_core *before, cpu_set_t *set)
{
	if (!before)
		return fx_core_processors(set);
	return !pthread_getaffinity_np(before->thread, sizeof(*set), set);
}

static int start_thread(struct fx_core *c)
{
	pthread_attr_t attr;
	sigset_t before;
	cpu_set_t set;
	int bad;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	if (choose_processors(c->engine->core, &set))
		pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	fx_pool_mask(&before);
	bad = pthread_create(&c->thread, &attr, core_main, c);
	if (bad == EINVAL) { /* a cpuset forbids the other processors */
		pthread_attr_t plain;

		pthread_attr_init(&plain);
		bad = pthread_create(&c->thread, &plain, core_main, c);
		pthread_attr_destroy(&plain);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -bad;
}

/* A thread that waits to be the core thread; NULL if there cannot be one. */
static struct fx_core *new_core(struct fx_uthread *e)
{
	struct fx_core *c = aligned_alloc(FX_CACHE_LINE, sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct fx_core){ .engine = e, .runner = e->poll.runner };
	c->runner.owner = false;
	c->runner.guard = &c->guard;
	c->runner.complete = core_complete;
	fx_worker_view_init(&c->view);
	if (start_thread(c)) {
		free(c);
		return NULL;
	}
	return c;
}

static void tell_core(struct fx_core *c, uint32_t go)
{
	fx_store_release(&c->go, go);
	fx_futex_wake(&c->go, 1);
}

static void end_core(struct fx_core *c)
{
	pthread_join(c->thread, NULL);
	fx_guard_fini(&c->guard);
	free(c);
}

/* The watcher ------------------------------------------------------------- */

/* Those that came out of their call are joined. */
static void reap_stuck(struct fx_uthread *e)
{
	struct fx_core **p = &e->core->next, *c;

	while ((c = *p)) {
		if (fx_load_acquire(&c->over)) {
			*p = c->next;
			end_core(c);
			fx_store_relaxed(&e->nr_stuck, e->nr_stuck - 1);
		} else {
			p = &c->next;
		}
	}
}

/*
 * A thread that waits for its processor is in the same call for long too, but
 * another one would only wait beside it. Where /proc does not say: stuck.
 */
static void stand_in(struct fx_uthread *e, uint32_t call)
{
	struct fx_core *c;

	if (e->nr_stuck >= MAX_STUCK ||
	    fx_thread_runnable(fx_load_relaxed(&e->core_tid)))
		return;
	c = new_core(e);
	if (!c)
		return;
	if (!fx_role_take(&e->core->role, call)) {
		tell_core(c, END);
		end_core(c);
		return;
	}
	c->next = e->core;
	fx_store_relaxed(&e->core, c);
	fx_store_relaxed(&e->nr_stuck, e->nr_stuck + 1);
	tell_core(c, RUN);
	/* Of what the other one had not told it. */
	fx_set_look_at_owner(e->poll.base.set);
}

/* The core thread sleeps, and says so before it does anything else. */
static void watcher_sleep(struct fx_uthread *e)
{
	fx_store_relaxed(&e->watcher_asleep, 1u);
	fx_barrier_heavy();
	if (fx_load_acquire(&e->poll.base.set->shared->engine_sleeping))
		while (!fx_load_acquire(&e->stop) &&
		       fx_load_acquire(&e->watcher_asleep))
			fx_futex_wait(&e->watcher_asleep, 1, FX_NEVER);
	fx_store_relaxed(&e->watcher_asleep, 0u);
}

static void *watch(void *arg)
{
	struct fx_uthread *e = arg;
	uint32_t *sleeping = &e->poll.base.set->shared->engine_sleeping;
	uint32_t before = 0, call;
	bool idle = false, was_idle;

	pthread_setname_np(pthread_self(), "flexsc-watch");
	while (!fx_load_acquire(&e->stop)) {
		was_idle = idle;
		idle = fx_load_relaxed(sleeping);
		call = fx_role_inside(&e->core->role);
		if (call && call == before)
			stand_in(e, call);
		else if (idle && was_idle && !e->nr_stuck)
			watcher_sleep(e);
		before = call;
		if (e->nr_stuck)
			reap_stuck(e);
		fx_futex_wait(&e->stop, 0, TICK_NS);
	}
	return NULL;
}

static int start_watcher(struct fx_uthread *e)
{
	pthread_attr_t attr;
	sigset_t before;
	int bad;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 * 1024);
	fx_pool_mask(&before);
	bad = pthread_create(&e->watcher, &attr, watch, e);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -bad;
}

static void end_all(struct fx_uthread *e, bool watched)
{
	struct fx_core *c;

	fx_store_release(&e->stop, 1u);
	fx_futex_wake(&e->stop, 1);
	fx_store_release(&e->watcher_asleep, 0u);
	fx_futex_wake(&e->watcher_asleep, 1);
	if (watched)
		pthread_join(e->watcher, NULL);
	fx_park_poke(&e->poll.park);
	while ((c = e->core)) {
		e->core = c->next;
		end_core(c);
	}
}

int fx_core_init(struct fx_uthread *e)
{
	int bad;

	e->stop = e->watcher_asleep = e->nr_stuck = 0;
	e->core = new_core(e);
	if (!e->core)
		return -ENOMEM;
	tell_core(e->core, RUN);
	bad = start_watcher(e);
	if (bad)
		end_all(e, false);
	return bad;
}

void fx_core_fini(struct fx_uthread *e)
{
	end_all(e, true);
}

void fx_core_abandon(struct fx_uthread *e)
{
	struct fx_core *c;

	while ((c = e->core)) {
		e->core = c->next;
		free(c);
	}
}
