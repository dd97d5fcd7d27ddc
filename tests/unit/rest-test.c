/* SPDX-License-Identifier: MIT */
/* engine/rest.c: the arguments of what is left of a call. */
#include "engine/rest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include <cmocka.h>

static char memory[1000];

static struct flexsc_entry call_of(unsigned nr, uint64_t a1, uint64_t a2,
				   uint64_t a3, int64_t done)
{
	return (struct flexsc_entry){ .nr = (uint16_t)nr,
				      .nr_args = 4,
				      .args = { 3, a1, a2, a3 },
				      .ret = done };
}

static void check_args(unsigned nr, uint64_t a1, uint64_t a2, uint64_t a3)
{
	struct flexsc_entry call = call_of(nr, 1000, 100, 5000, 40);
	struct flexsc_entry before = call;
	const struct flexsc_entry *rest;
	struct fx_rest room;

	rest = fx_rest_of(&room, &call);
	assert_memory_equal(&call, &before, sizeof(call));
	assert_int_equal(rest->nr, nr);
	assert_int_equal(rest->args[0], 3);
	assert_int_equal(rest->args[1], a1);
	assert_int_equal(rest->args[2], a2);
	assert_int_equal(rest->args[3], a3);
}

static void buffers(void **state)
{
	(void)state;
	check_args(SYS_read, 1040, 60, 5000);
	check_args(SYS_write, 1040, 60, 5000);
	check_args(SYS_recvfrom, 1040, 60, 5000);
	check_args(SYS_sendto, 1040, 60, 5000);
}

static void positions(void **state)
{
	(void)state;
	check_args(SYS_pread64, 1040, 60, 5040);
	check_args(SYS_pwrite64, 1040, 60, 5040);
}

static void sendfile(void **state)
{
	(void)state;
	check_args(SYS_sendfile, 1000, 100, 4960);
}

static void others_stay(void **state)
{
	(void)state;
	check_args(SYS_connect, 1000, 100, 5000);
	check_args(SYS_getpid, 1000, 100, 5000);
}

/* Of 25 buffers of 4 bytes 41 bytes are done. */
static void check_list(unsigned nr, int64_t position, int64_t expected)
{
	struct iovec list[25];
	struct flexsc_entry call;
	const struct flexsc_entry *rest;
	const struct iovec *left;
	struct fx_rest room;

	for (unsigned i = 0; i < 25; i++)
		list[i] = (struct iovec){ memory + 4 * i, 4 };
	call = call_of(nr, (uint64_t)(uintptr_t)list, 25, (uint64_t)position,
		       41);
	rest = fx_rest_of(&room, &call);
	left = (const struct iovec *)(uintptr_t)rest->args[1];
	assert_int_equal(rest->args[2], 15);
	assert_ptr_equal(left[0].iov_base, memory + 41);
	assert_int_equal(left[0].iov_len, 3);
	assert_ptr_equal(left[14].iov_base, memory + 96);
	assert_int_equal((int64_t)rest->args[3], expected);
	assert_false(fx_rest_more(&call, 100));
	assert_true(fx_rest_more(&call, 99));
}

static void lists(void **state)
{
	(void)state;
	check_list(SYS_readv, 5000, 5000);
	check_list(SYS_writev, 5000, 5000);
	check_list(SYS_preadv, 5000, 5041);
	check_list(SYS_preadv2, 5000, 5041);
	check_list(SYS_preadv2, -1, -1);
}

static void only_lists_end_early(void **state)
{
	struct flexsc_entry call = call_of(SYS_read, 1000, 100, 0, 40);

	(void)state;
	assert_false(fx_rest_more(&call, 50));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffers),
		cmocka_unit_test(positions),
		cmocka_unit_test(sendfile),
		cmocka_unit_test(others_stay),
		cmocka_unit_test(lists),
		cmocka_unit_test(only_lists_end_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
