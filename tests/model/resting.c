/* SPDX-License-Identifier: MIT */
/*
 * Carriers that rest (sched/resting.c) under every schedule: one is called
 * back by way of another one that runs, and one is sent to rest while a task
 * is sent to it. Each with the mistakes that it must not survive. Prints TAP.
 */
#include "model/explore.h"

#include <stdio.h>
#include <string.h>

#include "sched/idle.h"
#include "sched/ready.c"

enum {
	RIGHT,
	NO_FENCE, /* who sleeps does not fence */
	TOLD_EARLY, /* the change is announced before it is made */
	OLD_LOOK, /* who sleeps goes by what it saw before it said so */
	KEPT, /* who rests does not hand on */
};
static unsigned int mistake;

#define NR_TASKS 2

/* ready[0]: of the carrier that runs, ready[1]: of the one that may rest. */
static struct {
	struct fx_task task[NR_TASKS];
	struct fx_ready ready[2];
	struct fx_idle idle;
	uint32_t sleeping, rests, changed, nr_ran;
	uint8_t ran[FX_MODEL_MAX_THREADS][NR_TASKS];
} mem;
static struct fx_model_sem sem;

static void setup(void)
{
	memset(&mem, 0, sizeof(mem));
	for (unsigned i = 0; i < NR_TASKS; i++)
		mem.task[i].lender.lent = 1;
	fx_model_region(&mem, sizeof(mem));
	fx_model_name("inbox[0]", &mem.ready[0].inbox, 8);
	fx_model_name("inbox[1]", &mem.ready[1].inbox, 8);
	fx_model_name("sleeping", &mem.sleeping, 4);
	fx_model_name("rests", &mem.rests, 4);
	fx_model_name("changed", &mem.changed, 4);
	fx_model_sem_init(&sem);
}

static void setup_resting(void)
{
	setup();
	mem.rests = 1;
}

static void run(const struct fx_task *task)
{
	mem.ran[fx_model_self()][task - mem.task]++;
	fx_fetch_add(&mem.nr_ran, 1u);
}

static void check_each_once(void)
{
	for (unsigned n = 0; n < fx_load_relaxed(&mem.nr_ran); n++) {
		unsigned sum = 0;

		for (unsigned t = 0; t < FX_MODEL_MAX_THREADS; t++)
			sum += mem.ran[t][n];
		fx_model_assert(sum == 1);
	}
	fx_model_assert(fx_load_relaxed(&mem.nr_ran) > 0);
}

/* The carrier that may rest: idle() of sched/carrier.c. */
static void sleep_once(void)
{
	bool rests = fx_load_relaxed(&mem.rests);

	if (mistake == NO_FENCE)
		fx_store_relaxed(&mem.sleeping, 1u);
	else if (rests)
		fx_idle_rest(&mem.sleeping);
	else
		fx_idle_begin(&mem.idle, &mem.sleeping);
	if (mistake != OLD_LOOK)
		rests = fx_load_relaxed(&mem.rests);
	if (!fx_ready_any(&mem.ready[1]) &&
	    (rests || !fx_ready_any(&mem.ready[0])))
		fx_model_sem_wait(&sem);
	fx_idle_rested(&mem.sleeping); /* how many sleep is not looked at */
}

static void may_rest(void)
{
	for (;;) {
		bool rests = fx_load_relaxed(&mem.rests), left;
		struct fx_task *task = NULL;

		fx_ready_receive(&mem.ready[1], &mem.ready[1]);
		task = fx_ready_pop(&mem.ready[1], &left, false);
		if (!task && !rests)
			task = fx_ready_steal(&mem.ready[1], &mem.ready[0]);
		if (!task)
			sleep_once();
		else if (!rests)
			run(task);
		else if (mistake != KEPT)
			fx_ready_post(&mem.ready[0], task);
	}
}

/* (a) A carrier has two tasks; one keeps it until the other has run. */

static void look_around(void)
{
	while (!fx_load_relaxed(&mem.changed))
		fx_cpu_relax();
	fx_exchange(&mem.changed, 0u);
	fx_fence_after_cas();
	if (fx_idle_claim(&mem.sleeping))
		fx_model_sem_post(&sem);
}

static void has_two(void)
{
	struct fx_task *task;
	bool left;

	fx_ready_push(&mem.ready[0], &mem.task[0]);
	fx_ready_push(&mem.ready[0], &mem.task[1]);
	look_around();
	task = fx_ready_pop(&mem.ready[0], &left, false);
	if (!task)
		return; /* both stolen */
	run(task);
	while (fx_load_acquire(&mem.nr_ran) < 2)
		fx_cpu_relax();
}

static void calls_back(void)
{
	if (mistake == TOLD_EARLY)
		fx_store_release(&mem.changed, 1u);
	fx_store_release(&mem.rests, 0u);
	if (mistake != TOLD_EARLY)
		fx_store_release(&mem.changed, 1u);
}

/* (b) The heir runs what was sent to the other one, at the latest. */

static void heir(void)
{
	bool left;

	while (!fx_load_acquire(&mem.nr_ran)) {
		struct fx_task *task;

		fx_ready_receive(&mem.ready[0], &mem.ready[0]);
		task = fx_ready_pop(&mem.ready[0], &left, false);
		if (task)
			run(task);
		else
			fx_cpu_relax();
	}
}

static void sends_task(void)
{
	bool rests = fx_load_relaxed(&mem.rests);

	fx_ready_post(&mem.ready[!rests], &mem.task[0]);
	if (!rests && fx_idle_claim(&mem.sleeping))
		fx_model_sem_post(&sem);
}

static void sends_to_rest(void)
{
	fx_store_release(&mem.rests, 1u);
}

static const struct fx_model_scenario scenarios[] = {
	{ { .name = "called back",
	    .setup = setup_resting,
	    .thread = { may_rest, has_two, calls_back },
	    .check = check_each_once,
	    .daemons = 1 },
	  FX_MISTAKE(NO_FENCE) | FX_MISTAKE(TOLD_EARLY) |
		  FX_MISTAKE(OLD_LOOK) },
	{ { .name = "sent to rest",
	    .setup = setup,
	    .thread = { may_rest, heir, sends_task, sends_to_rest },
	    .check = check_each_once,
	    .daemons = 1 },
	  FX_MISTAKE(NO_FENCE) | FX_MISTAKE(KEPT) },
};

static const char *const mistake_names[] = {
	[NO_FENCE] = "no fence",
	[TOLD_EARLY] = "told too early",
	[OLD_LOOK] = "looked before it said so",
	[KEPT] = "kept what it does not run",
};

int main(int argc, char **argv)
{
	return fx_model_main(argc > 1 ? argv[1] : NULL, scenarios,
			     FX_ARRAY_SIZE(scenarios), mistake_names, &mistake);
}
