/* SPDX-License-Identifier: MIT */
/*
 * A role that one thread has, and that the owner takes away when that thread
 * is stuck in a call. The thread says by number which call it is in, with plain
 * stores; all that is dear is done by the owner, who has time: it wants to
 * sleep.
 *
 * Protocol. The owner saw the same number for long. It announces that the
 * role is lost, then looks at the number again, with a heavy barrier between
 * (base/barrier.h). If it is still the same, the thread will see the
 * announcement when it comes out of the call. If it is another one, the owner
 * takes the announcement back, by compare-and-swap, unless the thread has seen
 * it and gave the role up, by the same. So at any time at most one thread has
 * the role. tests/model/role.c tries every schedule.
 */
#ifndef FX_ENGINE_ROLE_H
#define FX_ENGINE_ROLE_H

#include "base/atomic.h"
#include "base/barrier.h"
#include "base/types.h"

enum fx_role_state { FX_ROLE_HELD = 0, FX_ROLE_WANTED, FX_ROLE_GIVEN };

/* Key: T the thread in the role writes. */
struct fx_role {
	uint32_t inside; /* T: number of the call it is in; 0: in none */
	uint32_t number; /* T: of its last call */
	uint32_t state; /* enum fx_role_state */
};

/* Before a call, and after it. The second is false if the role is lost. */
static inline void fx_role_enter(struct fx_role *role)
{
	role->number += 1 + (role->number == UINT32_MAX);
	fx_store_relaxed(&role->inside, role->number);
}

static inline bool fx_role_leave(struct fx_role *role)
{
	uint32_t wanted = FX_ROLE_WANTED;

	fx_store_release(&role->inside, 0u);
	fx_barrier_light();
	if (fx_likely(fx_load_relaxed(&role->state) == FX_ROLE_HELD))
		return true;
	return !fx_cas(&role->state, &wanted, (uint32_t)FX_ROLE_GIVEN) &&
	       wanted == FX_ROLE_HELD;
}

/* Owner: which call is it in? 0: in none. */
static inline uint32_t fx_role_inside(struct fx_role *role)
{
	return fx_load_relaxed(&role->inside);
}

/**
 * fx_role_take - take the role from a thread that is in call @number
 *
 * Context: owner; once it succeeded, never again.
 * Return: true if the thread does not have it any more, or will find that it
 * does not when it comes back; it does nothing in the role until then.
 */
static inline bool fx_role_take(struct fx_role *role, uint32_t number)
{
	uint32_t wanted = FX_ROLE_WANTED;

	fx_store_relaxed(&role->state, (uint32_t)FX_ROLE_WANTED);
	fx_barrier_heavy();
	if (fx_load_acquire(&role->inside) == number)
		return true;
	return !fx_cas(&role->state, &wanted, (uint32_t)FX_ROLE_HELD);
}

#endif /* FX_ENGINE_ROLE_H */
