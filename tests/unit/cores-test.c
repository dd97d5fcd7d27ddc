/* SPDX-License-Identifier: MIT */
/* The rules of sched/cores.c on invented windows. */
#include "sched/cores.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define WINDOW FX_CORES_WINDOW_NS

static uint64_t now;

/* What a server does: @load in percent of one processor. */
static struct fx_cores_window serving(unsigned load, unsigned calls)
{
	now += WINDOW;
	return (struct fx_cores_window){ .now_ns = now,
					 .ns = WINDOW,
					 .cpu_ns = WINDOW * load / 100,
					 .calls = calls,
					 .slices = 2000,
					 .most = 4 };
}

static uint32_t step(struct fx_cores *c, unsigned load, unsigned calls,
		     bool saturated)
{
	struct fx_cores_window w = serving(load, calls);

	w.saturated = saturated;
	return fx_cores_step(c, &w);
}

/* The rest of a trial: what is done at once is not measured. */
static uint32_t trial(struct fx_cores *c, unsigned load, unsigned calls,
		      bool saturated)
{
	uint32_t nr = c->nr;

	assert_int_equal(c->state, FX_CORES_WARMING);
	assert_int_equal(step(c, load, 10, saturated), nr);
	assert_int_equal(step(c, load, calls, saturated), nr);
	assert_int_equal(step(c, load, calls, saturated), nr);
	nr = step(c, load, calls, saturated);
	assert_int_equal(c->state, FX_CORES_STEADY);
	return nr;
}

/* Until the number changes, at most @max windows. */
static unsigned windows_until(struct fx_cores *c, uint32_t nr, unsigned load,
			      bool saturated, unsigned max)
{
	for (unsigned n = 1; n <= max; n++)
		if (step(c, load, 1000, saturated) == nr)
			return n;
	return 0;
}

static void rests_what_the_load_does_without(void **state)
{
	struct fx_cores c = { 0 };

	assert_int_equal(step(&c, 90, 1000, false), 2); /* by halves */
	assert_int_equal(trial(&c, 90, 1000, false), 2);
	assert_int_equal(step(&c, 90, 1000, false), 1);
	assert_int_equal(trial(&c, 60, 1000, false), 1);
	assert_int_equal(windows_until(&c, 2, 60, false, 1000), 0);
}

static void keeps_what_it_needs(void **state)
{
	struct fx_cores c = { 0 };

	/* Of 300 percent, 3 of 4 are not worth a trial of two. */
	assert_int_equal(step(&c, 300, 1000, false), 3);
	/* Less done: back, and not again soon, each time later. */
	assert_int_equal(trial(&c, 280, 900, false), 4);
	for (uint64_t pause = 200; pause <= 1600; pause *= 2) {
		unsigned n = windows_until(&c, 3, 300, false, 1000);

		assert_in_range(n, pause * FX_NS_PER_MS / WINDOW,
				pause * FX_NS_PER_MS / WINDOW + 1);
		assert_int_equal(trial(&c, 280, 900, false), 4);
	}
}

static void more_must_do_more(void **state)
{
	struct fx_cores c = { .nr = 1 };

	/* At once, since it has not failed yet. */
	assert_int_equal(step(&c, 100, 1000, true), 2);
	assert_int_equal(trial(&c, 190, 1050, true), 1);
	assert_int_equal(step(&c, 100, 1000, true), 1);
	assert_int_equal(windows_until(&c, 2, 100, true, 20), 9);
	assert_int_equal(trial(&c, 190, 1500, true), 2);
	/* Still full: more of them. */
	assert_int_equal(step(&c, 200, 1500, true), 4);
}

static void long_slices(void **state)
{
	struct fx_cores c = { 0 };
	struct fx_cores_window w = serving(30, 10);

	/* Few of them: nothing to gain. */
	w.slices = 20;
	assert_int_equal(fx_cores_step(&c, &w), 4);
	/* Saturated by computing: all, without a trial. */
	c.nr = 1;
	w = serving(100, 10);
	w.slices = 20;
	w.saturated = true;
	assert_int_equal(fx_cores_step(&c, &w), 4);
	assert_int_equal(c.state, FX_CORES_STEADY);
}

/* Where tasks wait for each other, not for calls, that is what is done. */
static void without_calls(void **state)
{
	struct fx_cores c = { 0 };
	struct fx_cores_window w = serving(90, 0);

	assert_int_equal(fx_cores_step(&c, &w), 2);
	for (int i = 0; i < 4; i++) {
		w = serving(90, 0);
		w.slices = 1500;
		assert_int_equal(c.nr, 2);
		fx_cores_step(&c, &w);
	}
	assert_int_equal(c.nr, 4);
}

static void all_at_once(void **state)
{
	struct fx_cores c = { 0 };

	step(&c, 90, 1000, false);
	assert_int_equal(c.state, FX_CORES_WARMING);
	fx_cores_all(&c, now, 4);
	assert_int_equal(step(&c, 90, 1000, false), 4);
	assert_int_equal(windows_until(&c, 2, 90, false, 20), 9);
}

/* After a long time in peace the pauses begin anew. */
static void forgets(void **state)
{
	struct fx_cores c = { 0 };

	for (int i = 0; i < 5; i++) {
		c.nr = 2;
		fx_cores_all(&c, now, 4);
	}
	assert_int_equal(c.fewer.pause_ns, 3200 * FX_NS_PER_MS);
	now += 60 * FX_NS_PER_SEC;
	c.nr = 2;
	fx_cores_all(&c, now, 4);
	assert_int_equal(c.fewer.pause_ns, 200 * FX_NS_PER_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rests_what_the_load_does_without),
		cmocka_unit_test(keeps_what_it_needs),
		cmocka_unit_test(more_must_do_more),
		cmocka_unit_test(long_slices),
		cmocka_unit_test(without_calls),
		cmocka_unit_test(all_at_once),
		cmocka_unit_test(forgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
