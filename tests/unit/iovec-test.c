/* SPDX-License-Identifier: MIT */
/* engine/iovec.c: a list of buffers from any byte on, window by window. */
#include "engine/iovec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static char memory[4096];

static void from_the_start_is_the_list(void **state)
{
	/* Not readable: it must not be looked at. */
	const struct iovec *bad = (const struct iovec *)8;
	struct fx_iovec v;
	size_t nr;

	(void)state;
	fx_iovec_from_list(&v, bad, 7);
	assert_ptr_equal(fx_iovec_from(&v, 0, &nr), bad);
	assert_int_equal(nr, 7);
}

static void buffer(void **state)
{
	const struct iovec *rest;
	struct fx_iovec v;
	size_t nr;

	(void)state;
	fx_iovec_from_buffer(&v, (uint64_t)(uintptr_t)memory, 100);
	assert_int_equal(fx_iovec_total(&v), 100);
	rest = fx_iovec_from(&v, 30, &nr);
	assert_int_equal(nr, 1);
	assert_ptr_equal(rest[0].iov_base, memory + 30);
	assert_int_equal(rest[0].iov_len, 70);
	fx_iovec_from(&v, 100, &nr);
	assert_int_equal(nr, 0);
}

static void empty_list(void **state)
{
	struct fx_iovec v;
	size_t nr;

	(void)state;
	fx_iovec_from_list(&v, NULL, 0);
	assert_int_equal(fx_iovec_total(&v), 0);
	fx_iovec_from(&v, 1, &nr);
	assert_int_equal(nr, 0);
}

/* Go through @count buffers from byte @done on: every byte, once, in order. */
static void walk(const struct iovec *list, size_t count, size_t done)
{
	struct fx_iovec v;
	size_t total, at = done;

	fx_iovec_from_list(&v, list, count);
	total = fx_iovec_total(&v);
	while (at < total) {
		size_t nr, here = at;
		const struct iovec *rest = fx_iovec_from(&v, at, &nr);

		assert_true(nr > 0);
		assert_true(at == 0 || nr <= FX_IOVEC_WINDOW);
		for (size_t i = 0; i < nr; i++) {
			if (rest[i].iov_len)
				assert_ptr_equal(rest[i].iov_base,
						 memory + here);
			here += rest[i].iov_len;
		}
		assert_true(here > at && here <= total);
		at = here;
	}
	assert_int_equal(at, total);
}

static void every_byte(void **state)
{
	struct iovec list[150], before[150];
	size_t offset = 0;

	(void)state;
	for (size_t i = 0; i < 150; i++) {
		list[i].iov_base = memory + offset;
		list[i].iov_len = i * 7 % 5; /* some are empty */
		offset += list[i].iov_len;
	}
	memcpy(before, list, sizeof(list));
	for (size_t done = 0; done <= offset; done++)
		walk(list, 150, done);
	assert_memory_equal(before, list, sizeof(list));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_the_start_is_the_list),
		cmocka_unit_test(buffer),
		cmocka_unit_test(empty_list),
		cmocka_unit_test(every_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
