/* SPDX-License-Identifier: MIT */
/*
 * The set under test and what its parties do with it. page/set.c is part of
 * this file so that its barrier can be left out by mistake.
 */
#include "model/protocol.h"

#include <string.h>

static void model_fence(void);

#undef fx_barrier_heavy
#define fx_barrier_heavy() model_barrier_heavy()
#undef fx_fence
#define fx_fence() model_fence()
#include "page/set.c"

unsigned int mistake;
struct model_memory mem;
struct fx_model_sem owner_sem, core_sem;

void model_barrier_heavy(void)
{
	if (mistake != NO_BARRIER)
		fx_model_membarrier();
}

/* The owner's: that of who completes is in page/set.h. */
static void model_fence(void)
{
	if (mistake != NO_BARRIER)
		fx_model_fence();
}

/* What page/map.c does with an eventfd. */
void fx_set_wake_owner(struct fx_set *set)
{
	if (fx_exchange(&set->shared->owner_sleeping, 0u))
		fx_model_sem_post(&owner_sem);
}

void fx_set_owner_awake(struct fx_set *set)
{
	fx_exchange(&set->shared->owner_sleeping, 0u);
}

static void register_memory(void)
{
	fx_model_region(&mem.shared, sizeof(mem.shared));
	fx_model_region(mem.entries, sizeof(mem.entries));
	fx_model_region_named("sq", mem.sq, NR_MODEL_SLOTS * 4);
	fx_model_region_named("sq+", mem.sq + FLEXSC_RING_MIN,
			      NR_MODEL_SLOTS * 4);
	fx_model_region_named("cq", mem.cq, NR_MODEL_SLOTS * 8);
	fx_model_region_named("cq+", mem.cq + FLEXSC_RING_MIN,
			      NR_MODEL_SLOTS * 8);
	fx_model_region(mem.beside, NR_MODEL_ENTRIES * sizeof(*mem.beside));
	fx_model_region(mem.cookies, NR_MODEL_ENTRIES * sizeof(*mem.cookies));
	fx_model_region(mem.slots, NR_MODEL_ENTRIES * sizeof(*mem.slots));
	fx_model_region(mem.free, sizeof(mem.free));
	fx_model_region(&mem.set, sizeof(mem.set));
	fx_model_region(mem.runs, sizeof(mem.runs));
	fx_model_region(mem.completions, sizeof(mem.completions));
	fx_model_region(&mem.stop, sizeof(mem.stop));
	fx_model_sem_init(&owner_sem);
	fx_model_sem_init(&core_sem);
	fx_model_name("status[0]", &mem.entries[0].status, 4);
	fx_model_name("status[1]", &mem.entries[1].status, 4);
	fx_model_name("status[2]", &mem.entries[2].status, 4);
	fx_model_name("owner_sleeping", &mem.shared.owner_sleeping, 4);
	fx_model_name("engine_sleeping", &mem.shared.engine_sleeping, 4);
	fx_model_name("sq_head", &mem.shared.sq_head, 8);
	fx_model_name("cq_tail", &mem.shared.cq_tail, 8);
}

void model_set_init(uint32_t nr_entries)
{
	memset(&mem, 0, sizeof(mem));
	memset(mem.shared.sq_start, 0xff, sizeof(mem.shared.sq_start));
	memset(mem.shared.cq_start, 0xff, sizeof(mem.shared.cq_start));
	mem.shared.sq_start[0] = mem.shared.cq_start[0] = 0;
	mem.set = (struct fx_set){
		.shared = &mem.shared,
		.entries = mem.entries,
		.sq = mem.sq,
		.cq = mem.cq,
		.beside = mem.beside,
		.cookies = mem.cookies,
		.slots = mem.slots,
		.max_entries = 2 * FLEXSC_PAGE_ENTRIES,
		.free = mem.free,
		.nr_entries = nr_entries,
	};
	fx_ring_cursor_init(&mem.set.sq_tail);
	fx_ring_cursor_init(&mem.set.cq_head);
	for (uint32_t i = nr_entries; i-- > 0;)
		mem.set.free[mem.set.nr_free++] = i;
	register_memory();
}

/* What the call with this value returns; the first one's is a wide one. */
static int64_t result(uint64_t value)
{
	return value == 1 ? 1ll << 40 : (int64_t)(10 * value);
}

/* Owner ------------------------------------------------------------------- */

/* fx_set_grow(), but leaving too little room for acknowledgements. */
static void grow_short(void)
{
	struct fx_set *set = &mem.set;
	uint64_t tail = fx_ring_position(&set->sq_tail);
	uint64_t head = fx_ring_position(&set->cq_head);

	fx_store_release(&mem.shared.cq_start[1], head + set->nr_entries);
	fx_store_release(&mem.shared.sq_start[1], tail);
	fx_ring_seek(&set->sq_tail, mem.shared.sq_start, tail);
	fx_ring_seek(&set->cq_head, mem.shared.cq_start, head);
	set->free[set->nr_free++] = set->nr_entries++;
}

static uint32_t claim(void)
{
	struct fx_set *set = &mem.set;
	uint32_t index, status;

	if (mistake == SHORT_SEGMENT && set->nr_free == 0)
		grow_short();
	index = fx_set_claim(set);
	fx_model_assert(index < NR_MODEL_ENTRIES);
	status = fx_load_relaxed(&set->entries[index].status);
	fx_model_assert(status == FLEXSC_FREE || status == FLEXSC_DONE);
	return index;
}

static void fill(uint32_t index, uint64_t value, unsigned flags)
{
	union fx_head head = fx_head(0, 1, flags);

	fx_set_fill(&mem.set, index, head, value, 0, 0, 0, 0, 0, value);
}

uint32_t model_post(uint64_t value)
{
	uint32_t index = claim();

	if (mistake == EARLY_SLOT)
		fx_set_publish(&mem.set, index);
	fill(index, value, 0);
	if (mistake != EARLY_SLOT)
		fx_set_publish(&mem.set, index);
	return index;
}

void model_post_chain(uint64_t first, unsigned nr)
{
	uint32_t indices[FLEXSC_MAX_CHAIN] = { 0 };

	for (unsigned i = 0; i < nr; i++) {
		indices[i] = claim();
		fill(indices[i], first + i, i + 1 < nr ? FLEXSC_F_LINK : 0);
	}
	if (mistake == LATE_LINK)
		fx_store_relaxed(&mem.entries[indices[0]].flags, (uint8_t)0);
	fx_set_publish_chain(&mem.set, indices, nr);
	if (mistake == LATE_LINK)
		fx_store_relaxed(&mem.entries[indices[0]].flags,
				 (uint8_t)FLEXSC_F_LINK);
}

unsigned model_reap(void)
{
	struct fx_done done = { 0 };
	unsigned nr = 0;

	while (fx_set_reap(&mem.set, &done)) {
		uint64_t value = done.cookie;

		nr++;

		fx_model_assert(value > 0 && value < NR_MODEL_VALUES);
		fx_model_assert(done.ret == result(value) ||
				done.ret == -ECANCELED);
		mem.completions[value]++;
		fx_model_assert(mem.completions[value] == 1);
	}
	return nr;
}

void model_await(unsigned nr)
{
	while (nr > 0) {
		unsigned n = model_reap();

		fx_model_assert(n <= nr);
		nr -= n;
		if (!n)
			fx_cpu_relax();
	}
}

void model_await_all(void)
{
	while (fx_set_claimed(&mem.set)) {
		uint64_t before = fx_ring_position(&mem.set.cq_head);

		model_reap();
		if (fx_ring_position(&mem.set.cq_head) == before)
			fx_cpu_relax();
	}
}

void model_check(unsigned last)
{
	for (unsigned value = 1; value <= last; value++) {
		unsigned runs = 0;

		for (unsigned t = 0; t < FX_MODEL_MAX_THREADS; t++)
			runs += mem.runs[t][value];
		fx_model_assert(mem.completions[value] == 1);
		fx_model_assert(runs <= 1);
	}
	fx_model_assert(fx_set_claimed(&mem.set) == 0);
	fx_model_assert(!fx_set_has_completion(&mem.set));
	fx_model_assert(mem.shared.cq_tail ==
			fx_ring_position(&mem.set.cq_head));
	fx_model_assert(mem.shared.sq_head ==
			fx_ring_position(&mem.set.sq_tail));
	for (unsigned i = 0; i < NR_MODEL_ENTRIES; i++)
		fx_model_assert(mem.entries[i].status == FLEXSC_FREE ||
				mem.entries[i].status == FLEXSC_DONE);
}

/* Consumers --------------------------------------------------------------- */

/* fx_set_complete(), in the orders that it must not have. */
static void complete_wrongly(struct fx_worker_view *view, uint32_t index,
			     int64_t ret)
{
	struct fx_set *set = &mem.set;

	if (mistake == EARLY_LOOK) {
		fx_store_relaxed(&set->entries[index].ret, ret);
		fx_set_look_at_owner(set);
	}
	fx_store_release(&set->entries[index].status, FLEXSC_DONE);
	fx_set_put(set, view, index, ret);
	if (mistake == EARLY_WORD)
		fx_store_relaxed(&set->entries[index].ret, ret);
}

static void run(struct fx_worker_view *view, uint32_t index)
{
	struct fx_set *set = &mem.set;
	int64_t ret = -ECANCELED;
	uint64_t value;

	fx_model_assert(index < NR_MODEL_ENTRIES);
	if (fx_set_own(set, index)) {
		value = fx_load_relaxed(&set->entries[index].args[0]);
		fx_model_assert(value > 0 && value < NR_MODEL_VALUES);
		mem.runs[fx_model_self()][value]++;
		/* What is asked of a parked or blocked call, it may follow. */
		if (!fx_set_cancel_wanted(set, index) || fx_model_choose(2))
			ret = result(value);
	} else {
		fx_model_assert(fx_set_cancel_wanted(set, index));
	}
	if (mistake == EARLY_LOOK || mistake == EARLY_WORD)
		complete_wrongly(view, index, ret);
	else
		fx_set_complete(set, view, index, ret);
}

bool model_consume(struct fx_worker_view *view)
{
	uint32_t indices[FLEXSC_MAX_CHAIN] = { 0 };
	int nr = fx_set_take(&mem.set, view, indices, NULL, NULL);

	if (nr < 0)
		fx_set_acknowledge(&mem.set, view, indices[0]);
	for (int i = 0; i < nr; i++) {
		uint64_t value =
			fx_load_relaxed(&mem.entries[indices[i]].args[0]);

		/* A chain comes whole and in order; nothing else does. */
		fx_model_assert(value <= mem.chain ?
					nr == (int)mem.chain &&
						value == (uint64_t)i + 1 :
					nr == 1);
	}
	for (int i = 0; i < nr; i++)
		run(view, indices[i]);
	return nr != 0;
}

void model_consumer(void)
{
	struct fx_worker_view view = { 0 };

	fx_worker_view_init(&view);
	for (;;)
		if (!model_consume(&view))
			fx_cpu_relax();
}
