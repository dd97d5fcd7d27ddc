/* SPDX-License-Identifier: MIT */
/* The rules of engine/worth.c on invented windows. */
#include "engine/worth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define WINDOW FX_WORTH_WINDOW_NS

static uint64_t now;

/* One window of an owner that is busy for @percent of it. */
static enum fx_worth_step window(struct fx_worth *w, unsigned completions,
				 unsigned percent, bool crowded)
{
	struct fx_worth_window v = { .ns = WINDOW,
				     .cpu_ns = WINDOW * percent / 100,
				     .completions = completions,
				     .crowded = crowded };

	now += WINDOW;
	v.now_ns = now;
	return fx_worth_step(w, &v);
}

/* Windows of a busy owner until it is told something, at most @max. */
static unsigned windows_until(struct fx_worth *w, enum fx_worth_step wanted,
			      unsigned max)
{
	for (unsigned n = 1; n <= max; n++) {
		enum fx_worth_step step = window(w, 1000, 100, false);

		if (step != FX_WORTH_STAY) {
			assert_int_equal(step, wanted);
			return n;
		}
	}
	return 0;
}

static void keeps_what_pays(void **state)
{
	struct fx_worth w = { 0 };

	assert_int_equal(window(&w, 1000, 100, false), FX_WORTH_START);
	assert_int_equal(window(&w, 10, 100, false), FX_WORTH_STAY); /* cold */
	assert_int_equal(window(&w, 1500, 100, false), FX_WORTH_STAY);
	assert_int_equal(w.state, FX_WORTH_WITH);
	/* Compared again after a while, and each time later. */
	for (uint64_t hold = FX_NS_PER_SEC; hold <= 4 * FX_NS_PER_SEC;
	     hold *= 2) {
		unsigned n = windows_until(&w, FX_WORTH_STOP, 1000);

		assert_in_range(n, hold / WINDOW, hold / WINDOW + 1);
		assert_int_equal(window(&w, 1000, 100, false), FX_WORTH_START);
		assert_int_equal(window(&w, 10, 100, false), FX_WORTH_STAY);
		assert_int_equal(window(&w, 1500, 100, false), FX_WORTH_STAY);
	}
}

static void gives_up_what_does_not(void **state)
{
	struct fx_worth w = { 0 };
	unsigned before = 0;

	for (int trial = 0; trial < 12; trial++) {
		unsigned n = windows_until(&w, FX_WORTH_START, 10000);

		/* Ever later, but not for ever. */
		assert_true(n >= before && n > 0);
		assert_true(n <= 64 * FX_NS_PER_SEC / WINDOW + 1);
		before = n;
		assert_int_equal(window(&w, 1500, 100, false), FX_WORTH_STAY);
		assert_int_equal(window(&w, 1100, 100, false), FX_WORTH_STOP);
	}
}

static void leaves_the_idle_alone(void **state)
{
	struct fx_worth w = { 0 };

	for (int i = 0; i < 1000; i++) {
		assert_int_equal(window(&w, 1000, 80, false), FX_WORTH_STAY);
		assert_int_equal(window(&w, 0, 100, false), FX_WORTH_STAY);
	}
	assert_int_equal(window(&w, 1000, 100, false), FX_WORTH_START);
	assert_int_equal(window(&w, 1000, 100, false), FX_WORTH_STAY);
	assert_int_equal(window(&w, 2000, 100, false), FX_WORTH_STAY);
	assert_int_equal(window(&w, 2000, 50, false), FX_WORTH_STAY);
	assert_int_equal(window(&w, 2000, 10, false), FX_WORTH_STOP);
}

static void gives_way(void **state)
{
	struct fx_worth w = { 0 };

	assert_int_equal(window(&w, 1000, 100, false), FX_WORTH_START);
	assert_int_equal(window(&w, 1000, 100, true), FX_WORTH_STAY);
	assert_int_equal(window(&w, 3000, 100, true), FX_WORTH_STOP);
	windows_until(&w, FX_WORTH_START, 100);
	assert_int_equal(window(&w, 3000, 100, false), FX_WORTH_STAY);
	assert_int_equal(window(&w, 3000, 100, false), FX_WORTH_STAY);
	assert_int_equal(window(&w, 3000, 100, true), FX_WORTH_STOP);
	windows_until(&w, FX_WORTH_START, 100);
	fx_worth_refuse(&w, now);
	assert_in_range(windows_until(&w, FX_WORTH_START, 1000),
			FX_NS_PER_SEC / WINDOW - 1,
			FX_NS_PER_SEC / WINDOW + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_what_pays),
		cmocka_unit_test(gives_up_what_does_not),
		cmocka_unit_test(leaves_the_idle_alone),
		cmocka_unit_test(gives_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
