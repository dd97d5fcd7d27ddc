/* SPDX-License-Identifier: MIT */
/*
 * The classic x86-TSO litmus tests: what the memory model of the checker must
 * show, and what it must never show.  Prints TAP; FX_MODEL_VERBOSE=1 shows
 * the schedules found.
 */
#include "model/explore.h"

#include <string.h>

static struct {
	uint32_t x, y, seen[4];
} s;

static void setup(void)
{
	memset(&s, 0, sizeof(s));
	fx_model_region(&s, sizeof(s));
	fx_model_name("x", &s.x, sizeof(s.x));
	fx_model_name("y", &s.y, sizeof(s.y));
	fx_model_name("seen", s.seen, sizeof(s.seen));
}

/* Store buffering (Dekker): without a fence both may read zero. */
static void sb0(void)
{
	fx_store_release(&s.x, 1);
	s.seen[0] = fx_load_acquire(&s.y);
}

static void sb1(void)
{
	fx_store_release(&s.y, 1);
	s.seen[1] = fx_load_acquire(&s.x);
}

static void sb0_fence(void)
{
	fx_store_release(&s.x, 1);
	fx_fence();
	s.seen[0] = fx_load_acquire(&s.y);
}

static void sb1_fence(void)
{
	fx_store_release(&s.y, 1);
	fx_fence();
	s.seen[1] = fx_load_acquire(&s.x);
}

static void sb1_exchange(void)
{
	fx_exchange(&s.y, 1);
	s.seen[1] = fx_load_acquire(&s.x);
}

static void sb1_membarrier(void)
{
	fx_store_release(&s.y, 1);
	fx_model_membarrier();
	s.seen[1] = fx_load_acquire(&s.x);
}

static void sb_check(void)
{
	fx_model_assert(s.seen[0] || s.seen[1]);
}

/* Message passing: never fails under TSO. */
static void mp0(void)
{
	fx_store_relaxed(&s.x, 41);
	fx_store_relaxed(&s.x, 42);
	fx_store_release(&s.y, 1);
}

static void mp1(void)
{
	if (fx_load_acquire(&s.y))
		fx_model_assert(fx_load_relaxed(&s.x) == 42);
}

static void mp1_spin(void)
{
	while (!fx_load_acquire(&s.y))
		fx_cpu_relax();
	fx_model_assert(fx_load_relaxed(&s.x) == 42);
}

static void mp1_spin_forever(void)
{
	while (fx_load_acquire(&s.y) != 2)
		fx_cpu_relax();
}

/* Load buffering: both reads seeing the other's later store is impossible. */
static void lb0(void)
{
	s.seen[0] = fx_load_relaxed(&s.x);
	fx_store_relaxed(&s.y, 1);
}

static void lb1(void)
{
	s.seen[1] = fx_load_relaxed(&s.y);
	fx_store_relaxed(&s.x, 1);
}

static void lb_check(void)
{
	fx_model_assert(!(s.seen[0] && s.seen[1]));
}

/* IRIW: two readers never disagree about the order of two writers. */
static void write_x(void)
{
	fx_store_relaxed(&s.x, 1);
}

static void write_y(void)
{
	fx_store_relaxed(&s.y, 1);
}

static void iriw2(void)
{
	s.seen[0] = fx_load_relaxed(&s.x);
	s.seen[1] = fx_load_relaxed(&s.y);
}

static void iriw3(void)
{
	s.seen[2] = fx_load_relaxed(&s.y);
	s.seen[3] = fx_load_relaxed(&s.x);
}

static void iriw_check(void)
{
	fx_model_assert(!(s.seen[0] && !s.seen[1] && s.seen[2] && !s.seen[3]));
}

static void iriw_reachable_check(void)
{
	fx_model_assert(!(s.seen[0] && !s.seen[1] && s.seen[2] && s.seen[3]));
}

/* Forwarding: each sees its own store early, the other's late (SB + rfi). */
static void fwd0(void)
{
	fx_store_relaxed(&s.x, 1);
	fx_model_assert(fx_load_relaxed(&s.x) == 1);
	s.seen[0] = fx_load_relaxed(&s.y);
}

static void fwd1(void)
{
	fx_store_relaxed(&s.y, 1);
	fx_model_assert(fx_load_relaxed(&s.y) == 1);
	s.seen[1] = fx_load_relaxed(&s.x);
}

static void own_stores(void)
{
	fx_store_relaxed(&s.x, 1);
	fx_store_relaxed(&s.x, 2);
	fx_model_assert(fx_load_relaxed(&s.x) == 2);
	fx_model_assert(fx_exchange(&s.x, 3) == 2);
}

static const struct {
	struct fx_model m;
	bool fails;
} cases[] = {
#define CASE(text, fail, setup_fn, check_fn, ...)                          \
	{ .m = { .name = text, .setup = setup_fn, .check = check_fn,       \
		 .thread = { __VA_ARGS__ } }, .fails = fail }
CASE("store buffering without fence fails", true, setup, sb_check, sb0, sb1),
CASE("... with one fence fails", true, setup, sb_check, sb0_fence, sb1),
CASE("... with fences holds", false, setup, sb_check, sb0_fence, sb1_fence),
CASE("... with fence and exchange holds", false, setup, sb_check, sb0_fence,
     sb1_exchange),
CASE("... with membarrier on one side holds", false, setup, sb_check, sb0,
     sb1_membarrier),
CASE("message passing holds", false, setup, NULL, mp0, mp1),
CASE("message passing to a spinning reader holds", false, setup, NULL, mp0,
     mp1_spin),
CASE("message passing to two readers holds", false, setup, NULL, mp0, mp1,
     mp1_spin),
CASE("spinning for what never comes is a deadlock", true, setup, NULL, mp0,
     mp1_spin_forever),
CASE("load buffering does not occur", false, setup, lb_check, lb0, lb1),
CASE("independent readers agree on order", false, setup, iriw_check, write_x,
     write_y, iriw2, iriw3),
CASE("... but may see one order", true, setup, iriw_reachable_check, write_x,
     write_y, iriw2, iriw3),
CASE("forwarded own store, late other store", true, setup, sb_check, fwd0,
     fwd1),
CASE("own stores in order", false, setup, NULL, own_stores),
};

int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		fx_model_tap_both(&cases[i].m, cases[i].fails);
	return fx_model_tap_done();
}
