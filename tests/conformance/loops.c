/* SPDX-License-Identifier: MIT */
/*
 * Loops as such: several of them, messages between them, stopping, handing
 * over, embedding in another loop, ending with calls outstanding, costing
 * nothing when idle, and living with credential changes.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <flexsc/counters.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

/* A ring of loops: each passes on what it reads to the next one. */
enum {
	NR_LOOPS = 4,
	NR_LAPS = 2000
};

struct member {
	struct flexsc_event in, out;
	int in_fd, out_fd;
	uint32_t value;
};

static void member_read(struct flexsc_event *ev)
{
	struct member *m = ev->data;

	if (ev->ret == 0 || m->value > NR_LAPS * NR_LOOPS) {
		CHECK_EQ(flexsc_close(NULL, m->out_fd), 0);
		return;
	}
	CHECK_EQ(ev->ret, 4);
	m->value++;
	CHECK_EQ(flexsc_write(&m->out, m->out_fd, &m->value, 4), 0);
}

static void member_wrote(struct flexsc_event *ev)
{
	struct member *m = ev->data;

	CHECK_EQ(ev->ret, 4);
	CHECK_EQ(flexsc_read(&m->in, m->in_fd, &m->value, 4), 0);
}

static void *member_thread(void *arg)
{
	struct member *m = arg;
	struct flexsc_loop *own = new_loop(0, 0);

	m->in = (struct flexsc_event){ .handler = member_read, .data = m };
	m->out = (struct flexsc_event){ .handler = member_wrote, .data = m };
	CHECK_EQ(flexsc_read(&m->in, m->in_fd, &m->value, 4), 0);
	CHECK_EQ(flexsc_loop_run(own), 0);
	end_loop(own);
	return NULL;
}

static void several_threads(void)
{
	struct member members[NR_LOOPS] = { 0 };
	pthread_t threads[NR_LOOPS];
	uint32_t one = 1;

	for (int i = 0; i < NR_LOOPS; i++) {
		int fds[2];

		make_pipe(fds);
		members[i].in_fd = fds[0];
		members[(i + 1) % NR_LOOPS].out_fd = fds[1];
	}
	CHECK_EQ(write(members[1].out_fd, &one, 4), 4);
	for (int i = 0; i < NR_LOOPS; i++)
		threads[i] = thread_start(member_thread, &members[i]);
	for (int i = 0; i < NR_LOOPS; i++)
		thread_join(threads[i]);
}

/* Messages from other threads */

enum {
	NR_SENDERS = 4,
	NR_SENT = 5000
};

static atomic_uint nr_received;
static pthread_t loop_thread;

static void received(struct flexsc_event *ev)
{
	CHECK(pthread_equal(pthread_self(), loop_thread));
	CHECK_EQ(ev->ret, 0);
	*(int *)ev->data += 1;
	/* Its sender may give it back from here on. */
	if (++nr_received == NR_SENDERS * NR_SENT)
		flexsc_loop_stop(loop);
}

static void *sender(void *arg)
{
	struct flexsc_event *evs = calloc(NR_SENT, sizeof(*evs));
	int *counts = arg;

	for (int i = 0; i < NR_SENT; i++) {
		evs[i].handler = received;
		evs[i].data = &counts[i];
		CHECK_EQ(flexsc_loop_send(loop, &evs[i]), 0);
		if (i % 500 == 0)
			sleep_ms(1); /* let the loop fall asleep */
	}
	while (nr_received < NR_SENDERS * NR_SENT)
		sleep_ms(1);
	free(evs);
	return NULL;
}

static void sends(void)
{
	static int counts[NR_SENDERS][NR_SENT];
	pthread_t threads[NR_SENDERS];
	struct op idle = { 0 };
	char buf[10];
	int sv[2];

	make_pair(sv);
	loop_thread = pthread_self();
	POST(read, &idle, sv[0], buf, sizeof(buf));
	for (int i = 0; i < NR_SENDERS; i++)
		threads[i] = thread_start(sender, counts[i]);
	CHECK_EQ(flexsc_loop_run(loop), 1);
	for (int i = 0; i < NR_SENDERS; i++)
		thread_join(threads[i]);
	for (int i = 0; i < NR_SENDERS; i++) {
		for (int j = 0; j < NR_SENT; j++)
			CHECK_EQ(counts[i][j], 1);
	}
	CHECK_EQ(flexsc_loop_shutdown(loop), 0);
	CHECK_EQ(idle.ev.ret, -ECANCELED);
	/* From the loop's own thread, too. */
	CHECK_EQ(flexsc_loop_send(loop, op_ready(&idle)), 0);
	CHECK_EQ(WAIT(&idle), 0);
}

static void *stop_later(void *arg)
{
	sleep_ms(50);
	flexsc_loop_stop(arg);
	return NULL;
}

static void stop_here(struct flexsc_event *ev)
{
	flexsc_loop_stop(ev->data);
}

static void stopping(void)
{
	struct flexsc_event ev = { .handler = stop_here, .data = loop };
	struct op op = { 0 };
	pthread_t thread;
	char buf[10];
	int sv[2];

	CHECK_EQ(flexsc_loop_run(loop), 0); /* nothing to do */
	make_pair(sv);
	POST(read, &op, sv[0], buf, sizeof(buf));
	thread = thread_start(stop_later, loop);
	CHECK_EQ(flexsc_loop_run(loop), 1);
	thread_join(thread);
	CHECK_EQ(flexsc_post(&ev, SYS_getpid, 0, 0, 0, 0, 0, 0), 0);
	CHECK_EQ(flexsc_loop_run(loop), 1);
	CHECK_EQ(op.nr_done, 0);
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(op.ev.ret, 3);
	/* What flexsc_loop_poll() returns and how long it waits. */
	CHECK_EQ(flexsc_loop_poll(loop, 0), 0);
	CHECK_EQ(flexsc_loop_poll(loop, 20 * (int64_t)MS), 0);
}

static bool readable(int fd, int ms)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	return poll(&ready, 1, ms) == 1;
}

static void *send_later(void *arg)
{
	sleep_ms(30);
	CHECK_EQ(flexsc_loop_send(loop, arg), 0);
	return NULL;
}

/* Wait as an outer loop would: only while the descriptor says so. */
static void outer_wait(int fd, struct op *op)
{
	uint64_t limit = now_ns() + 3000 * slowness() * MS;

	while (!op->nr_done) {
		if (!readable(fd, 1000))
			FAIL("the loop's descriptor does not become readable");
		CHECK(flexsc_loop_poll(loop, 0) >= 0);
		CHECK(now_ns() < limit);
	}
}

/* While nothing happens it may look at something now and then, not spin. */
static void outer_quiet(int fd)
{
	uint64_t until = now_ns() + 150 * MS;
	unsigned int nr = 0;

	while (now_ns() < until) {
		if (!readable(fd, 20))
			continue;
		nr++;
		flexsc_loop_poll(loop, 0);
	}
	CHECK_IN(nr, 0, 10);
}

static void embedded(void)
{
	int fd = flexsc_loop_fd(loop), sv[2];
	struct timespec nap = { .tv_nsec = 20 * 1000000 };
	struct op op = { 0 };
	pthread_t thread;
	char buf[10];

	CHECK(fd >= 0);
	CHECK_EQ(flexsc_loop_fd(loop), fd);
	make_pair(sv);
	outer_quiet(fd);
	for (int round = 0; round < 5; round++) {
		POST(post, &op, SYS_getpid, 0, 0, 0, 0, 0, 0);
		outer_wait(fd, &op);
		POST(read, &op, sv[0], buf, sizeof(buf));
		outer_quiet(fd);
		CHECK_EQ(write(sv[1], "abc", 3), 3);
		outer_wait(fd, &op);
		CHECK_EQ(op.ev.ret, 3);
		CHECK_EQ(write(sv[1], "abc", 3), 3);
		POST(read, &op, sv[0], buf, sizeof(buf));
		outer_wait(fd, &op);
		POST(timer, &op, 30 * MS);
		outer_wait(fd, &op);
		POST(nanosleep, &op, &nap, NULL);
		outer_wait(fd, &op);
		op.ev.timeout_ns = 20 * MS;
		POST(read, &op, sv[0], buf, sizeof(buf));
		outer_wait(fd, &op);
		op.ev.timeout_ns = 0;
		POST(read, &op, sv[0], buf, sizeof(buf));
		outer_quiet(fd);
		CHECK_EQ(flexsc_cancel(&op.ev), 0);
		outer_wait(fd, &op);
		thread = thread_start(send_later, op_ready(&op));
		outer_wait(fd, &op);
		thread_join(thread);
		outer_quiet(fd);
	}
}

/* Inside epoll, many calls between two rounds, and nothing is missed. */
static void embedded_in_epoll(void)
{
	enum {
		NR = 100,
		TOTAL = 20000
	};
	int fd = flexsc_loop_fd(loop), set = epoll_create1(0), sv[NR][2];
	struct epoll_event event = { .events = EPOLLIN };
	static struct op ops[NR];
	unsigned long nr_written = 0;
	char buf[NR];

	CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
	for (int i = 0; i < NR; i++) {
		make_pair(sv[i]);
		POST(read, &ops[i], sv[i][0], &buf[i], 1);
	}
	srand(4);
	while (nr_ops_done < TOTAL || nr_ops_done < nr_written) {
		for (int i = 0; i < NR; i++) {
			if (ops[i].nr_done)
				POST(read, &ops[i], sv[i][0], &buf[i], 1);
		}
		/* More than is read: not to wait for room, for ever. */
		for (int i = 0; i < 10 && nr_ops_done < TOTAL; i++)
			nr_written += send(sv[rand() % NR][1], "a", 1,
					   MSG_DONTWAIT) == 1;
		if (epoll_wait(set, &event, 1, 2000) != 1)
			FAIL("missed something after %lu", nr_ops_done);
		CHECK(flexsc_loop_poll(loop, 0) >= 0);
	}
	CHECK_EQ(flexsc_loop_shutdown(loop), 0);
}

static uint64_t cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

static void *wake_later(void *arg)
{
	sleep_ms(2300);
	CHECK_EQ(write(*(int *)arg, "abc", 3), 3);
	return NULL;
}

/* Waiting costs nothing, right after much work too. */
static void idle(void)
{
	static struct op ops[100];
	static char buf[100];
	struct timespec nap = { .tv_nsec = 1000000 };
	pthread_t thread;
	uint64_t used;
	int sv[2];

	make_pair(sv);
	for (int i = 0; i < 100; i++)
		POST(read, &ops[i], sv[0], &buf[i], 1);
	for (int i = 0; i < 1000; i++)
		CALL(post, SYS_getpid, 0, 0, 0, 0, 0, 0);
	for (int i = 0; i < 50; i++)
		CALL(nanosleep, &nap, NULL);
	run_ms(200);
	thread = thread_start(wake_later, &sv[1]);
	sleep_ms(5);
	used = cpu_ns();
	flexsc_loop_poll(loop, 2000 * (int64_t)MS);
	used = cpu_ns() - used;
	if (used > 2 * MS * slowness())
		FAIL("2 s of waiting took %llu us of processor time",
		     (unsigned long long)used / 1000);
	thread_join(thread);
	CHECK_EQ(flexsc_loop_shutdown(loop), 0);
}

static void shutting_down(void)
{
	static struct op ops[100], timers[20], naps[20], sent, later;
	struct timespec nap = { .tv_sec = 100 };
	bool sync = !strcmp(engine, "sync");
	unsigned long nr = 120;
	char buf[100];
	int sv[2];

	make_pair(sv);
	loop = new_loop(64, 2); /* some are queued */
	for (int i = 0; i < 100; i++)
		POST(read, &ops[i], sv[0], &buf[i], 1);
	for (int i = 0; i < 20; i++)
		POST(timer, &timers[i], 100000 * MS);
	for (int i = 0; i < 20 && !sync; i++, nr++)
		POST(nanosleep, &naps[i], &nap, NULL);
	CHECK_EQ(flexsc_loop_shutdown(loop), 0);
	CHECK_EQ(nr_ops_done, nr);
	CHECK_EQ(flexsc_loop_outstanding(loop), 0);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(ops[i].ev.ret, -ECANCELED);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(timers[i].ev.ret, -ECANCELED);
		CHECK_EQ(naps[i].ev.ret, sync ? 0 : -ECANCELED);
	}
	/* What another thread sent is outstanding as well. */
	CHECK_EQ(flexsc_loop_send(loop, op_ready(&sent)), 0);
	CHECK_EQ(flexsc_loop_free(loop), -EBUSY);
	CHECK_EQ(flexsc_loop_shutdown(loop), 0);
	CHECK_EQ(nr_ops_done, nr + 1);
	/* It can go on afterwards. */
	POST(post, &later, SYS_getpid, 0, 0, 0, 0, 0, 0);
	CHECK_EQ(WAIT(&later), getpid());
	end_loop(loop);
	loop = NULL;
}

/* glibc sends a signal to every thread and waits for all of them. */
static void credentials(void)
{
	static struct op naps[8], in;
	struct timespec nap = { .tv_nsec = 300 * 1000000 };
	bool sync = !strcmp(engine, "sync");
	uint64_t begin;
	char buf[10];
	int sv[2];

	make_pair(sv);
	POST(read, &in, sv[0], buf, sizeof(buf));
	for (int i = 0; i < 8 && !sync; i++)
		POST(nanosleep, &naps[i], &nap, NULL);
	run_ms(20);
	begin = now_ns();
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(setgid(getgid()), 0);
		CHECK_EQ(setuid(getuid()), 0);
	}
	CHECK_IN(now_ns() - begin, 0, 2000 * slowness() * MS);
	for (int i = 0; i < 8 && !sync; i++)
		CHECK_EQ(WAIT(&naps[i]), 0);
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	CHECK_EQ(WAIT(&in), 3);
	CHECK_EQ(CALL(post, SYS_getuid, 0, 0, 0, 0, 0, 0), getuid());
}

/* Loops come and go, and leave nothing behind. */
static void come_and_go(void)
{
	struct timespec nap = { .tv_nsec = 1000 };
	unsigned int files = 0, tasks = 0, nr = 1;

	for (int i = 0; i < 100; i++) {
		int sv[2];
		char buf[10];

		loop = new_loop(0, 0);
		make_pair(sv);
		CHECK_EQ(write(sv[1], "abc", 3), 3);
		CHECK_EQ(CALL(read, sv[0], buf, sizeof(buf)), 3);
		CHECK_EQ(CALL(nanosleep, &nap, NULL), 0);
		CHECK_EQ(CALL(close, sv[0]), 0);
		CHECK_EQ(CALL(close, sv[1]), 0);
		end_loop(loop);
		loop = NULL;
		if (i == 9) {
			files = nr_open();
			tasks = nr_tasks();
		}
	}
	CHECK_EQ(nr_open(), files);
	/* A joined thread may stay in /proc for a moment, then as now. */
	while (nr_tasks() > tasks && nr++ < 100)
		sleep_ms(10);
	CHECK_IN(nr_tasks(), 1, tasks);
}

static struct op handed;

static void *take_over(void *arg)
{
	CHECK(flexsc_loop_current() == NULL);
	flexsc_loop_use(arg);
	CHECK(flexsc_loop_current() == arg);
	CHECK_EQ(CALL(post, SYS_gettid, 0, 0, 0, 0, 0, 0), gettid());
	CHECK_EQ(WAIT(&handed), 3);
	flexsc_loop_use(NULL);
	return NULL;
}

static void handed_over(void)
{
	char buf[10];
	int sv[2];

	make_pair(sv);
	POST(read, &handed, sv[0], buf, sizeof(buf));
	run_ms(5);
	flexsc_loop_use(NULL);
	CHECK(flexsc_loop_current() == NULL);
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	thread_join(thread_start(take_over, loop));
	flexsc_loop_use(loop);
	CHECK_EQ(CALL(post, SYS_gettid, 0, 0, 0, 0, 0, 0), gettid());
}

static void two_in_one_thread(void)
{
	struct flexsc_loop *first = loop, *second = new_loop(0, 0);
	struct op in_first = { 0 }, in_second = { 0 };
	char buf[2][10];
	int sv[2];

	make_pair(sv);
	POST(read, &in_second, sv[0], buf[0], 10);
	flexsc_loop_use(first);
	POST(read, &in_first, sv[1], buf[1], 10);
	CHECK_EQ(flexsc_loop_outstanding(first), 1);
	CHECK_EQ(flexsc_loop_outstanding(second), 1);
	CHECK_EQ(write(sv[0], "abc", 3), 3);
	CHECK_EQ(write(sv[1], "abcd", 4), 4);
	CHECK_EQ(flexsc_loop_run(first), 0);
	CHECK_EQ(in_first.ev.ret, 3);
	CHECK_EQ(in_second.nr_done, 0);
	CHECK_EQ(flexsc_loop_run(second), 0);
	CHECK_EQ(in_second.ev.ret, 4);
	/* A cancel goes to the loop of the call, whichever is current. */
	POST(read, &in_first, sv[1], buf[1], 10);
	flexsc_loop_use(second);
	CHECK_EQ(flexsc_cancel(&in_first.ev), 0);
	CHECK_EQ(flexsc_loop_run(first), 0);
	CHECK_EQ(in_first.ev.ret, -ECANCELED);
	CHECK_EQ(flexsc_loop_free(second), 0);
	flexsc_loop_use(first);
}

/* The counters of the first loop, found as an observer finds them. */
static const struct flexsc_counters *find_counters(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long begin = 0;
	char line[256];

	CHECK(maps != NULL);
	while (!begin && fgets(line, sizeof(line), maps))
		if (strstr(line, "/memfd:flexsc-counters"))
			begin = strtoul(line, NULL, 16);
	fclose(maps);
	return (const struct flexsc_counters *)begin;
}

static void counted(void)
{
	const struct flexsc_counters *c = find_counters();
	struct timespec nap = { .tv_nsec = 1 };
	struct op op = { 0 };
	int sv[2], in[2], out[2];
	uint64_t before;
	char byte;

	if (!c)
		skip("no memfd for the counters here");
	CHECK_EQ(c->magic, FLEXSC_COUNTERS_MAGIC);
	CHECK_EQ(c->version, FLEXSC_COUNTERS_VERSION);
	CHECK_EQ(c->size, sizeof(*c));
	CHECK_EQ(c->pid, getpid());
	CHECK(!strcmp(c->engine, engine));
	before = c->completed;
	make_pair(sv);
	for (int i = 0; i < 10; i++) {
		CHECK_EQ(CALL(nanosleep, &nap, NULL), 0);
		CHECK_EQ(CALL(write, sv[0], "x", 1), 1);
		CHECK_EQ(CALL(read, sv[1], &byte, 1), 1);
		CHECK_EQ(CALL(fsync, sv[0]), -EINVAL);
	}
	CHECK_EQ(c->completed - before, 40);
	CHECK_EQ(c->calls[SYS_fsync], 10);
	CHECK_EQ(c->ring_calls, 0);
	if (strcmp(engine, "uring") != 0)
		return;
	/* This one goes to the ring, for it may wait for ever. */
	make_pipe(in);
	make_pipe(out);
	POST(splice, &op, in[0], NULL, out[1], NULL, 1, 0);
	run_ms(5);
	CHECK_EQ(write(in[1], "x", 1), 1);
	CHECK_EQ(WAIT(&op), 1);
	CHECK(c->ring_calls > 0);
}

static unsigned int nr_ticks;

static void tick(struct flexsc_event *ev)
{
	if (++nr_ticks < 5)
		CHECK_EQ(flexsc_timer(ev, MS), 0);
}

/* The interface of the paper's figure 4. */
static void one_loop(void)
{
	struct flexsc_event ev = { .handler = tick };

	CHECK_EQ(flexsc_init(), 0);
	CHECK(flexsc_loop_current() != NULL);
	CHECK(!strcmp(flexsc_loop_engine(flexsc_loop_current()), engine));
	CHECK_EQ(flexsc_timer(&ev, MS), 0);
	CHECK_EQ(flexsc_main_loop(), 0);
	CHECK_EQ(nr_ticks, 5);
	CHECK_EQ(flexsc_fini(), 0);
	CHECK(flexsc_loop_current() == NULL);
	CHECK_EQ(flexsc_init(), 0);
	CHECK_EQ(flexsc_fini(), 0);
	CHECK(strlen(flexsc_version()) >= 5);
}

static const struct test tests[] = {
	{ "several_threads", several_threads, TEST_NO_LOOP },
	{ "sends", sends, 0 },
	{ "stopping", stopping, 0 },
	{ "embedded", embedded, 0 },
	{ "embedded_in_epoll", embedded_in_epoll, 0 },
	{ "idle", idle, 0 },
	{ "shutting_down", shutting_down, TEST_NO_LOOP },
	{ "credentials", credentials, 0 },
	{ "come_and_go", come_and_go, TEST_NO_LOOP | TEST_SLOW },
	{ "handed_over", handed_over, 0 },
	{ "two_in_one_thread", two_in_one_thread, 0 },
	{ "counted", counted, 0 },
	{ "one_loop", one_loop, TEST_NO_LOOP },
};

int main(int argc, char **argv)
{
	return run_group(argc, argv, tests, ARRAY_SIZE(tests));
}
