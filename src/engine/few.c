/* SPDX-License-Identifier: MIT */
/*
 * Small batches, taken back from the ring by their owner. What other threads
 * could take meanwhile they take: then there is less to do here.
 */
#include "engine/few.h"

#include "arch/arch.h"
#include "base/clock.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRIES 3
#define CALLS 32
/* More are not worth looking at one by one before. */
#define MOST 8

static uint64_t cost_ns(long nr, long fd)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t begin = fx_now_ns(), ns;

		for (int j = 0; j < CALLS; j++)
			fx_arch_syscall(nr, fd, 0, 0, 0, 0, 0);
		ns = fx_now_ns() - begin;
		if (ns < best)
			best = ns;
	}
	return best;
}

static bool is_plain(const struct fx_call_desc *desc, unsigned nr)
{
	switch (nr) {
	case SYS_stat:
	case SYS_lstat:
	case SYS_fstat:
	case SYS_newfstatat:
	case SYS_statx:
	case SYS_access:
	case SYS_lseek:
		return true;
	default:
		return desc->call_class == FX_CALL_NEVER &&
		       !(desc->flags & (FX_CALL_SELF | FX_CALL_CLOSES));
	}
}

void fx_few_init(struct fx_few *few, const struct fx_call_desc *table, int fd)
{
	/*
	 * An empty RUN, and a call with as little in it, of which RUN saves
	 * about half.
	 */
	uint64_t run_ns = cost_ns(SYS_lseek, fd);
	uint64_t plain_ns = cost_ns(SYS_getppid, 0);
	uint64_t most = plain_ns ? 2 * run_ns / plain_ns : 0;

	few->most = most < MOST ? (uint32_t)most : MOST;
	for (unsigned nr = 0; nr < FX_NR_CALLS; nr++)
		few->plain[nr] = is_plain(&table[nr], nr);
}

/*
 * Takes the entry at @slot of the ring, position @head. The owner wrote the
 * slot, so it knows that there is one. Return: false: not that kind of entry,
 * or somebody else was faster.
 */
static bool make(const struct fx_few *few, struct fx_engine *engine,
		 uint32_t slot, uint64_t head)
{
	struct fx_set *set = engine->set;
	uint32_t index = fx_load_relaxed(&set->sq[slot]) ^ set->sq_tail.tag;
	const struct flexsc_entry *call = fx_set_entry(set, index);
	int64_t ret = -ECANCELED;

	/* Notices, and what the ring grew behind. */
	if (fx_unlikely(index >= set->max_entries))
		return false;
	if (call->flags || call->nr >= FX_NR_CALLS || !few->plain[call->nr] ||
	    !fx_cas(&set->shared->sq_head, &head, head + 1))
		return false;
	if (fx_likely(fx_set_own(set, index)))
		ret = fx_arch_syscall(call->nr, (long)call->args[0],
				      (long)call->args[1], (long)call->args[2],
				      (long)call->args[3], (long)call->args[4],
				      (long)call->args[5]);
	fx_local_add(set, index, ret);
	return true;
}

bool fx_few_run(const struct fx_few *few, struct fx_engine *engine)
{
	const struct fx_ring_cursor *tail = &engine->set->sq_tail;
	uint64_t head = fx_load_relaxed(&engine->set->shared->sq_head);
	uint64_t nr = fx_ring_position(tail) - head;

	/* None: it is about what was taken before. Of two laps: that is rare. */
	if (!nr || nr > few->most || nr > (tail->next & (FLEXSC_RING_MIN - 1)))
		return false;
	for (; nr; nr--, head++)
		if (!make(few, engine, tail->next - (uint32_t)nr, head))
			return false;
	return true;
}
