/* SPDX-License-Identifier: MIT */
/*
 * Carriers that end while nobody needs them (sched/needed.h) under every
 * schedule: two make tasks and end them, a spare carrier ends all when it has
 * seen nobody for a while. Whoever has a task finds carriers, and in the end
 * there are none. Each with the mistakes that it must not survive. Prints TAP.
 */
#include "model/explore.h"

#include <stdio.h>
#include <string.h>

#include "sched/needed.h"

enum {
	RIGHT,
	LOOKS_EARLY, /* who needs them looks before it says so */
	STOPS_UNFENCED, /* who stops them does not fence */
	NO_LOCK, /* who needs them does not wait for who stops them */
	UNWATCHED, /* who ceases to watch does not look again */
	NOT_WOKEN, /* the last one wakes nobody */
};
static unsigned int mistake;

static struct {
	struct fx_needed needed;
	uint32_t lock, run; /* run: there are carriers */
} mem;
static struct fx_model_sem poke, begun;

static void setup(void)
{
	memset(&mem, 0, sizeof(mem));
	mem.run = 1;
	fx_model_region(&mem, sizeof(mem));
	fx_model_name("count", &mem.needed.count, 8);
	fx_model_name("state", &mem.needed.state, 4);
	fx_model_name("watching", &mem.needed.watching, 4);
	fx_model_name("lock", &mem.lock, 4);
	fx_model_name("run", &mem.run, 4);
	fx_model_sem_init(&poke);
	fx_model_sem_init(&begun);
}

static void check_stopped(void)
{
	fx_model_assert(!fx_load_relaxed(&mem.run));
	fx_model_assert(fx_load_relaxed(&mem.needed.state) == FX_STOPPED);
}

static void lock(void)
{
	while (fx_exchange(&mem.lock, 1u))
		fx_cpu_relax();
}

static void unlock(void)
{
	fx_store_release(&mem.lock, 0u);
}

static bool more(void)
{
	bool runs;

	if (mistake != LOOKS_EARLY)
		return fx_needed_more(&mem.needed);
	runs = fx_load_acquire(&mem.needed.state) == FX_RUNS;
	fx_needed_more(&mem.needed);
	return runs;
}

/* fx_sched_need() of sched/stop.c. */
static void need(void)
{
	if (more())
		return;
	if (mistake != NO_LOCK)
		lock();
	if (fx_load_relaxed(&mem.needed.state) == FX_STOPPED) {
		fx_store_release(&mem.run, 1u);
		fx_store_release(&mem.needed.state, (uint32_t)FX_RUNS);
		fx_model_sem_post(&begun);
	}
	if (mistake != NO_LOCK)
		unlock();
}

static void need_not(void)
{
	if (fx_needed_less(&mem.needed) && mistake != NOT_WOKEN)
		fx_model_sem_post(&poke);
}

static void has_task(void)
{
	need();
	fx_model_assert(fx_load_acquire(&mem.run));
	fx_model_assert(fx_load_acquire(&mem.run));
	need_not();
}

static void has_two(void)
{
	has_task();
	has_task();
}

static bool nobody(uint64_t count)
{
	if (mistake == STOPS_UNFENCED) {
		fx_store_relaxed(&mem.needed.state, (uint32_t)FX_STOPS);
		if (fx_load_acquire(&mem.needed.count) == count)
			return true;
		fx_store_release(&mem.needed.state, (uint32_t)FX_RUNS);
		return false;
	}
	return fx_needed_stop(&mem.needed, count);
}

/* fx_sched_stop() of sched/stop.c. */
static bool stop(uint64_t count)
{
	bool stops;

	if (!fx_needed_none(count)) {
		if (mistake == UNWATCHED)
			fx_store_release(&mem.needed.watching, 0u);
		else
			fx_needed_unwatch(&mem.needed);
		return false;
	}
	lock();
	stops = nobody(count);
	if (stops) {
		fx_store_release(&mem.run, 0u);
		fx_store_relaxed(&mem.needed.watching, 0u);
		fx_store_release(&mem.needed.state, (uint32_t)FX_STOPPED);
	}
	unlock();
	return stops;
}

/* wait_to_be_given() of sched/carrier.c; its time is over whenever it likes. */
static void spare(void)
{
	for (;;) {
		uint64_t count = fx_load_relaxed(&mem.needed.count);

		if (!fx_load_acquire(&mem.needed.watching))
			fx_model_sem_wait(&poke);
		else if (stop(count))
			fx_model_sem_wait(&begun);
	}
}

static const struct fx_model_scenario scenarios[] = {
	{ { .name = "one, twice",
	    .setup = setup,
	    .thread = { spare, has_two },
	    .check = check_stopped,
	    .daemons = 1 },
	  FX_MISTAKE(LOOKS_EARLY) | FX_MISTAKE(STOPS_UNFENCED) |
		  FX_MISTAKE(NO_LOCK) | FX_MISTAKE(UNWATCHED) |
		  FX_MISTAKE(NOT_WOKEN) },
	{ { .name = "two",
	    .setup = setup,
	    .thread = { spare, has_task, has_task },
	    .check = check_stopped,
	    .daemons = 1 },
	  FX_MISTAKE(LOOKS_EARLY) | FX_MISTAKE(STOPS_UNFENCED) |
		  FX_MISTAKE(NO_LOCK) | FX_MISTAKE(UNWATCHED) |
		  FX_MISTAKE(NOT_WOKEN) },
};

static const char *const mistake_names[] = {
	[LOOKS_EARLY] = "looks before it says that it needs them",
	[STOPS_UNFENCED] = "does not fence before it looks",
	[NO_LOCK] = "does not wait for who stops them",
	[UNWATCHED] = "does not look again",
	[NOT_WOKEN] = "wakes nobody",
};

int main(int argc, char **argv)
{
	return fx_model_main(argc > 1 ? argv[1] : NULL, scenarios,
			     FX_ARRAY_SIZE(scenarios), mistake_names, &mistake);
}
