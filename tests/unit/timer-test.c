/* SPDX-License-Identifier: MIT */
/* loop/timer.c: order of the heap, and removal from anywhere in it. */
#include "loop/timer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define NR 1000

static struct flexsc_event events[NR];
static uint64_t deadlines[NR]; /* 0: not in the heap */
static uint64_t random_state;

static uint32_t below(uint32_t n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % n;
}

static int fresh(void **state)
{
	struct fx_timers *timers = calloc(1, sizeof(*timers));

	for (unsigned i = 0; i < NR; i++) {
		events[i] = (struct flexsc_event){ .handler = NULL };
		deadlines[i] = 0;
	}
	random_state = 42;
	*state = timers;
	return timers ? 0 : -1;
}

static int gone(void **state)
{
	fx_timers_fini(*state);
	free(*state);
	return 0;
}

static void add(struct fx_timers *timers, unsigned i, uint64_t deadline)
{
	assert_int_equal(fx_timers_add(timers, &events[i], deadline), 0);
	deadlines[i] = deadline;
}

/* Every event knows its place, and no child is due before its parent. */
static void check_heap(const struct fx_timers *timers)
{
	for (uint32_t i = 0; i < timers->nr; i++) {
		const struct fx_timer *timer = &timers->heap[i];

		assert_int_equal(timer->ev->timer_, i + 1);
		assert_int_equal(deadlines[timer->ev - events],
				 timer->deadline_ns);
		if (i)
			assert_true(timers->heap[(i - 1) / 4].deadline_ns <=
				    timer->deadline_ns);
	}
}

static void empty(void **state)
{
	assert_true(fx_timers_empty(*state));
	assert_null(fx_timers_pop(*state, UINT64_MAX));
}

static void not_before_time(void **state)
{
	add(*state, 0, 100);
	assert_null(fx_timers_pop(*state, 99));
	assert_ptr_equal(fx_timers_pop(*state, 100), &events[0]);
	assert_int_equal(events[0].timer_, 0);
	assert_null(fx_timers_pop(*state, UINT64_MAX));
	assert_true(fx_timers_empty(*state));
}

static void in_order(void **state)
{
	uint64_t last = 0;

	for (unsigned i = 0; i < NR; i++)
		add(*state, i, 1 + below(300)); /* many are equal */
	check_heap(*state);
	for (unsigned i = 0; i < NR; i++) {
		struct flexsc_event *ev = fx_timers_pop(*state, UINT64_MAX);

		assert_non_null(ev);
		assert_true(deadlines[ev - events] >= last);
		last = deadlines[ev - events];
	}
	assert_true(fx_timers_empty(*state));
}

static void removed_first_and_last(void **state)
{
	for (unsigned i = 0; i < 3; i++)
		add(*state, i, i + 1);
	fx_timers_remove(*state, &events[2]);
	fx_timers_remove(*state, &events[0]);
	assert_ptr_equal(fx_timers_pop(*state, 10), &events[1]);
	assert_true(fx_timers_empty(*state));
	add(*state, 0, 5);
	fx_timers_remove(*state, &events[0]);
	assert_true(fx_timers_empty(*state));
}

/* One that moves up: the last one, put where a later branch had a hole. */
static void removal_sifts_up(void **state)
{
	static const uint64_t heap[] = { 1, 100, 2, 200, 200, 101, 102, 103,
					 104, 3 };

	for (unsigned i = 0; i < FX_ARRAY_SIZE(heap); i++)
		add(*state, i, heap[i]);
	fx_timers_remove(*state, &events[5]);
	check_heap(*state);
}

static int earliest(void)
{
	int best = -1;

	for (int i = 0; i < NR; i++)
		if (deadlines[i] && (best < 0 || deadlines[i] < deadlines[best]))
			best = i;
	return best;
}

static void pop_as_naive(struct fx_timers *timers, uint64_t now)
{
	struct flexsc_event *ev = fx_timers_pop(timers, now);
	int best = earliest();

	if (best < 0 || deadlines[best] > now) {
		assert_null(ev);
		return;
	}
	assert_non_null(ev);
	assert_int_equal(deadlines[ev - events], deadlines[best]);
	deadlines[ev - events] = 0;
}

static void as_naive(void **state)
{
	uint64_t now = 1;

	for (unsigned step = 0; step < 20000; step++) {
		unsigned i = below(NR);

		if (below(3) == 0)
			pop_as_naive(*state, now += below(20));
		else if (!deadlines[i])
			add(*state, i, now + below(5000));
		else if (below(2)) {
			fx_timers_remove(*state, &events[i]);
			deadlines[i] = 0;
			assert_int_equal(events[i].timer_, 0);
		}
		if (step % 16 == 0)
			check_heap(*state);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fresh, gone)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(empty),		TEST(not_before_time),
		TEST(in_order),		TEST(removed_first_and_last),
		TEST(removal_sifts_up), TEST(as_naive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
