/* SPDX-License-Identifier: MIT */
/*
 * Yardstick and example: one owner posts two entries to a submission ring,
 * two engines claim and complete them over a completion ring, the owner
 * sleeps when it has nothing.  Correct, and with four mistakes planted.
 * It models the design, not the library's code.  Prints TAP.
 */
#include "model/explore.h"

#include <string.h>

#define NR 2u
enum { FREE, SUBMITTED, BUSY, DONE };

static struct {
	struct {
		uint32_t status;
		uint32_t arg, result;
	} entry[NR];
	uint32_t sq[NR], sq_head, sq_tail;
	uint32_t cq[NR], cq_tail;
	uint32_t sleeping;
} s;
static struct fx_model_sem sem;

static enum {
	RIGHT, NO_BARRIER, EARLY_SLOT, EARLY_STATUS, NO_CLAIM
} mistake;

static void setup(void)
{
	memset(&s, 0, sizeof(s));
	fx_model_region(&s, sizeof(s));
	fx_model_name("status[0]", &s.entry[0].status, 4);
	fx_model_name("status[1]", &s.entry[1].status, 4);
	fx_model_name("sq_head", &s.sq_head, 4);
	fx_model_name("sq_tail", &s.sq_tail, 4);
	fx_model_name("cq", s.cq, sizeof(s.cq));
	fx_model_name("cq_tail", &s.cq_tail, 4);
	fx_model_name("sleeping", &s.sleeping, 4);
	fx_model_sem_init(&sem);
}

static void owner_post(uint32_t i)
{
	if (mistake == EARLY_STATUS)
		fx_store_release(&s.entry[i].status, SUBMITTED);
	fx_store_relaxed(&s.entry[i].arg, i + 10);
	if (mistake != EARLY_STATUS)
		fx_store_release(&s.entry[i].status, SUBMITTED);
	fx_store_relaxed(&s.sq[i], i);
	fx_store_release(&s.sq_tail, i + 1);
}

static uint32_t owner_await(uint32_t head)
{
	uint32_t slot;

	while (!(slot = fx_load_acquire(&s.cq[head]))) {
		fx_store_relaxed(&s.sleeping, 1);
		if (mistake != NO_BARRIER)
			fx_model_membarrier();
		if (!fx_load_acquire(&s.cq[head]))
			fx_model_sem_wait(&sem);
		fx_store_relaxed(&s.sleeping, 0);
	}
	return slot - 1;
}

static void owner(void)
{
	for (uint32_t i = 0; i < NR; i++)
		owner_post(i);
	for (uint32_t head = 0; head < NR; head++) {
		uint32_t i = owner_await(head);

		fx_model_assert(fx_load_acquire(&s.entry[i].status) == DONE);
		fx_model_assert(fx_load_relaxed(&s.entry[i].result) ==
				2 * (i + 10));
		fx_store_release(&s.entry[i].status, FREE);
	}
}

static void engine_complete(uint32_t i)
{
	uint32_t arg = fx_load_relaxed(&s.entry[i].arg), slot;

	slot = fx_fetch_add(&s.cq_tail, 1);
	fx_model_assert(slot < NR);
	if (mistake == EARLY_SLOT)
		fx_store_release(&s.cq[slot], i + 1);
	fx_store_relaxed(&s.entry[i].result, 2 * arg);
	fx_store_release(&s.entry[i].status, DONE);
	if (mistake != EARLY_SLOT)
		fx_store_release(&s.cq[slot], i + 1);
	if (fx_load_acquire(&s.sleeping))
		fx_model_sem_post(&sem);
}

static void engine(void)
{
	uint32_t head, i, expected;

	while ((head = fx_load_acquire(&s.sq_head)) < NR) {
		if (head >= fx_load_acquire(&s.sq_tail)) {
			fx_cpu_relax();
			continue;
		}
		i = fx_load_relaxed(&s.sq[head]);
		if (mistake == NO_CLAIM)
			fx_store_relaxed(&s.sq_head, head + 1);
		else if (!fx_cas(&s.sq_head, &head, head + 1))
			continue;
		expected = SUBMITTED;
		if (!fx_cas(&s.entry[i].status, &expected, BUSY))
			fx_model_assert(!"entry was not SUBMITTED");
		engine_complete(i);
	}
}

static void check(void)
{
	fx_model_assert(s.cq_tail == NR);
	for (uint32_t i = 0; i < NR; i++)
		fx_model_assert(s.entry[i].status == FREE);
}

int main(void)
{
	static const char *const names[] = {
		[RIGHT] = "ring: one owner, two engines",
		[NO_BARRIER] = "ring: sleep without membarrier",
		[EARLY_SLOT] = "ring: completion slot before the result",
		[EARLY_STATUS] = "ring: status before the argument",
		[NO_CLAIM] = "ring: consumer position by plain store",
	};
	struct fx_model m = { .setup = setup, .check = check,
			      .by_stack = true,
			      .thread = { owner, engine, engine } };

	for (mistake = RIGHT; mistake <= NO_CLAIM; mistake++) {
		m.name = names[mistake];
		/* A status too early does no harm: sq_tail publishes. */
		fx_model_tap(&m, mistake != RIGHT && mistake != EARLY_STATUS);
	}
	return fx_model_tap_done();
}
