/* SPDX-License-Identifier: MIT */
/*
 * The role of a core thread (engine/role.h): the thread makes calls, one of
 * which may last for ever, and a watcher takes the role from it, at a moment
 * that is as bad as can be. At most one thread is in the role, and if the
 * role was taken somebody has it. The library's code under every schedule.
 * Prints TAP.
 */
#include "model/explore.h"

#include <string.h>

static enum { RIGHT, NO_BARRIER, NO_SECOND_LOOK } mistake;

static void barrier_heavy(void);

#include "base/barrier.h"
#undef fx_barrier_heavy
#define fx_barrier_heavy() barrier_heavy()
#include "engine/role.h"

#define NR_CALLS 2

static struct {
	struct fx_role role;
	uint32_t working; /* threads that do what only one may do */
	uint32_t lost; /* the first one has noticed */
	uint32_t taken; /* the second one has the role */
} s;

static void barrier_heavy(void)
{
	if (mistake != NO_BARRIER)
		fx_model_membarrier();
}

static void setup(void)
{
	memset(&s, 0, sizeof(s));
	fx_model_region(&s, sizeof(s));
	fx_model_name("inside", &s.role.inside, 4);
	fx_model_name("state", &s.role.state, 4);
	fx_model_name("working", &s.working, 4);
}

/* What is done in the role, between calls: looking at rings and descriptors. */
static void work(void)
{
	fx_model_assert(fx_fetch_add(&s.working, 1u) == 0);
	fx_fetch_add(&s.working, UINT32_MAX);
}

static void core(void)
{
	for (unsigned i = 0; i < NR_CALLS; i++) {
		work();
		fx_role_enter(&s.role);
		fx_model_yield(); /* the call */
		if (!fx_role_leave(&s.role)) {
			fx_store_relaxed(&s.lost, 1u);
			return;
		}
	}
	work();
}

/* It cannot know how long the thread is in the call by now. */
static void watcher(void)
{
	uint32_t call = fx_role_inside(&s.role);
	bool taken;

	if (!call)
		return;
	if (mistake == NO_SECOND_LOOK) {
		fx_store_relaxed(&s.role.state, (uint32_t)FX_ROLE_WANTED);
		taken = true;
	} else {
		taken = fx_role_take(&s.role, call);
	}
	if (!taken)
		return;
	fx_store_relaxed(&s.taken, 1u);
	work();
	work();
}

static void check(void)
{
	fx_model_assert(fx_load_relaxed(&s.working) == 0);
	fx_model_assert(fx_load_relaxed(&s.lost) == fx_load_relaxed(&s.taken));
}

int main(void)
{
	struct fx_model model = {
		.name = "role",
		.setup = setup,
		.thread = { core, watcher },
		.check = check,
	};

	fx_model_tap_both(&model, false);
	model.quiet = true;
	mistake = NO_BARRIER;
	model.name = "role, taken without a barrier";
	fx_model_tap_both(&model, true);
	mistake = NO_SECOND_LOOK;
	model.name = "role, taken without a second look";
	fx_model_tap_both(&model, true);
	return fx_model_tap_done();
}
