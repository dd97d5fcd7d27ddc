/* SPDX-License-Identifier: MIT */
/*
 * Chains: calls one after the other, each with the results of those before,
 * ending at the first that fails, with the finally part run in any case; and
 * handlers in the order of the chain.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define BEGIN() CHECK_EQ(flexsc_chain_begin(), 0)
#define FINALLY() CHECK_EQ(flexsc_chain_finally(), 0)
#define END() CHECK_EQ(flexsc_chain_end(), 0)

/* open, fstat, read, and close in any case */
struct reading {
	struct op open, fstat, read, close;
	struct stat st;
	char buf[100];
};

static void post_reading(struct reading *r, const char *path, int flags)
{
	BEGIN();
	POST(open, &r->open, path, flags, 0);
	POST(fstat, &r->fstat, FLEXSC_RESULT(0), &r->st);
	POST(read, &r->read, FLEXSC_RESULT(0), r->buf, sizeof(r->buf));
	FINALLY();
	POST(close, &r->close, FLEXSC_RESULT(0));
	END();
}

static bool is_open(int64_t fd)
{
	return fcntl((int)fd, F_GETFD) >= 0;
}

static void file(void)
{
	struct reading r = { 0 };

	close(make_file("file", 70));
	post_reading(&r, "file", O_RDONLY);
	CHECK_EQ(flexsc_loop_outstanding(loop), 4);
	CHECK_EQ(WAIT(&r.close), 0);
	CHECK(r.open.ev.ret >= 0);
	CHECK_EQ(r.fstat.ev.ret, 0);
	CHECK_EQ(r.st.st_size, 70);
	CHECK_EQ(r.read.ev.ret, 70);
	CHECK(filled((uint8_t *)r.buf, 0, 70));
	CHECK(!is_open(r.open.ev.ret));
	CHECK_EQ(r.open.nr_done + r.fstat.nr_done + r.read.nr_done, 3);
}

static void open_fails(void)
{
	struct reading r = { 0 };

	post_reading(&r, "absent", O_RDONLY);
	CHECK_EQ(WAIT(&r.close), -ECANCELED);
	CHECK_EQ(WAIT(&r.open), -ENOENT);
	CHECK_EQ(WAIT(&r.fstat), -ECANCELED);
	CHECK_EQ(WAIT(&r.read), -ECANCELED);
}

static void read_fails(void)
{
	struct reading r = { 0 };

	close(make_file("file", 70));
	post_reading(&r, "file", O_WRONLY);
	CHECK_EQ(WAIT(&r.close), 0);
	CHECK_EQ(WAIT(&r.fstat), 0);
	CHECK_EQ(WAIT(&r.read), -EBADF);
	CHECK(!is_open(r.open.ev.ret));
}

static void finally_without_argument(void)
{
	struct op opened = { 0 }, last = { 0 };
	int fds[2];
	char buf[10];

	make_pipe(fds);
	BEGIN();
	POST(open, &opened, "absent", O_RDONLY, 0);
	FINALLY();
	POST(write, &last, fds[1], "abc", 3);
	END();
	CHECK_EQ(WAIT(&last), 3);
	CHECK_EQ(WAIT(&opened), -ENOENT);
	CHECK_EQ(read(fds[0], buf, sizeof(buf)), 3);
}

/* The next call is not made before the one that waits is done. */
static void parked_in_the_middle(void)
{
	struct op first = { 0 }, middle = { 0 }, last = { 0 };
	int fds[2], sv[2];
	char buf[10];

	make_pipe(fds);
	make_pair(sv);
	BEGIN();
	POST(write, &first, fds[1], "one", 3);
	POST(read, &middle, sv[0], buf, sizeof(buf));
	POST(write, &last, fds[1], buf, FLEXSC_RESULT(1));
	END();
	CHECK_EQ(WAIT(&first), 3);
	run_ms(20);
	CHECK_EQ(middle.nr_done + last.nr_done, 0);
	CHECK_EQ(write(sv[1], "middle", 6), 6);
	CHECK_EQ(WAIT(&last), 6);
	CHECK_EQ(middle.ev.ret, 6);
	CHECK_EQ(read(fds[0], buf, sizeof(buf)), 9);
	CHECK(!memcmp(buf, "onemiddle", 9));
}

/* The same with one that needs a thread, and one that waits for it. */
static void running_in_the_middle(void)
{
	struct timespec nap = { .tv_nsec = 30 * 1000000 };
	struct op ops[4] = { 0 };
	uint64_t begin = now_ns();
	int fds[2];
	char buf[10];

	make_pipe(fds);
	BEGIN();
	POST(post, &ops[0], SYS_getpid, 0, 0, 0, 0, 0, 0);
	POST(nanosleep, &ops[1], &nap, NULL);
	POST(write, &ops[2], fds[1], "abc", 3);
	POST(read, &ops[3], fds[0], buf, FLEXSC_RESULT(2));
	END();
	CHECK_EQ(WAIT(&ops[3]), 3);
	CHECK_EQ(ops[0].ev.ret, getpid());
	CHECK_EQ(ops[1].ev.ret, 0);
	CHECK_EQ(ops[2].ev.ret, 3);
	CHECK(now_ns() - begin >= 30 * MS);
}

static void two_results(void)
{
	struct op ops[6] = { 0 };
	char buf[100] = "";
	int fd = make_file("from", 60);

	BEGIN();
	POST(open, &ops[0], "to", O_WRONLY | O_CREAT, 0600);
	POST(pread, &ops[1], fd, buf, sizeof(buf), 20);
	POST(write, &ops[2], FLEXSC_RESULT(0), buf, FLEXSC_RESULT(1));
	POST(pwrite, &ops[3], FLEXSC_RESULT(0), buf, FLEXSC_RESULT(2),
	     FLEXSC_RESULT(1));
	FINALLY();
	POST(fsync, &ops[4], FLEXSC_RESULT(0));
	POST(close, &ops[5], FLEXSC_RESULT(0));
	END();
	CHECK_EQ(WAIT(&ops[5]), 0);
	CHECK_EQ(ops[1].ev.ret, 40);
	CHECK_EQ(ops[2].ev.ret, 40);
	CHECK_EQ(ops[3].ev.ret, 40);
	fd = open("to", O_RDONLY);
	CHECK_EQ(read(fd, buf, sizeof(buf)), 80);
	CHECK(filled((uint8_t *)buf, 20, 40));
	CHECK(filled((uint8_t *)buf + 40, 20, 40));
}

static void too_long(void)
{
	struct op ops[FLEXSC_CHAIN_MAX + 1] = { 0 };

	BEGIN();
	CHECK_EQ(flexsc_chain_begin(), -EBUSY);
	for (int i = 0; i <= FLEXSC_CHAIN_MAX; i++) {
		op_ready(&ops[i]);
		flexsc_post(&ops[i].ev, SYS_getpid, 0, 0, 0, 0, 0, 0);
	}
	CHECK_EQ(flexsc_chain_end(), -E2BIG);
	run_ms(10);
	CHECK_EQ(nr_ops_done, 0);
	CHECK_EQ(flexsc_loop_outstanding(loop), 0);
	BEGIN();
	for (int i = 0; i < FLEXSC_CHAIN_MAX; i++) {
		CHECK(!flexsc_pending(&ops[i].ev));
		ops[i].posted = false;
		POST(post, &ops[i], SYS_getpid, 0, 0, 0, 0, 0, 0);
	}
	END();
	RUN_UNTIL(nr_ops_done, FLEXSC_CHAIN_MAX);
	for (int i = 0; i < FLEXSC_CHAIN_MAX; i++)
		CHECK_EQ(ops[i].ev.ret, getpid());
	/* A chain of nothing, and one of one. */
	BEGIN();
	END();
	BEGIN();
	POST(post, &ops[0], SYS_getpid, 0, 0, 0, 0, 0, 0);
	END();
	CHECK_EQ(WAIT(&ops[0]), getpid());
}

/* What became of the call posted just before is not its business. */
static void chain_of_one(void)
{
	struct op waiting = { 0 }, op = { 0 };
	int sv[2], fds[2];
	struct stat st;
	char buf[10];

	make_pair(sv);
	make_pipe(fds);
	CHECK_EQ(write(fds[1], "abc", 3), 3);
	POST(read, &waiting, sv[0], buf, sizeof(buf));
	BEGIN();
	POST(fstat, &op, sv[0], &st);
	END();
	CHECK_EQ(WAIT(&op), 0);
	CHECK_EQ(flexsc_cancel(&waiting.ev), 0);
	CHECK_EQ(WAIT(&waiting), -ECANCELED);
	POST(read, &waiting, sv[0], buf, sizeof(buf));
	BEGIN();
	op.ev.timeout_ns = 2000 * MS;
	POST(read, &op, fds[0], buf, sizeof(buf));
	END();
	CHECK_EQ(WAIT(&op), 3);
	CHECK_EQ(write(sv[1], "abcd", 4), 4);
	CHECK_EQ(WAIT(&waiting), 4);
}

/* A result that is taken as an unsigned parameter. */
static void unsigned_arguments(void)
{
	struct op dup = { 0 }, close = { 0 };
	int fds[2];

	make_pipe(fds);
	BEGIN();
	POST(dup, &dup, fds[0]);
	POST(close_range, &close, FLEXSC_RESULT(0), FLEXSC_RESULT(0), 0);
	END();
	CHECK(WAIT(&dup) >= 0);
	CHECK_EQ(WAIT(&close), 0);
	CHECK_EQ(fcntl((int)dup.ev.ret, F_GETFD), -1);
	CHECK(fcntl(fds[0], F_GETFD) >= 0);
	CHECK(fcntl(fds[1], F_GETFD) >= 0);
}

static void busy_event(void)
{
	struct op op = { 0 }, free_op = { 0 };
	char buf[10];
	int sv[2];

	make_pair(sv);
	POST(read, &op, sv[0], buf, sizeof(buf));
	BEGIN();
	flexsc_post(op_ready(&free_op), SYS_getpid, 0, 0, 0, 0, 0, 0);
	CHECK_EQ(flexsc_post(&op.ev, SYS_getpid, 0, 0, 0, 0, 0, 0), -EBUSY);
	CHECK_EQ(flexsc_chain_end(), -EBUSY);
	run_ms(5);
	CHECK_EQ(free_op.nr_done, 0);
	CHECK(!flexsc_pending(&free_op.ev));
	CHECK_EQ(flexsc_loop_outstanding(loop), 1);
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	CHECK_EQ(WAIT(&op), 3);
}

static void many_chains(void)
{
	enum {
		NR = 1000
	};
	struct reading *rs = calloc(NR, sizeof(*rs));
	char path[NR][12];

	for (int i = 0; i < NR; i++) {
		snprintf(path[i], sizeof(path[i]), "file%d", i % 50);
		if (i < 50)
			close(make_file(path[i], (size_t)i + 1));
	}
	for (int i = 0; i < NR; i++)
		post_reading(&rs[i], i % 10 == 9 ? "absent" : path[i],
			     O_RDONLY);
	CHECK_EQ(flexsc_loop_outstanding(loop), 4 * NR);
	RUN_UNTIL(nr_ops_done, 4 * NR);
	for (int i = 0; i < NR; i++) {
		if (i % 10 == 9) {
			CHECK_EQ(rs[i].open.ev.ret, -ENOENT);
			CHECK_EQ(rs[i].close.ev.ret, -ECANCELED);
			continue;
		}
		CHECK_EQ(rs[i].st.st_size, i % 50 + 1);
		CHECK_EQ(rs[i].read.ev.ret, i % 50 + 1);
		CHECK_EQ(rs[i].close.ev.ret, 0);
	}
	free(rs);
}

/* What a file server does, on many connections at once, numbers reused. */
enum {
	NR_SERVED = 64,
	NR_ANSWERS = 150,
	FILE_SIZE = 1024
};

struct served {
	struct flexsc_event opened, stated, header, copied;
	struct stat st;
	int sv[2], nr_answers;
};

static unsigned long nr_answered;

static void served_next(struct served *s);

static void answer_sent(struct flexsc_event *ev)
{
	struct served *s = ev->data;
	uint8_t buf[FILE_SIZE + 10];

	CHECK_EQ(s->header.ret, 4);
	CHECK_EQ(ev->ret, FILE_SIZE);
	CHECK_EQ(recv(s->sv[1], buf, sizeof(buf), MSG_DONTWAIT), FILE_SIZE + 4);
	CHECK(filled(buf + 4, 0, FILE_SIZE));
	nr_answered++;
	if (++s->nr_answers < NR_ANSWERS)
		served_next(s);
}

static void answer_stated(struct flexsc_event *ev)
{
	struct served *s = ev->data;
	int fd = (int)s->opened.ret;

	CHECK_EQ(ev->ret, 0);
	CHECK_EQ(s->st.st_size, FILE_SIZE);
	BEGIN();
	CHECK_EQ(flexsc_send(&s->header, s->sv[0], "head", 4, MSG_MORE), 0);
	CHECK_EQ(flexsc_sendfile(&s->copied, s->sv[0], fd, NULL, FILE_SIZE), 0);
	FINALLY();
	CHECK_EQ(flexsc_close(NULL, fd), 0);
	END();
}

static void served_next(struct served *s)
{
	s->stated.handler = answer_stated;
	s->copied.handler = answer_sent;
	s->stated.data = s->copied.data = s;
	BEGIN();
	CHECK_EQ(flexsc_open(&s->opened, "file", O_RDONLY | O_CLOEXEC, 0), 0);
	CHECK_EQ(flexsc_fstat(&s->stated, FLEXSC_RESULT(0), &s->st), 0);
	END();
}

static void serving(void)
{
	static struct served all[NR_SERVED];

	close(make_file("file", FILE_SIZE));
	for (int i = 0; i < NR_SERVED; i++) {
		make_pair(all[i].sv);
		served_next(&all[i]);
	}
	RUN_UNTIL(nr_answered, NR_SERVED * NR_ANSWERS);
	while (flexsc_loop_outstanding(loop))
		run_ms(1);
}

static void chains_at_limit(void)
{
	enum {
		NR = 500
	};
	struct reading *rs = calloc(NR, sizeof(*rs));
	int nr_refused = 0, ret;

	loop = new_loop(64, 2);
	close(make_file("file", 33));
	for (int i = 0; i < NR; i++) {
		BEGIN();
		POST(open, &rs[i].open, "file", O_RDONLY, 0);
		POST(read, &rs[i].read, FLEXSC_RESULT(0), rs[i].buf, 100);
		POST(lseek, &rs[i].fstat, FLEXSC_RESULT(0), 0, SEEK_CUR);
		FINALLY();
		POST(close, &rs[i].close, FLEXSC_RESULT(0));
		ret = flexsc_chain_end();
		if (!ret)
			continue;
		/* Chains do not queue: the same once more, a little later. */
		CHECK_EQ(ret, -EAGAIN);
		CHECK(!flexsc_pending(&rs[i].open.ev));
		memset(&rs[i], 0, sizeof(rs[i]));
		nr_refused++;
		i--;
		run_ms(1);
	}
	CHECK(nr_refused < NR * 10);
	RUN_UNTIL(nr_ops_done, 4 * NR);
	for (int i = 0; i < NR; i++) {
		CHECK_EQ(rs[i].read.ev.ret, 33);
		CHECK_EQ(rs[i].fstat.ev.ret, 33);
		CHECK_EQ(rs[i].close.ev.ret, 0);
	}
	end_loop(loop);
	loop = NULL;
	free(rs);
}

/* Cancelling the call that waits, one after it, and one before it. */
static void cancelled(void)
{
	int sv[2], fds[2];
	char buf[10];

	make_pair(sv);
	make_pipe(fds);
	for (int which = 0; which < 4; which++) {
		struct op ops[4] = { 0 };
		int ret;

		BEGIN();
		POST(post, &ops[0], SYS_getpid, 0, 0, 0, 0, 0, 0);
		POST(read, &ops[1], sv[0], buf, sizeof(buf));
		POST(write, &ops[2], fds[1], "abc", 3);
		FINALLY();
		POST(write, &ops[3], fds[1], "de", 2);
		END();
		run_ms(10);
		ret = flexsc_cancel(&ops[which].ev);
		CHECK_EQ(ret, which == 0 ? -ENOENT : 0);
		if (which != 1) {
			run_ms(5);
			CHECK_EQ(write(sv[1], "abc", 3), 3);
		}
		CHECK_EQ(WAIT(&ops[3]), which == 3 ? -ECANCELED : 2);
		CHECK_EQ(ops[0].ev.ret, getpid());
		CHECK_EQ(ops[1].ev.ret, which == 1 ? -ECANCELED : 3);
		CHECK_EQ(ops[2].ev.ret,
			 which == 1 || which == 2 ? -ECANCELED : 3);
		CHECK_EQ(read(fds[0], buf, sizeof(buf)),
			 (ops[2].ev.ret > 0 ? 3 : 0) +
				 (ops[3].ev.ret > 0 ? 2 : 0));
		if (which == 2 || which == 3)
			CHECK_EQ(flexsc_loop_outstanding(loop), 0);
	}
}

static void timed_out(void)
{
	struct op ops[3] = { 0 };
	char buf[10];
	int sv[2];

	make_pair(sv);
	ops[1].ev.timeout_ns = 30 * MS;
	BEGIN();
	POST(post, &ops[0], SYS_getpid, 0, 0, 0, 0, 0, 0);
	POST(read, &ops[1], sv[0], buf, sizeof(buf));
	POST(write, &ops[2], sv[0], "abc", 3);
	END();
	CHECK_EQ(WAIT(&ops[2]), -ECANCELED);
	CHECK_EQ(ops[0].ev.ret, getpid());
	CHECK_EQ(ops[1].ev.ret, -ETIMEDOUT);
	CHECK_EQ(recv(sv[1], buf, sizeof(buf), MSG_DONTWAIT), -1);
}

static void bad_calls(void)
{
	static const unsigned int numbers[] = { 511, 400, SYS_fork,
						SYS_exit_group };
	struct op ops[3] = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		BEGIN();
		POST(post, &ops[0], SYS_getpid, 0, 0, 0, 0, 0, 0);
		POST(post, &ops[1], numbers[i], 0, 0, 0, 0, 0, 0);
		POST(post, &ops[2], SYS_getpid, 0, 0, 0, 0, 0, 0);
		END();
		CHECK_EQ(WAIT(&ops[2]), -ECANCELED);
		CHECK_EQ(ops[0].ev.ret, getpid());
		CHECK_EQ(ops[1].ev.ret, i < 2 ? -ENOSYS : -EOPNOTSUPP);
	}
	/* A result outside of a chain is a bad number like any other. */
	CHECK_EQ(CALL(read, FLEXSC_RESULT(0), NULL, 1), -EBADF);
	/* One of a later call, or of itself: an error, not a guess. */
	for (int i = 0; i < 2; i++) {
		int ret;

		BEGIN();
		flexsc_fsync(op_ready(&ops[0]), FLEXSC_RESULT(i));
		flexsc_post(op_ready(&ops[1]), SYS_getpid, 0, 0, 0, 0, 0, 0);
		ret = flexsc_chain_end();
		if (!ret) {
			CHECK_IN(WAIT(&ops[0]), -4095, -1);
			WAIT(&ops[1]);
		}
		ops[0].posted = ops[1].posted = false;
	}
	CHECK_EQ(flexsc_loop_outstanding(loop), 0);
}

static void without_events(void)
{
	struct op last = { 0 };
	char buf[100];

	close(make_file("file", 50));
	BEGIN();
	CHECK_EQ(flexsc_open(NULL, "file", O_RDONLY, 0), 0);
	POST(read, &last, FLEXSC_RESULT(0), buf, sizeof(buf));
	FINALLY();
	CHECK_EQ(flexsc_close(NULL, FLEXSC_RESULT(0)), 0);
	END();
	CHECK_EQ(WAIT(&last), 50);
	while (flexsc_loop_outstanding(loop))
		run_ms(1);
}

static unsigned int order[64], nr_order;

static void in_order(struct flexsc_event *ev)
{
	CHECK(nr_order < ARRAY_SIZE(order));
	order[nr_order++] = (unsigned int)(uintptr_t)ev->data;
}

/* Threads, parking and at-once calls mixed: the handlers come in order. */
static void order_of_handlers(void)
{
	struct flexsc_event evs[FLEXSC_CHAIN_MAX] = { 0 };
	struct timespec nap = { .tv_nsec = 1000000 };
	int fds[2];
	char buf[10];

	make_pipe(fds);
	for (int round = 0; round < 10; round++) {
		nr_order = 0;
		BEGIN();
		for (uintptr_t i = 0; i < FLEXSC_CHAIN_MAX; i++) {
			evs[i].handler = in_order;
			evs[i].data = (void *)i;
			if (i % 4 == 0)
				flexsc_nanosleep(&evs[i], &nap, NULL);
			else if (i % 4 == 1)
				flexsc_read(&evs[i], fds[0], buf, 1);
			else
				flexsc_post(&evs[i], SYS_getppid, 0, 0, 0, 0, 0,
					    0);
		}
		END();
		for (int i = 0; i < FLEXSC_CHAIN_MAX / 4; i++) {
			run_ms((unsigned int)round % 3);
			CHECK_EQ(write(fds[1], "a", 1), 1);
		}
		while (flexsc_loop_outstanding(loop))
			run_ms(1);
		CHECK_EQ(nr_order, FLEXSC_CHAIN_MAX);
		for (unsigned int i = 0; i < FLEXSC_CHAIN_MAX; i++) {
			CHECK_EQ(order[i], i);
			CHECK(evs[i].ret >= 0);
		}
	}
}

/* A chain whose first call fails: the handlers of the rest in order, too. */
static void order_of_cancelled(void)
{
	struct flexsc_event evs[8] = { 0 };

	BEGIN();
	for (uintptr_t i = 0; i < 8; i++) {
		evs[i].handler = in_order;
		evs[i].data = (void *)i;
		flexsc_fsync(&evs[i], -1);
		if (i == 4)
			FINALLY();
	}
	END();
	while (flexsc_loop_outstanding(loop))
		run_ms(1);
	CHECK_EQ(nr_order, 8);
	for (unsigned int i = 0; i < 8; i++) {
		CHECK_EQ(order[i], i);
		CHECK_EQ(evs[i].ret, i > 0 && i < 5 ? -ECANCELED : -EBADF);
	}
}

static const struct test tests[] = {
	{ "file", file, 0 },
	{ "open_fails", open_fails, 0 },
	{ "read_fails", read_fails, 0 },
	{ "finally_without_argument", finally_without_argument, 0 },
	{ "parked_in_the_middle", parked_in_the_middle, 0 },
	{ "running_in_the_middle", running_in_the_middle, 0 },
	{ "two_results", two_results, 0 },
	{ "too_long", too_long, 0 },
	{ "chain_of_one", chain_of_one, 0 },
	{ "unsigned_arguments", unsigned_arguments, 0 },
	{ "busy_event", busy_event, 0 },
	{ "many_chains", many_chains, 0 },
	{ "serving", serving, 0 },
	{ "chains_at_limit", chains_at_limit, TEST_NO_LOOP },
	{ "cancelled", cancelled, 0 },
	{ "timed_out", timed_out, 0 },
	{ "bad_calls", bad_calls, 0 },
	{ "without_events", without_events, 0 },
	{ "order_of_handlers", order_of_handlers, 0 },
	{ "order_of_cancelled", order_of_cancelled, 0 },
};

int main(int argc, char **argv)
{
	return run_group(argc, argv, tests, ARRAY_SIZE(tests));
}
