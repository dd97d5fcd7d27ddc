/* SPDX-License-Identifier: MIT */
/*
 * One entry after the other. What a call may do here follows from its class
 * in the table; how a descriptor call is tried and parked is engine/park.c's.
 */
#include "engine/run.h"

#include "base/probe.h"
#include "engine/attempt.h"
#include "engine/chain.h"
#include "engine/rest.h"

#include <errno.h>
#include <sys/syscall.h>

void fx_run_link(struct fx_set *set, const uint32_t *indices, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		struct fx_beside *beside = &set->beside[indices[i]];

		beside->chain = i + 1 < nr ? indices[i + 1] + 1 : 0;
		fx_store_relaxed(&beside->state, (uint8_t)0);
	}
}

int64_t fx_run_disk(struct fx_cost *cost, struct fx_park *park,
		    const struct fx_call_desc *desc,
		    const struct flexsc_entry *call, bool owner,
		    struct fx_guard *guard)
{
	bool timed = fx_cost_sample(cost, call->nr);
	uint64_t begin = timed ? fx_now_ns() : 0;
	int64_t ret;

	if (park && desc->flags & FX_CALL_CLOSES)
		fx_park_before(park, desc, call);
	/* All that are to be guarded make a descriptor. */
	if (desc->flags & FX_CALL_NEWFD && guard && fx_guard_wanted(call->nr))
		ret = fx_guard_call(guard, call);
	else
		ret = owner && fx_call_may_signal(call->nr) ?
			      fx_call_plain(call) : fx_call_raw(call);
	if (!owner)
		fx_call_settle(call, ret);
	if (ret == FX_GUARD_BLOCKED)
		return ret;
	if (park && desc->flags & FX_CALL_NEWFD)
		fx_park_after(park, desc, call, ret);
	if (timed)
		fx_cost_note(cost, call->nr, fx_now_ns() - begin);
	return ret;
}

bool fx_run_storage(struct fx_cost *cost, struct fx_park *park,
		    struct flexsc_entry *call, struct fx_guard *guard)
{
	bool timed = fx_cost_sample(cost, call->nr);
	uint64_t begin;
	int64_t ret;

	if (fx_cost_slow(cost, call->nr))
		return false;
	begin = timed ? fx_now_ns() : 0;
	ret = fx_call_storage(call, guard);
	if (guard->cut) {
		/* What is known of the descriptor may be of another file. */
		fx_park_reset(park, (int)call->args[0], FX_KIND_UNKNOWN, false);
		if (ret == FX_GUARD_BLOCKED)
			return false;
	} else if (timed) {
		fx_cost_note(cost, call->nr, fx_now_ns() - begin);
	}
	call->ret = ret;
	/* Part of a write that was interrupted: a thread goes on behind it. */
	return !guard->cut || ret <= 0;
}

enum step {
	STEP_OVER,
	STEP_GONE
};

static enum step to_pool(struct fx_runner *r, uint32_t index)
{
	fx_pool_push(r, index);
	return STEP_GONE;
}

/* In a thread that may block: the call, or what is left of it. */
static int64_t blocking(struct fx_runner *r, uint32_t index, bool storage)
{
	struct flexsc_entry *call = fx_set_entry(r->set, index);
	const struct fx_call_desc *desc = &r->table[call->nr];
	bool begun = call->ret > 0 && call->nr != SYS_connect;
	struct fx_rest rest;
	uint64_t begin;
	int64_t ret;

	fx_park_before(r->park, desc, call);
	fx_park_enter(r->park, index);
	begin = fx_now_ns();
	for (;;) {
		ret = r->block(r, index,
			       begun ? fx_rest_of(&rest, call) : call);
		if (!begun)
			break;
		if (ret > 0)
			call->ret += ret;
		if (ret <= 0 || !fx_rest_more(call, call->ret)) {
			ret = call->ret;
			break;
		}
	}
	if (desc->call_class == FX_CALL_DISK || storage)
		fx_cost_note(r->cost, call->nr, fx_now_ns() - begin);
	fx_park_after(r->park, desc, call, ret);
	return ret;
}

static bool closed_meanwhile(struct fx_runner *r, uint32_t index)
{
	const struct flexsc_entry *call = fx_set_entry(r->set, index);

	return fx_park_closed_after(r->park,
				    (int)call->args[r->table[call->nr].fd_arg],
				    r->set->beside[index].posted);
}

static enum step run_fd(struct fx_runner *r, uint32_t index, int64_t *ret)
{
	struct flexsc_entry *call = fx_set_entry(r->set, index);
	const struct fx_call_desc *desc = &r->table[call->nr];
	uint32_t seq = 0;

	for (;;) {
		struct fx_others none = { .turn = fx_park_turn(r->park,
							       index) };
		enum fx_try verdict =
			fx_park_quick(r->park, call, none, r->guard, &seq);

		if (verdict == FX_TRY_NOT_QUICK)
			verdict = fx_park_try(r->park, call, none, r->guard,
					      &seq);
		if (verdict == FX_TRY_PARK) {
			switch (fx_park_add(r->park, index, seq)) {
			case FX_PARKED:
				/* Whoever polls the set must know of it. */
				if (r->block)
					fx_park_poke(r->park);
				return STEP_GONE;
			case FX_PARK_RETRY:
				continue;
			case FX_PARK_FAILED:
				verdict = FX_TRY_DONE;
				break;
			case FX_PARK_THREAD:
				verdict = FX_TRY_THREAD;
				break;
			}
		}
		if (verdict == FX_TRY_DISK && !r->block &&
		    fx_run_storage(r->cost, r->park, call, r->guard))
			verdict = FX_TRY_DONE;
		if (verdict == FX_TRY_THREAD || verdict == FX_TRY_DISK) {
			if (!r->block)
				return to_pool(r, index);
			*ret = blocking(r, index, verdict == FX_TRY_DISK);
			return STEP_OVER;
		}
		*ret = call->ret;
		if (*ret == -EBADF && closed_meanwhile(r, index))
			*ret = -ECANCELED;
		if (desc->flags & FX_CALL_NEWFD)
			fx_park_after(r->park, desc, call, *ret);
		return STEP_OVER;
	}
}

/* Submitted entries become ours; those that were parked already are. */
static bool own(struct fx_runner *r, uint32_t index)
{
	struct flexsc_entry *call = fx_set_entry(r->set, index);

	if (fx_load_relaxed(&call->status) == FLEXSC_SUBMITTED)
		return fx_set_own(r->set, index);
	return !fx_set_cancel_wanted(r->set, index);
}

/*
 * A close ends what is parked on its descriptor. Here, and not only when it
 * was posted: calls posted before it may have been parked since.
 */
static void end_parked(struct fx_runner *r, int fd, uint32_t posted)
{
	uint32_t index;

	fx_park_closing(r->park, fd, posted);
	while ((index = fx_park_cancel_fd(r->park, fd)) != FX_NO_ENTRY)
		fx_run_over(r, index, -ECANCELED);
}

static enum step carry_out(struct fx_runner *r, uint32_t index, int64_t *ret)
{
	struct flexsc_entry *call = fx_set_entry(r->set, index);
	const struct fx_call_desc *desc = &r->table[call->nr];

	if (!own(r, index)) {
		*ret = call->ret > 0 ? call->ret : -ECANCELED;
		return STEP_OVER;
	}
	if (fx_chain_dead(call)) {
		*ret = -ECANCELED;
		return STEP_OVER;
	}
	fx_probe2(start, index, call->nr);
	switch ((enum fx_call_class)desc->call_class) {
	case FX_CALL_ABSENT:
	case FX_CALL_NONE:
		*ret = fx_run_refused(desc);
		return STEP_OVER;
	case FX_CALL_FD:
		return run_fd(r, index, ret);
	case FX_CALL_WAIT:
		break;
	case FX_CALL_DISK:
		if (call->nr == SYS_close && !r->park->keeps)
			end_parked(r, (int)call->args[0],
				   r->set->beside[index].posted);
		if (r->block || fx_cost_slow(r->cost, call->nr))
			break;
		*ret = fx_run_disk(r->cost, r->park, desc, call, r->owner,
				   r->guard);
		if (*ret == FX_GUARD_BLOCKED)
			break;
		return STEP_OVER;
	case FX_CALL_NEVER:
		*ret = fx_call_raw(call);
		if (desc->flags & FX_CALL_NEWFD)
			fx_park_after(r->park, desc, call, *ret);
		return STEP_OVER;
	}
	if (!r->block)
		return to_pool(r, index);
	*ret = blocking(r, index, false);
	return STEP_OVER;
}

/* Complete one entry after telling those behind it; returns the next. */
static uint32_t finish(struct fx_runner *r, uint32_t index, int64_t ret)
{
	uint32_t rest = r->set->beside[index].chain;
	uint64_t distance = 1;

	for (uint32_t i = rest; i; i = r->set->beside[i - 1].chain)
		fx_chain_tell(fx_set_entry(r->set, i - 1), distance++, ret);
	if (fx_unlikely(r->set->beside[index].held))
		fx_park_drop(r->park, index);
	r->complete(r, index, ret);
	return rest;
}

void fx_run(struct fx_runner *runner, uint32_t index)
{
	int64_t ret;
	uint32_t rest;

	while (carry_out(runner, index, &ret) == STEP_OVER) {
		rest = finish(runner, index, ret);
		if (!rest)
			return;
		index = rest - 1;
	}
}

void fx_run_over(struct fx_runner *runner, uint32_t index, int64_t ret)
{
	uint32_t rest = finish(runner, index, ret);

	if (rest)
		fx_run(runner, rest - 1);
}
