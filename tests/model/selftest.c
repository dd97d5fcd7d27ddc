/* SPDX-License-Identifier: MIT */
/*
 * Proof that the checker finds what it must find and accepts what is right:
 * small versions of the mistakes that ring and sleep protocols make (litmus.c
 * has the memory model).  Prints TAP; FX_MODEL_VERBOSE=1 shows the traces.
 */
#include "model/explore.h"

#include <string.h>

static struct {
	uint32_t x, y, z, seen[4];
	uint32_t awake; /* 1: its thread may be asleep or about to be */
	uint64_t claims;
	uint8_t bytes[8];
	uint32_t *pointer;
} s;
static struct fx_model_sem sem;

static void setup(void)
{
	memset(&s, 0, sizeof(s));
	fx_model_region(&s, sizeof(s));
	fx_model_name("x", &s.x, sizeof(s.x));
	fx_model_name("y", &s.y, sizeof(s.y));
	fx_model_name("z", &s.z, sizeof(s.z));
	fx_model_name("seen", s.seen, sizeof(s.seen));
	fx_model_name("awake", &s.awake, sizeof(s.awake));
	fx_model_sem_init(&sem);
}

/* Sleep flag without a fence on the posting side. */
static void poster(void)
{
	fx_store_release(&s.x, 1);
	if (fx_load_acquire(&s.awake))
		fx_model_sem_post(&sem);
}

static void sleeper_plain(void)
{
	fx_store_release(&s.awake, 1);
	if (!fx_load_acquire(&s.x))
		fx_model_sem_wait(&sem);
	fx_model_assert(fx_load_acquire(&s.x));
}

static void sleeper_fence(void)
{
	fx_store_release(&s.awake, 1);
	fx_fence();
	if (!fx_load_acquire(&s.x))
		fx_model_sem_wait(&sem);
	fx_model_assert(fx_load_acquire(&s.x));
}

static void sleeper_membarrier(void)
{
	fx_store_release(&s.awake, 1);
	fx_model_membarrier();
	if (!fx_load_acquire(&s.x))
		fx_model_sem_wait(&sem);
	fx_model_assert(fx_load_acquire(&s.x));
}

/* The barrier does not repair an announcement that comes after it. */
static void sleeper_late(void)
{
	fx_model_membarrier();
	fx_store_release(&s.awake, 1);
	if (!fx_load_acquire(&s.x))
		fx_model_sem_wait(&sem);
}

/* Claim an entry: s.x is 1 when it may be taken. */
static void claim_setup(void)
{
	setup();
	s.x = 1;
}

static void claim_store(void)
{
	if (fx_load_acquire(&s.x) == 1) {
		fx_store_release(&s.x, 2);
		fx_fetch_add(&s.claims, 1);
	}
}

static void claim_cas(void)
{
	uint32_t expected = 1;

	if (fx_cas(&s.x, &expected, 2))
		fx_fetch_add(&s.claims, 1);
	else
		fx_model_assert(expected == 2);
}

static void never(void)
{
	fx_model_assert(false);
}

static void claim_check(void)
{
	fx_model_assert(s.claims == 1 && s.x == 2);
}

/* Futex: the value must be compared by the wait itself. */
static void futex_waker(void)
{
	fx_store_release(&s.x, 1);
	fx_model_wake(&s.x, 1);
}

static void futex_waiter(void)
{
	while (!fx_load_acquire(&s.x))
		fx_model_wait(&s.x, 0, sizeof(s.x));
}

static void futex_waiter_outside(void)
{
	if (!fx_load_acquire(&s.x))
		fx_model_wait(&s.y, 0, sizeof(s.y));
}

static void futex_waker_outside(void)
{
	fx_store_release(&s.x, 1);
	fx_model_wake(&s.y, 1);
}

static void futex_wake_all(void)
{
	fx_store_release(&s.x, 1);
	fx_model_wake(&s.x, ~0u);
}

/* One wake for two waiters: any of them may get it. */
static void wait_once0(void)
{
	s.seen[0] = fx_model_wait(&s.x, 0, sizeof(s.x)) == 0;
}

static void wait_once1(void)
{
	s.seen[1] = fx_model_wait(&s.x, 0, sizeof(s.x)) == 0;
}

static void wake_one(void)
{
	fx_model_wake(&s.x, 1);
}

static void wake_first_check(void)
{
	fx_model_assert(!s.seen[0] || s.seen[1]);
}

static void wake_second_check(void)
{
	fx_model_assert(!s.seen[1] || s.seen[0]);
}

/* A spin lock, its critical section interruptible at one point. */
static void locked(void)
{
	while (fx_exchange(&s.x, 1))
		fx_cpu_relax();
	fx_model_assert(fx_fetch_add(&s.y, 1) == 0);
	fx_store_relaxed(&s.z, fx_load_relaxed(&s.z) + 1);
	fx_fetch_add(&s.y, (uint32_t)-1);
	fx_store_release(&s.x, 0);
}

static void locked_check(void)
{
	fx_model_assert(s.z == 3 && s.y == 0);
}

static void lost_update(void)
{
	fx_store_relaxed(&s.z, fx_load_relaxed(&s.z) + 1);
}

static void lost_update_check(void)
{
	fx_model_assert(s.z == 2);
}

/* Bounded spinning as a choice. */
static void write_x(void)
{
	fx_store_relaxed(&s.x, 1);
}

static void spin_or_give_up(void)
{
	while (!fx_load_acquire(&s.x)) {
		if (fx_model_choose(2))
			return;
		fx_cpu_relax();
	}
	s.seen[0] = 1;
}

static void spin_result_check(void)
{
	fx_model_assert(!s.seen[0]);
}

static void gave_up_check(void)
{
	fx_model_assert(s.seen[0]);
}

static void spin_no_relax(void)
{
	while (!fx_load_acquire(&s.y))
		;
}

/* Types of the operations. */
static void types(void)
{
	uint8_t byte = 0;
	int ret;

	fx_store_relaxed(&s.bytes[3], 0xff);
	fx_model_assert(fx_load_relaxed(&s.bytes[3]) == 0xff);
	fx_model_assert(fx_fetch_add(&s.bytes[3], 2) == 0xff);
	fx_model_assert(fx_load_relaxed(&s.bytes[3]) == 1);
	ret = fx_cas(&s.bytes[3], &byte, 7);
	fx_model_assert(!ret && byte == 1);
	fx_store_release(&s.pointer, &s.y);
	fx_model_assert(fx_load_acquire(&s.pointer) == &s.y);
	fx_model_assert(fx_exchange(&s.pointer, NULL) == &s.y);
	fx_model_assert(fx_fetch_add(&s.claims, ~0ull) == 0);
	fx_model_assert(fx_load_relaxed(&s.claims) == ~0ull);
}

static void overlap(void)
{
	fx_store_relaxed(&s.x, 1);
	fx_model_load(&s.x, sizeof(uint64_t));
}

static void outside(void)
{
	static uint32_t unregistered;

	fx_store_relaxed(&unregistered, 1);
}

/* Three threads of twelve operations each on shared words: the yardstick. */
static void twelve(void)
{
	uint32_t self = (uint32_t)fx_model_self();

	for (uint32_t i = 0; i < 2; i++) {
		fx_store_relaxed(&s.x, self * 2 + i);
		fx_store_relaxed(&s.y, self * 2 + i);
		fx_load_acquire(&s.z);
		fx_store_release(&s.z, self);
		fx_load_acquire(&s.x);
		fx_fetch_add(&s.awake, 1);
	}
}

static const struct {
	struct fx_model m;
	bool fails;
} cases[] = {
#define CASE(text, fail, setup_fn, check_fn, ...)                          \
	{ .m = { .name = text, .setup = setup_fn, .check = check_fn,       \
		 .thread = { __VA_ARGS__ } }, .fails = fail }
CASE("sleep flag without barrier loses a wake-up", true, setup, NULL, poster,
     sleeper_plain),
CASE("... fence on the sleeper's side alone too", true, setup, NULL, poster,
     sleeper_fence),
CASE("... membarrier on the sleeper's side suffices", false, setup, NULL,
     poster, sleeper_membarrier),
CASE("... membarrier before the flag does not", true, setup, NULL, poster,
     sleeper_late),
CASE("... membarrier with two posters", false, setup, NULL, poster, poster,
     sleeper_membarrier),
CASE("claim by check and store is double", true, claim_setup, claim_check,
     claim_store, claim_store),
CASE("claim by cas is single", false, claim_setup, claim_check, claim_cas,
     claim_cas, claim_cas),
CASE("futex wait compares: no lost wake-up", false, setup, NULL, futex_waker,
     futex_waiter),
CASE("futex check outside loses a wake-up", true, setup, NULL,
     futex_waker_outside, futex_waiter_outside),
CASE("one wake for two waiters loses one", true, setup, NULL, futex_waker,
     futex_waiter, futex_waiter),
CASE("wake of all waiters holds", false, setup, NULL, futex_wake_all,
     futex_waiter, futex_waiter),
CASE("spin lock excludes and ends", false, setup, locked_check, locked, locked,
     locked),
CASE("unlocked update is lost", true, setup, lost_update_check, lost_update,
     lost_update),
CASE("bounded spin: success is explored", true, setup, spin_result_check,
     write_x, spin_or_give_up),
CASE("bounded spin: giving up is explored", true, setup, gave_up_check,
     write_x, spin_or_give_up),
CASE("spin without relax is reported", true, setup, NULL, spin_no_relax),
CASE("operand types", false, setup, NULL, types),
CASE("overlapping sizes are reported", true, setup, NULL, overlap),
CASE("memory outside regions is reported", true, setup, NULL, outside),
};

static void test_twelve(void)
{
	struct fx_model m = { .name = "three threads of twelve operations",
			      .setup = setup, .by_stack = true,
			      .thread = { twelve, twelve, twelve } };

	fx_model_tap(&m, false);
}

static void test_daemons(void)
{
	struct fx_model m = { .name = "blocked daemons may remain",
			      .setup = setup, .daemons = 6,
			      .thread = { wake_one, wait_once0, wait_once1 } };

	fx_model_tap(&m, false);
	m.name = "a wake may pick the first of two waiters";
	m.check = wake_first_check;
	fx_model_tap(&m, true);
	m.name = "a wake may pick the second of two waiters";
	m.check = wake_second_check;
	fx_model_tap(&m, true);
}

static bool is_partial(const struct fx_model *m)
{
	struct fx_model_stats st;

	return fx_model_run(m, &st) == FX_MODEL_PARTIAL && !st.exhaustive;
}

static void test_bounds(void)
{
	struct fx_model m = { .name = "twelve, 100 states", .setup = setup,
			      .max_states = 100, .by_stack = true,
			      .thread = { twelve, twelve, twelve } };
	bool partial = is_partial(&m);

	m.name = "twelve, 2 preemptions";
	m.max_states = 0;
	m.max_preemptions = 2;
	partial = partial && is_partial(&m);
	m = (struct fx_model){ .name = "bounds are reported as partial",
			       .setup = claim_setup, .thread = { claim_cas },
			       .check = partial ? claim_check : never };
	fx_model_tap(&m, false);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		fx_model_tap_both(&cases[i].m, cases[i].fails);
	test_twelve();
	test_daemons();
	test_bounds();
	return fx_model_tap_done();
}
