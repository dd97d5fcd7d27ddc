/* SPDX-License-Identifier: MIT */
/*
 * Carrying entries out, one chain at a time: the part that all engines of a
 * stock kernel share. A runner is a thread in this role; it differs from
 * others in where its completions go and in whether it may block.
 */
#ifndef FX_ENGINE_RUN_H
#define FX_ENGINE_RUN_H

#include "engine/cost.h"
#include "engine/desc.h"
#include "engine/guard.h"
#include "engine/park.h"
#include "engine/pool.h"
#include "engine/quiet.h"
#include "page/set.h"

#include <errno.h>

struct fx_runner {
	struct fx_set *set;
	struct fx_park *park;
	struct fx_pool *pool;
	struct fx_cost *cost;
	const struct fx_call_desc *table;
	struct fx_guard *guard; /* NULL: its thread may block */
	/* Owner's runner, or on behalf of a thread of the application. */
	bool owner;
	void (*complete)(struct fx_runner *runner, uint32_t index, int64_t ret);
	/* A call that may block for ever; NULL: hand it to the pool. */
	int64_t (*block)(struct fx_runner *runner, uint32_t index,
			 const struct flexsc_entry *call);
};

/* Take over one entry, or those of a chain: any of them leads to the rest. */
void fx_run_link(struct fx_set *set, const uint32_t *indices, unsigned nr);

/**
 * fx_run - carry out an entry and what follows it in its chain
 *
 * Returns when the chain is over, or parked, or handed to the pool; in the
 * latter cases somebody else calls fx_run() with the entry where it stopped.
 */
void fx_run(struct fx_runner *runner, uint32_t index);

/* The entry is over without having been run (again): go on behind it. */
void fx_run_over(struct fx_runner *runner, uint32_t index, int64_t ret);

/*
 * A class FX_CALL_DISK call, timed for the policy. FX_GUARD_BLOCKED: it would
 * have blocked for long, and was not carried out.
 */
int64_t fx_run_disk(struct fx_cost *cost, struct fx_park *park,
		    const struct fx_call_desc *desc,
		    const struct flexsc_entry *call, bool owner,
		    struct fx_guard *guard);

/**
 * fx_run_storage - what FX_TRY_DISK was said of, unless such calls are slow
 * @guard: that it is a regular file may be known of an earlier one only
 *
 * Return: true if call->ret is the result; else it is what was done so far.
 */
bool fx_run_storage(struct fx_cost *cost, struct fx_park *park,
		    struct flexsc_entry *call, struct fx_guard *guard);

/* Refused and unknown numbers: the result. */
static inline int64_t fx_run_refused(const struct fx_call_desc *desc)
{
	return desc->call_class == FX_CALL_NONE ? -EOPNOTSUPP : -ENOSYS;
}

/* What no other thread can make for the owner, and what nobody can. */
static inline int64_t fx_run_own(const struct fx_call_desc *desc,
				 const struct flexsc_entry *call)
{
	if (desc->call_class == FX_CALL_NONE ||
	    desc->call_class == FX_CALL_ABSENT)
		return fx_run_refused(desc);
	return fx_call_plain(call); /* the owner's identity */
}

#endif /* FX_ENGINE_RUN_H */
