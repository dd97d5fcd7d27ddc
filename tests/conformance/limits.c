/* SPDX-License-Identifier: MIT */
/*
 * Very many calls, more calls than entries, more blocking calls than threads,
 * and handlers that never stop posting: everything completes, nothing starves
 * and the bounds hold.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>

static void more_than_entries(void)
{
	enum {
		NR = 10000,
		PAIRS = 100
	};
	struct op *ops = calloc(NR, sizeof(*ops));
	static char buf[NR];
	uint8_t bytes[NR / PAIRS];
	int sv[PAIRS][2];
	long sum = 0;

	loop = new_loop(64, 0);
	memset(bytes, 1, sizeof(bytes));
	for (int i = 0; i < PAIRS; i++)
		make_pair(sv[i]);
	for (int i = 0; i < NR; i++)
		POST(read, &ops[i], sv[i % PAIRS][0], &buf[i], 1);
	CHECK_EQ(flexsc_loop_outstanding(loop), NR);
	run_ms(20);
	CHECK_EQ(nr_ops_done, 0);
	for (int i = 0; i < PAIRS; i++)
		CHECK_EQ(write(sv[i][1], bytes, sizeof(bytes)), sizeof(bytes));
	RUN_UNTIL(nr_ops_done, NR);
	for (int i = 0; i < NR; i++) {
		CHECK_EQ(ops[i].ev.ret, 1);
		sum += buf[i];
	}
	CHECK_EQ(sum, NR);
	end_loop(loop);
	loop = NULL;
	free(ops);
}

/* The same with calls that need threads. */
static void more_than_threads(void)
{
	enum {
		NR = 2000
	};
	struct timespec nap = { .tv_nsec = 10000 };
	struct op *ops = calloc(NR, sizeof(*ops));

	loop = new_loop(64, 4);
	for (int i = 0; i < NR; i++)
		POST(nanosleep, &ops[i], &nap, NULL);
	RUN_UNTIL(nr_ops_done, NR);
	for (int i = 0; i < NR; i++)
		CHECK_EQ(ops[i].ev.ret, 0);
	end_loop(loop);
	loop = NULL;
	free(ops);
}

static void no_event_at_limit(void)
{
	enum {
		NR = 64
	};
	static struct op ops[NR], queued;
	struct timespec nap = { .tv_nsec = 1000000 };
	char buf[NR], byte;
	int sv[2], fds[2], ret;

	loop = new_loop(NR, 0);
	make_pair(sv);
	make_pipe(fds);
	for (int i = 0; i < NR; i++)
		POST(read, &ops[i], sv[0], &buf[i], 1);
	run_ms(5);
	CHECK_EQ(flexsc_post(NULL, SYS_getpid, 0, 0, 0, 0, 0, 0), 0);
	ret = flexsc_write(NULL, fds[1], "x", 1); /* could block, need not */
	CHECK(ret == 0 || ret == -EAGAIN);
	if (!ret)
		CHECK_EQ(read(fds[0], &byte, 1), 1);
	CHECK_EQ(flexsc_nanosleep(NULL, &nap, NULL), -EAGAIN);
	CHECK_EQ(flexsc_read(NULL, fds[0], &byte, 1), -EAGAIN);
	CHECK_EQ(flexsc_loop_outstanding(loop), NR);
	POST(read, &queued, sv[0], &byte, 1);
	CHECK_EQ(flexsc_loop_outstanding(loop), NR + 1);
	run_ms(5);
	CHECK_EQ(nr_ops_done, 0);
	for (int i = 0; i <= NR; i++)
		CHECK_EQ(write(sv[1], "a", 1), 1);
	RUN_UNTIL(nr_ops_done, NR + 1);
	end_loop(loop);
	loop = NULL;
}

/* A hundred thousand reads wait; then all of them are answered. */
static void hundred_thousand(void)
{
	enum {
		NR = 100000
	};
	struct op *ops = calloc(NR, sizeof(*ops));
	char *bufs = calloc(NR, 1), bytes[NR] = { 0 };
	struct rlimit files;
	int(*sv)[2], nr_pairs = 10000, each;
	uint64_t begin, took;
	unsigned int rounds = 0;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
	while (2 * nr_pairs + 200 > (int)files.rlim_cur)
		nr_pairs /= 10;
	each = NR / nr_pairs;
	sv = calloc((size_t)nr_pairs, sizeof(*sv));
	for (int i = 0; i < nr_pairs; i++)
		make_pair(sv[i]);
	for (int i = 0; i < NR; i++)
		POST(read, &ops[i], sv[i / each][0], &bufs[i], 1);
	CHECK_EQ(flexsc_loop_outstanding(loop), NR);
	run_ms(10);
	CHECK_EQ(nr_ops_done, 0);
	/* No scan of what waits: a call stays well below a millisecond. A starved
	 * machine may be slow now and then, a scan always is. */
	do {
		begin = now_ns();
		for (int i = 0; i < 1000; i++)
			CALL(post, SYS_getppid, 0, 0, 0, 0, 0, 0);
		took = now_ns() - begin;
		rounds++;
	} while (took > 1000 * slowness() * MS && rounds < 5);
	CHECK_IN(took, 0, 1000 * slowness() * MS);
	for (int i = 0; i < nr_pairs; i++)
		CHECK_EQ(write(sv[i][1], bytes, (size_t)each), each);
	RUN_UNTIL(nr_ops_done, NR + rounds * 1000);
	for (int i = 0; i < NR; i++)
		CHECK_EQ(ops[i].ev.ret, 1);
	/* And once more, all cancelled. */
	for (int i = 0; i < NR; i++)
		POST(read, &ops[i], sv[i / each][0], &bufs[i], 1);
	for (int i = 0; i < NR; i++)
		CHECK_EQ(flexsc_cancel(&ops[i].ev), 0);
	RUN_UNTIL(nr_ops_done, 2 * NR + rounds * 1000);
	for (int i = 0; i < NR; i++)
		CHECK_EQ(ops[i].ev.ret, -ECANCELED);
}

static bool enough;

static void post_again(struct flexsc_event *ev)
{
	unsigned long *nr = ev->data;

	CHECK_EQ(ev->ret, getpid());
	(*nr)++;
	if (!enough)
		CHECK_EQ(flexsc_post(ev, SYS_getpid, 0, 0, 0, 0, 0, 0), 0);
}

static void read_again(struct flexsc_event *ev)
{
	static uint8_t byte;
	int *fd = ev->data;

	CHECK_EQ(ev->ret, 1);
	if (!enough)
		CHECK_EQ(flexsc_read(ev, *fd, &byte, 1), 0);
}

/* Handlers that post for ever keep neither timers nor others from running. */
static void posting_for_ever(void)
{
	int zero = open("/dev/zero", O_RDONLY), sv[2];
	unsigned long nr = 0, limit = 0;
	struct flexsc_event pid = { .handler = post_again, .data = &nr };
	struct flexsc_event bytes = { .handler = read_again, .data = &zero };
	struct op timer = { 0 }, in = { 0 };
	uint64_t begin = now_ns();
	char buf[10];

	make_pair(sv);
	POST(read, &in, sv[0], buf, sizeof(buf));
	POST(timer, &timer, 50 * MS);
	CHECK_EQ(flexsc_post(&pid, SYS_getpid, 0, 0, 0, 0, 0, 0), 0);
	CHECK_EQ(flexsc_read(&bytes, zero, &buf[9], 1), 0);
	CHECK_EQ(WAIT(&timer), 0);
	CHECK_IN(timer.done_ns - begin, 50 * MS, 500 * slowness() * MS);
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	begin = now_ns();
	CHECK_EQ(WAIT(&in), 3);
	CHECK_IN(in.done_ns - begin, 0, 500 * slowness() * MS);
	/* One round is not endless either. */
	limit = nr;
	begin = now_ns();
	flexsc_loop_poll(loop, 0);
	CHECK_IN(now_ns() - begin, 0, 500 * slowness() * MS);
	CHECK(nr - limit < 1000000);
	enough = true;
	while (flexsc_loop_outstanding(loop))
		run_ms(1);
}

struct locker {
	struct op op;
	int fd;
};

/*
 * 200 waits for a lock share four threads, and nobody else waits for them. An
 * engine that tries a core meanwhile has its threads, two at most, besides.
 */
static void bounded_threads(void)
{
	enum {
		NR = 200,
		THREADS = 4,
		CORE_THREADS = 2
	};
	static struct locker lockers[NR];
	int holder = make_file("file", 10), sv[2], left = NR;
	struct op in = { 0 };
	unsigned int before;
	char buf[10];

	loop = new_loop(0, THREADS);
	CHECK_EQ(CALL(post, SYS_getpid, 0, 0, 0, 0, 0, 0), getpid());
	before = nr_tasks();
	CHECK_EQ(flock(holder, LOCK_EX), 0);
	for (int i = 0; i < NR; i++) {
		lockers[i].fd = open("file", O_RDWR);
		POST(flock, &lockers[i].op, lockers[i].fd, LOCK_EX);
	}
	make_pair(sv);
	for (int round = 0; round < 20; round++) {
		POST(read, &in, sv[0], buf, sizeof(buf));
		CHECK_EQ(CALL(post, SYS_getpid, 0, 0, 0, 0, 0, 0), getpid());
		CHECK_EQ(CALL(write, sv[1], "abc", 3), 3);
		CHECK_EQ(WAIT(&in), 3);
		CHECK_IN(nr_tasks(), 1, before + THREADS + CORE_THREADS);
		run_ms(2);
	}
	CHECK_EQ(flock(holder, LOCK_UN), 0);
	while (left) {
		run_ms(1);
		for (int i = 0; i < NR; i++) {
			if (!lockers[i].op.nr_done || lockers[i].fd < 0)
				continue;
			CHECK_EQ(lockers[i].op.ev.ret, 0);
			/* A posted close might need a thread, too. */
			close(lockers[i].fd);
			flexsc_forget(lockers[i].fd);
			lockers[i].fd = -1;
			left--;
		}
		CHECK_IN(nr_tasks(), 1, before + THREADS + CORE_THREADS);
	}
	end_loop(loop);
	loop = NULL;
}

/* All threads are held; what is queued behind them can still be cancelled. */
static void queued_behind_threads(void)
{
	enum {
		NR = 50
	};
	struct timespec nap = { .tv_sec = 100 };
	static struct op ops[NR];

	loop = new_loop(0, 2);
	for (int i = 0; i < NR; i++)
		POST(nanosleep, &ops[i], &nap, NULL);
	run_ms(20);
	for (int i = NR - 1; i >= 0; i--)
		CHECK_EQ(flexsc_cancel(&ops[i].ev), 0);
	RUN_UNTIL(nr_ops_done, NR);
	for (int i = 0; i < NR; i++)
		CHECK_EQ(ops[i].ev.ret, -ECANCELED);
	for (int i = 0; i < NR; i++) {
		ops[i].ev.timeout_ns = 20 * MS;
		POST(nanosleep, &ops[i], &nap, NULL);
	}
	RUN_UNTIL(nr_ops_done, 2 * NR);
	for (int i = 0; i < NR; i++)
		CHECK_EQ(ops[i].ev.ret, -ETIMEDOUT);
	end_loop(loop);
	loop = NULL;
}

/* Threads that have had nothing to do for seconds end, all but one. */
static void idle_threads_end(void)
{
	enum {
		NR = 6
	};
	struct timespec nap = { .tv_nsec = 50 * 1000000 };
	struct op ops[NR] = { 0 };
	unsigned int before, rounds = 0;

	loop = new_loop(0, 0);
	before = nr_tasks();
	for (int again = 0; again < 2; again++) {
		for (int i = 0; i < NR; i++)
			POST(nanosleep, &ops[i], &nap, NULL);
		run_ms(10);
		CHECK_EQ(nr_tasks(), before + NR);
		for (int i = 0; i < NR; i++)
			CHECK_EQ(WAIT(&ops[i]), 0);
		while (nr_tasks() > before + 1 && rounds++ < 80)
			sleep_ms(100);
		CHECK_EQ(nr_tasks(), before + 1);
	}
	end_loop(loop);
	loop = NULL;
}

static const struct test tests[] = {
	{ "more_than_entries", more_than_entries, TEST_NO_LOOP },
	{ "more_than_threads", more_than_threads, TEST_NO_LOOP | TEST_SLOW },
	{ "no_event_at_limit", no_event_at_limit, TEST_NO_LOOP },
	{ "hundred_thousand", hundred_thousand, TEST_SLOW },
	{ "posting_for_ever", posting_for_ever, 0 },
	{ "bounded_threads", bounded_threads, TEST_NO_LOOP | TEST_BESIDE },
	{ "idle_threads_end", idle_threads_end,
	  TEST_NO_LOOP | TEST_BESIDE | TEST_SLOW },
	{ "queued_behind_threads", queued_behind_threads,
	  TEST_NO_LOOP | TEST_BESIDE },
};

int main(int argc, char **argv)
{
	return run_group(argc, argv, tests, ARRAY_SIZE(tests));
}
