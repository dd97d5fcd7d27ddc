/* SPDX-License-Identifier: MIT */
/*
 * The protocols of <linux/flexsc.h> and page/set.h, carried out by the
 * library's own code under every schedule: rings, chains, cancelling, the two
 * kinds of sleep and growth. Each with the mistakes that it must not survive.
 * Prints TAP.
 */
#include "model/protocol.h"

#include <stdio.h>

/* (a) post, take, own, complete, reap, recycle, post again. */

static void setup_entries(void)
{
	model_set_init(2);
}

static void post_twice_owner(void)
{
	uint32_t first = model_post(1);

	model_post(2);
	if (mistake == DONE_RECYCLES) {
		while (fx_load_acquire(&mem.entries[first].status) !=
		       FLEXSC_DONE)
			fx_cpu_relax();
		fx_set_recycle(&mem.set, first);
		model_post(3);
		model_await(3);
		return;
	}
	while (fx_set_claimed(&mem.set) == 2)
		if (!model_reap())
			fx_cpu_relax();
	model_post(3);
	model_await_all();
}

static void check_three(void)
{
	model_check(3);
}

static void check_two(void)
{
	model_check(2);
}

/* (b) a chain of two, then a single one. */

static void setup_chain(void)
{
	model_set_init(3);
	mem.chain = 2;
}

static void chain_owner(void)
{
	model_post_chain(1, 2);
	model_post(3);
	model_await(3);
}

/* (c) cancel, notice, acknowledgement, and the entry used again. */

static void setup_one(void)
{
	model_set_init(1);
}

/* Owner: as engines do that tell by notice whom they interrupt. */
static void cancel(uint32_t index)
{
	if (fx_set_cancel(&mem.set, index) == FX_CANCEL_BUSY)
		fx_set_notify(&mem.set, index);
}

static void cancel_owner(void)
{
	uint32_t index = model_post(1);

	cancel(index);
	fx_model_assert(fx_set_cancel(&mem.set, index) == FX_CANCEL_DONE ||
			mem.slots[index].cancelled);
	if (mistake == NOTICE_FORGOTTEN)
		mem.slots[index].notices = 0;
	model_await_all();
	model_post(2);
	model_await_all();
}

/* (d) the owner sleeps. */

static void sleeping_owner(void)
{
	unsigned nr = 2;

	model_post(1);
	model_post(2);
	while (nr > 0) {
		unsigned n = model_reap();

		nr -= n;
		if (n || !fx_set_owner_sleep(&mem.set))
			continue;
		fx_model_sem_wait(&owner_sem);
		fx_set_owner_awake(&mem.set);
	}
}

/* (e) the core thread sleeps: core_sleep() and uthread_flush(). */

static void core_sleep(struct fx_worker_view *view)
{
	uint32_t *flag = &mem.shared.engine_sleeping;

	fx_store_relaxed(flag, 1u);
	model_barrier_heavy();
	if (!fx_set_has_work(&mem.set, view) && !fx_load_acquire(&mem.stop))
		fx_model_sem_wait(&core_sem);
	fx_exchange(flag, 0u);
}

static void sleeping_core(void)
{
	struct fx_worker_view view = { 0 };

	fx_worker_view_init(&view);
	while (!fx_load_acquire(&mem.stop))
		if (!model_consume(&view))
			core_sleep(&view);
}

static void flush(void)
{
	fx_barrier_light();
	if (fx_load_relaxed(&mem.shared.engine_sleeping) &&
	    fx_exchange(&mem.shared.engine_sleeping, 0u))
		fx_model_sem_post(&core_sem);
}

static void flushing_owner(void)
{
	if (mistake == EARLY_LOOK)
		flush();
	model_post(1);
	if (mistake != EARLY_LOOK)
		flush();
	model_await(1);
	model_post(2);
	if (mistake != EARLY_LOOK)
		flush();
	model_await(1);
	fx_store_release(&mem.stop, 1u);
	fx_model_sem_post(&core_sem);
}

/* Both sleep, and the owner helps before it does: uthread_wait(). */
static void both_sleep_owner(void)
{
	struct fx_worker_view view = { 0 };
	unsigned nr = 1;

	fx_worker_view_init(&view);
	model_post(1);
	flush();
	while (nr > 0) {
		unsigned n = model_reap();

		nr -= n;
		if (n || model_consume(&view) || !fx_set_owner_sleep(&mem.set))
			continue;
		fx_model_sem_wait(&owner_sem);
		fx_set_owner_awake(&mem.set);
	}
	fx_store_release(&mem.stop, 1u);
	fx_model_sem_post(&core_sem);
}

static void check_one(void)
{
	model_check(1);
}

/* (f) growth: the second claim adds a page and a segment to either ring. */

static void growing_owner(void)
{
	model_post(1);
	model_post(2);
	while (fx_set_claimed(&mem.set) == 2)
		if (!model_reap())
			fx_cpu_relax();
	model_post(3);
	model_await_all();
}

static void grown_check(void)
{
	fx_model_assert(mem.shared.sq_start[1] == 1);
	fx_model_assert(mem.set.sq_tail.view.segment == 1);
	model_check(3);
}

/* With all records that the entry before can put: two. */
static void growing_canceller(void)
{
	cancel(model_post(1));
	model_post(2);
	model_await_all();
}

/* They look for work for ever. */
#define CONSUMERS(n) .daemons = (1u << ((n) + 1)) - 2

static const struct fx_model_scenario scenarios[] = {
	{ { .name = "recycling",
	    .setup = setup_entries,
	    .thread = { post_twice_owner, model_consumer, model_consumer },
	    .check = check_three,
	    CONSUMERS(2) },
	  FX_MISTAKE(EARLY_SLOT) | FX_MISTAKE(EARLY_WORD) |
		  FX_MISTAKE(DONE_RECYCLES) },
	{ { .name = "chain",
	    .setup = setup_chain,
	    .thread = { chain_owner, model_consumer, model_consumer },
	    .check = check_three,
	    CONSUMERS(2) },
	  FX_MISTAKE(LATE_LINK) },
	{ { .name = "cancel",
	    .setup = setup_one,
	    .thread = { cancel_owner, model_consumer, model_consumer },
	    .check = check_two,
	    CONSUMERS(2) },
	  FX_MISTAKE(NOTICE_FORGOTTEN) },
	{ { .name = "owner sleeps",
	    .setup = setup_entries,
	    .thread = { sleeping_owner, model_consumer, model_consumer },
	    .check = check_two,
	    CONSUMERS(2) },
	  FX_MISTAKE(NO_BARRIER) | FX_MISTAKE(EARLY_LOOK) },
	{ { .name = "core sleeps",
	    .setup = setup_one,
	    .thread = { flushing_owner, sleeping_core },
	    .check = check_two },
	  FX_MISTAKE(NO_BARRIER) | FX_MISTAKE(EARLY_LOOK) },
	{ { .name = "both sleep",
	    .setup = setup_one,
	    .thread = { both_sleep_owner, sleeping_core },
	    .check = check_one },
	  FX_MISTAKE(NO_BARRIER) },
	{ { .name = "growth",
	    .setup = setup_one,
	    .thread = { growing_owner, model_consumer },
	    .check = grown_check,
	    CONSUMERS(1) },
	  0 },
	{ { .name = "growth and cancel",
	    .setup = setup_one,
	    .thread = { growing_canceller, model_consumer },
	    .check = check_two,
	    CONSUMERS(1) },
	  FX_MISTAKE(SHORT_SEGMENT) },
};

static const char *const mistake_names[] = {
	[NO_BARRIER] = "no heavy barrier",
	[EARLY_LOOK] = "flag looked at first",
	[EARLY_SLOT] = "slot before entry",
	[EARLY_WORD] = "slot before result",
	[LATE_LINK] = "link flag after the slot",
	[DONE_RECYCLES] = "DONE permits recycling",
	[NOTICE_FORGOTTEN] = "notice forgotten",
	[SHORT_SEGMENT] = "segment one record short",
};

int main(int argc, char **argv)
{
	return fx_model_main(argc > 1 ? argv[1] : NULL, scenarios,
			     FX_ARRAY_SIZE(scenarios), mistake_names, &mistake);
}
