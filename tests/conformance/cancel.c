/* SPDX-License-Identifier: MIT */
/*
 * Cancelling calls wherever they are, time limits, and timers: the handler is
 * called exactly once in any case, a call that had an effect tells of it, and
 * no data, connection or wake-up is lost.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void parked(void)
{
	struct op op = { 0 };
	char buf[10];
	int sv[2];

	make_pair(sv);
	CHECK_EQ(flexsc_cancel(&op.ev), -ENOENT);
	for (int round = 0; round < 20; round++) {
		POST(read, &op, sv[0], buf, sizeof(buf));
		if (round & 1)
			run_ms(2);
		CHECK_EQ(flexsc_cancel(&op.ev), 0);
		CHECK_EQ(flexsc_cancel(&op.ev), -EALREADY);
		CHECK_EQ(flexsc_read(&op.ev, sv[0], buf, 1), -EBUSY);
		CHECK_EQ(WAIT(&op), -ECANCELED);
		CHECK_EQ(flexsc_cancel(&op.ev), -ENOENT);
		/* What comes later is for the next one. */
		CHECK_EQ(write(sv[1], "abc", 3), 3);
		CHECK_EQ(CALL(read, sv[0], buf, sizeof(buf)), 3);
	}
	CHECK_EQ(flexsc_loop_outstanding(loop), 0);
}

static void every_parked_kind(void)
{
	struct op ops[6] = { 0 };
	static char buf[100];
	int sv[2], fds[2];
	uint16_t port;

	make_pair(sv);
	make_pipe(fds);
	fill_up(sv[1]);
	fill_up(fds[1]);
	POST(accept, &ops[0], make_listener(&port), NULL, NULL);
	POST(recv, &ops[1], sv[1], buf, 10, 0);
	POST(write, &ops[2], sv[1], buf, sizeof(buf));
	POST(write, &ops[3], fds[1], buf, sizeof(buf));
	POST(recvmsg, &ops[4], sv[1], (&(struct msghdr){ 0 }), 0);
	POST(timer, &ops[5], 10000 * MS);
	run_ms(20);
	for (int i = 0; i < 6; i++) {
		CHECK_EQ(ops[i].nr_done, 0);
		CHECK_EQ(flexsc_cancel(&ops[i].ev), 0);
	}
	for (int i = 0; i < 6; i++)
		CHECK_EQ(WAIT(&ops[i]), -ECANCELED);
}

static void queued(void)
{
	static struct op ops[65];
	char buf[65];
	int sv[2];

	loop = new_loop(64, 0);
	make_pair(sv);
	for (int i = 0; i < 65; i++)
		POST(read, &ops[i], sv[0], &buf[i], 1);
	CHECK_EQ(flexsc_cancel(&ops[64].ev), 0);
	CHECK_EQ(flexsc_cancel(&ops[64].ev), -EALREADY);
	CHECK_EQ(WAIT(&ops[64]), -ECANCELED);
	CHECK_EQ(nr_ops_done, 1);
	/* Cancelling one with an entry lets the queue move. */
	POST(read, &ops[64], sv[0], &buf[64], 1);
	CHECK_EQ(flexsc_cancel(&ops[0].ev), 0);
	CHECK_EQ(WAIT(&ops[0]), -ECANCELED);
	for (int i = 1; i < 65; i++)
		CHECK_EQ(write(sv[1], "a", 1), 1);
	for (int i = 1; i < 65; i++)
		CHECK_EQ(WAIT(&ops[i]), 1);
	end_loop(loop);
	loop = NULL;
}

/* One blocking call of each kind, for ever. */
static void post_blocking(struct op *ops, pid_t child)
{
	static const struct timespec nap = { .tv_sec = 1000 };
	static struct flock range = { .l_type = F_WRLCK, .l_len = 10 };
	static uint32_t word = 5;
	static int status, held, other;

	if (!held) {
		held = make_file("file", 10);
		other = open("file", O_RDWR);
		CHECK_EQ(flock(held, LOCK_EX), 0);
		CHECK_EQ(fcntl(held, F_OFD_SETLK, &range), 0);
	}
	POST(nanosleep, &ops[0], &nap, NULL);
	POST(flock, &ops[1], other, LOCK_EX);
	POST(fcntl, &ops[2], other, F_OFD_SETLKW, (long)&range);
	POST(futex, &ops[3], &word, FUTEX_WAIT, 5, NULL, NULL, 0);
	POST(wait4, &ops[4], child, &status, 0, NULL);
	POST(poll, &ops[5], NULL, 0, -1);
	POST(futex, &ops[6], &word, FUTEX_WAIT, 5, NULL, NULL, 0);
	POST(clock_nanosleep, &ops[7], CLOCK_MONOTONIC, 0, &nap, NULL);
}

static void running(void)
{
	struct op ops[8] = { 0 };
	pid_t child = fork_or_fail();

	if (!child) {
		sleep_ms(100000);
		_exit(0);
	}
	for (int round = 0; round < 20; round++) {
		post_blocking(ops, child);
		run_ms(round % 4 * 5);
		for (int i = 0; i < 8; i++) {
			CHECK_EQ(ops[i].nr_done, 0);
			CHECK_EQ(flexsc_cancel(&ops[i].ev), 0);
			CHECK_EQ(flexsc_cancel(&ops[i].ev), -EALREADY);
		}
		for (int i = 0; i < 8; i++)
			CHECK_EQ(WAIT(&ops[i]), -ECANCELED);
	}
	/* The threads that were interrupted still serve. */
	CHECK_EQ(CALL(nanosleep, (&(struct timespec){ .tv_nsec = 1000 }), NULL),
		 0);
	kill(child, SIGKILL);
	CHECK_EQ(CALL(waitpid, child, NULL, 0), child);
}

/* The opening of a fifo waits for its other side. */
static void opening(void)
{
	struct op op = { 0 };

	CHECK_EQ(mknod("fifo", S_IFIFO | 0600, 0), 0);
	for (int round = 0; round < 10; round++) {
		POST(open, &op, "fifo", O_RDONLY, 0);
		run_ms(round % 3 * 5);
		CHECK_EQ(flexsc_cancel(&op.ev), 0);
		CHECK_EQ(WAIT(&op), -ECANCELED);
	}
	op.ev.timeout_ns = 20 * MS;
	POST(open, &op, "fifo", O_WRONLY, 0);
	CHECK_EQ(WAIT(&op), -ETIMEDOUT);
}

static void in_own_handler(struct flexsc_event *ev)
{
	CHECK_EQ(flexsc_cancel(ev), -ENOENT);
	CHECK(!flexsc_pending(ev));
	*(bool *)ev->data = true;
}

static void complete(void)
{
	bool ran = false;
	struct flexsc_event ev = { .handler = in_own_handler, .data = &ran };
	struct op op = { 0 };
	int ret;

	CHECK_EQ(flexsc_post(&ev, SYS_getpid, 0, 0, 0, 0, 0, 0), 0);
	while (!ran)
		run_ms(1);
	for (int round = 0; round < 100; round++) {
		POST(post, &op, SYS_getpid, 0, 0, 0, 0, 0, 0);
		if (round & 1)
			sleep_ms(1);
		ret = flexsc_cancel(&op.ev);
		if (ret != 0)
			CHECK_EQ(ret, -EALREADY);
		CHECK_EQ(flexsc_cancel(&op.ev), -EALREADY);
		WAIT(&op);
		if (ret || op.ev.ret != -ECANCELED)
			CHECK_EQ(op.ev.ret, getpid());
		/* Engine poll finishes it in the posting. */
		if (!strcmp(engine, "poll"))
			CHECK_EQ(ret, -EALREADY);
	}
}

/* So much of it can be read by the other side, or is left to be read. */
static void run_until_there(int fd, int least, int most)
{
	int n;

	do {
		run_ms(1);
		CHECK_EQ(ioctl(fd, FIONREAD, &n), 0);
	} while (n < least || n > most);
	run_ms(20);
}

static void partial(void)
{
	static uint8_t bytes[1 << 20];
	int file = make_file("big", 1 << 20), fds[2], sv[2];
	struct op op = { 0 };
	off_t offset = 7;
	int64_t sent;

	make_pipe(fds);
	POST(write, &op, fds[1], bytes, sizeof(bytes));
	run_until_there(fds[0], 65536, 65536);
	CHECK_EQ(flexsc_cancel(&op.ev), 0);
	CHECK_EQ(WAIT(&op), 65536);
	make_pair(sv);
	CHECK_EQ(write(sv[1], "abcdefghij", 10), 10);
	POST(recv, &op, sv[0], bytes, 100, MSG_WAITALL);
	run_until_there(sv[0], 0, 0);
	CHECK_EQ(flexsc_cancel(&op.ev), 0);
	CHECK_EQ(WAIT(&op), 10);
	POST(sendfile, &op, sv[0], file, &offset, 1 << 20);
	run_until_there(sv[1], 4096, INT_MAX);
	CHECK_EQ(flexsc_cancel(&op.ev), 0);
	sent = WAIT(&op);
	CHECK_IN(sent, 4096, (1 << 20) - 1);
	CHECK_EQ(offset, 7 + sent);
	CHECK_EQ(recv(sv[1], bytes, sizeof(bytes), MSG_PEEK) > 0, true);
	CHECK(filled(bytes, 7, 4096));
	/* A time limit is a cancel, too. */
	make_pipe(fds);
	op.ev.timeout_ns = 20 * MS;
	POST(write, &op, fds[1], bytes, sizeof(bytes));
	CHECK_EQ(WAIT(&op), 65536);
}

/* Even where the engine's thread gets no processor for long. */
#define IN_TIME_MS 300

static void time_limits(void)
{
	struct op op = { .ev.timeout_ns = 50 * MS }, many[50] = { 0 };
	uint64_t begin;
	char buf[50];
	int sv[2];

	make_pair(sv);
	begin = now_ns();
	POST(read, &op, sv[0], buf, sizeof(buf));
	CHECK_EQ(WAIT(&op), -ETIMEDOUT);
	CHECK_IN(op.done_ns - begin, 50 * MS, 500 * slowness() * MS);
	/* In time: the limit is gone with the call. */
	op.ev.timeout_ns = IN_TIME_MS * MS;
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	POST(read, &op, sv[0], buf, sizeof(buf));
	CHECK_EQ(WAIT(&op), 3);
	run_ms(IN_TIME_MS + 30);
	CHECK_EQ(op.nr_done, 1);
	/* Cancelled before: not timed out. */
	POST(read, &op, sv[0], buf, sizeof(buf));
	run_ms(5);
	CHECK_EQ(flexsc_cancel(&op.ev), 0);
	CHECK_EQ(WAIT(&op), -ECANCELED);
	for (int i = 0; i < 50; i++) {
		many[i].ev.timeout_ns = (uint64_t)(1 + i * 7 % 50) * MS;
		POST(read, &many[i], sv[0], &buf[i], 1);
	}
	begin = now_ns();
	for (int i = 0; i < 50; i++)
		CHECK_EQ(WAIT(&many[i]), -ETIMEDOUT);
	CHECK_IN(now_ns() - begin, 0, 600 * slowness() * MS);
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	CHECK_EQ(CALL(read, sv[0], buf, sizeof(buf)), 3);
}

static void time_limits_running(void)
{
	struct op ops[8] = { 0 };
	pid_t child = fork_or_fail();

	if (!child) {
		sleep_ms(100000);
		_exit(0);
	}
	for (int i = 0; i < 8; i++)
		ops[i].ev.timeout_ns = (uint64_t)(10 + 5 * i) * MS;
	post_blocking(ops, child);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(WAIT(&ops[i]), -ETIMEDOUT);
}

/* Storms ------------------------------------------------------------------ */

enum {
	STORM = 24,
	STORM_CANCELS = 10000
};

struct storm {
	int sv[STORM][2];
	uint64_t written[STORM], got[STORM];
	struct op ops[STORM];
	uint8_t buf[STORM][256];
	atomic_bool over;
	unsigned long nr_cancels, nr_posts;
};

static void *storm_writer(void *arg)
{
	struct storm *s = arg;
	unsigned int seed = 7;
	uint8_t bytes[100];

	while (!s->over) {
		int i = rand_r(&seed) % STORM;
		size_t len = 1 + (size_t)rand_r(&seed) % sizeof(bytes);
		ssize_t ret;

		fill(bytes, s->written[i], len);
		ret = send(s->sv[i][1], bytes, len, MSG_DONTWAIT);
		if (ret > 0)
			s->written[i] += (uint64_t)ret;
		if (rand_r(&seed) % 8 == 0)
			sched_yield();
	}
	return NULL;
}

static void storm_take(struct storm *s, int i)
{
	struct op *op = &s->ops[i];

	if (op->ev.ret != -ECANCELED) {
		CHECK_IN(op->ev.ret, 1, 256);
		CHECK(filled(s->buf[i], s->got[i], (size_t)op->ev.ret));
		s->got[i] += (uint64_t)op->ev.ret;
	}
	op->nr_done = 0;
}

/* One step: post, or cancel, or let the loop run a round. */
static void storm_step(struct storm *s, unsigned int *seed)
{
	int i = rand_r(seed) % STORM, ret;

	if (s->ops[i].nr_done) {
		CHECK_EQ(s->ops[i].nr_done, 1);
		storm_take(s, i);
	}
	if (!s->ops[i].posted) {
		POST(read, &s->ops[i], s->sv[i][0], s->buf[i], 256);
		s->nr_posts++;
	} else {
		ret = flexsc_cancel(&s->ops[i].ev);
		CHECK(ret == 0 || ret == -EALREADY);
		s->nr_cancels += ret == 0;
	}
	if (rand_r(seed) % 4 == 0)
		flexsc_loop_poll(loop, 0);
}

static void storm(void)
{
	static struct storm s;
	uint64_t until = now_ns() + 6000 * slowness() * MS;
	unsigned int seed = 1;
	pthread_t thread;

	for (int i = 0; i < STORM; i++)
		make_pair(s.sv[i]);
	thread = thread_start(storm_writer, &s);
	while (s.nr_cancels < STORM_CANCELS &&
	       (s.nr_cancels < 100 || now_ns() < until))
		storm_step(&s, &seed);
	s.over = true;
	thread_join(thread);
	for (int i = 0; i < STORM; i++) {
		if (s.ops[i].posted)
			flexsc_cancel(&s.ops[i].ev);
		if (s.ops[i].posted)
			WAIT(&s.ops[i]);
		if (s.ops[i].nr_done)
			storm_take(&s, i);
		CHECK_EQ(shutdown(s.sv[i][1], SHUT_WR), 0);
		do {
			POST(read, &s.ops[i], s.sv[i][0], s.buf[i], 256);
			if (WAIT(&s.ops[i]))
				storm_take(&s, i);
		} while (s.ops[i].ev.ret);
		CHECK_EQ(s.got[i], s.written[i]);
	}
	CHECK_EQ(nr_ops_done >= s.nr_posts, true);
}

/* On syscall threads: a signal must hit its call or none. */
static void storm_threads(void)
{
	enum {
		NR = 8
	};
	struct timespec naps[NR];
	struct op ops[NR] = { 0 };
	unsigned int seed = 3, nr_cancels = 0;
	uint64_t until = now_ns() + 3000 * MS;

	while (nr_cancels < 3000 && (nr_cancels < 100 || now_ns() < until)) {
		int i = rand_r(&seed) % NR, ret;

		if (!ops[i].posted) {
			CHECK(ops[i].ev.ret == 0 ||
			      ops[i].ev.ret == -ECANCELED);
			naps[i].tv_sec = 0;
			naps[i].tv_nsec = rand_r(&seed) % 300000;
			POST(nanosleep, &ops[i], &naps[i], NULL);
		} else if (rand_r(&seed) % 2) {
			ret = flexsc_cancel(&ops[i].ev);
			CHECK(ret == 0 || ret == -EALREADY);
			nr_cancels += ret == 0;
		}
		if (rand_r(&seed) % 3 == 0)
			flexsc_loop_poll(loop, rand_r(&seed) % 50000);
	}
	for (int i = 0; i < NR; i++) {
		if (ops[i].posted)
			WAIT(&ops[i]);
	}
}

struct connector {
	uint16_t port;
	int fds[1000];
};

static void *storm_connect(void *arg)
{
	struct connector *c = arg;

	for (size_t i = 0; i < ARRAY_SIZE(c->fds); i++)
		c->fds[i] = connect_to(c->port);
	return NULL;
}

/*
 * A cancelled accept takes no connection with it. The more steps it takes the
 * rarer they are: where the engine is far away all might be cancelled.
 */
static void storm_accept(void)
{
	static struct connector c;
	int listener = make_listener(&c.port), nr = 0;
	struct op ops[4] = { 0 };
	pthread_t thread = thread_start(storm_connect, &c);

	for (unsigned int step = 0; nr < 1000; step++) {
		struct op *op = &ops[step % 4];

		if (op->nr_done) {
			if (op->ev.ret >= 0) {
				close((int)op->ev.ret);
				flexsc_forget((int)op->ev.ret);
				nr++;
			} else {
				CHECK_EQ(op->ev.ret, -ECANCELED);
			}
			op->nr_done = 0;
		}
		if (!op->posted)
			POST(accept, op, listener, NULL, NULL);
		else if (step % (3 + step / 5000) == 0)
			flexsc_cancel(&op->ev);
		flexsc_loop_poll(loop, 0);
	}
	thread_join(thread);
	for (int i = 0; i < 4; i++) {
		if (ops[i].posted)
			flexsc_cancel(&ops[i].ev);
		if (ops[i].posted)
			CHECK_EQ(WAIT(&ops[i]), -ECANCELED);
	}
}

/* Timers -------------------------------------------------------------------- */

static uint64_t last_due;
static unsigned int nr_timers;

struct timed {
	struct flexsc_event ev;
	uint64_t due_ns, due_at_latest_ns; /* this thread may be preempted */
};

static void timer_ran(struct flexsc_event *ev)
{
	struct timed *t = ev->data;

	CHECK_EQ(ev->ret, 0);
	CHECK(now_ns() >= t->due_ns);
	/* Timers of one millisecond may be kept in one place. */
	CHECK(t->due_at_latest_ns + 2 * MS >= last_due);
	if (t->due_ns > last_due)
		last_due = t->due_ns;
	nr_timers++;
}

static void timers(void)
{
	enum {
		NR = 1000
	};
	static struct timed ts[NR];
	struct op op = { 0 };
	uint64_t begin;

	srand(5);
	for (int i = 0; i < NR; i++) {
		uint64_t after = (uint64_t)(rand() % 300) * MS / 2;

		ts[i].ev.handler = timer_ran;
		ts[i].ev.data = &ts[i];
		ts[i].due_ns = now_ns() + after;
		CHECK_EQ(flexsc_timer(&ts[i].ev, after), 0);
		ts[i].due_at_latest_ns = now_ns() + after;
	}
	CHECK_EQ(flexsc_loop_outstanding(loop), NR);
	CHECK_EQ(nr_timers, 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(nr_timers, NR);
	begin = now_ns();
	POST(timer, &op, 0);
	CHECK_EQ(op.nr_done, 0);
	CHECK_EQ(WAIT(&op), 0);
	POST(timer, &op, 30 * MS);
	CHECK_EQ(WAIT(&op), 0);
	CHECK_IN(op.done_ns - begin, 30 * MS, 500 * slowness() * MS);
	POST(timer, &op, UINT64_MAX); /* for ever */
	run_ms(10);
	CHECK_EQ(flexsc_cancel(&op.ev), 0);
	CHECK_EQ(flexsc_cancel(&op.ev), -EALREADY);
	CHECK_EQ(WAIT(&op), -ECANCELED);
	CHECK_EQ(flexsc_cancel(&op.ev), -ENOENT);
}

static void timers_cancelled(void)
{
	enum {
		NR = 2000
	};
	struct op *ops = calloc(NR, sizeof(*ops));
	unsigned int nr_cancelled = 0;

	srand(6);
	for (int i = 0; i < NR; i++)
		POST(timer, &ops[i], (uint64_t)(rand() % 100) * MS);
	for (int i = 0; i < NR; i += 2) {
		int ret = ops[i].posted ? flexsc_cancel(&ops[i].ev) : -ENOENT;

		nr_cancelled += ret == 0;
		if (i % 100 == 0)
			flexsc_loop_poll(loop, MS);
	}
	RUN_UNTIL(nr_ops_done, NR);
	for (int i = 0; i < NR; i++)
		nr_cancelled -= ops[i].ev.ret == -ECANCELED;
	CHECK_EQ(nr_cancelled, 0);
	free(ops);
}

/*
 * Two calls complete together. The first one's handler posts another, which
 * may get the second one's entry, and cancels the second: it must not hit.
 */
static struct {
	struct flexsc_event first, second;
	struct op reader;
	int fds[2];
	char byte;
	unsigned int nr_done;
	bool has_asked;
} together;

static void second_done(struct flexsc_event *ev)
{
	CHECK(ev->ret >= 0 || ev->ret == -ECANCELED);
	together.nr_done++;
}

static void first_done(struct flexsc_event *ev)
{
	together.nr_done++;
	if (together.has_asked)
		return;
	together.has_asked = true;
	POST(read, &together.reader, together.fds[0], &together.byte, 1);
	flexsc_cancel(ev == &together.first ? &together.second :
					      &together.first);
}

static void completed_together(void)
{
	/* One pipe: a number that is used anew unseen is found out late. */
	make_pipe(together.fds);
	for (int round = 0; round < 50; round++) {
		together.nr_done = 0;
		together.has_asked = false;
		memset(&together.reader, 0, sizeof(together.reader));
		memset(&together.first, 0, sizeof(together.first));
		memset(&together.second, 0, sizeof(together.second));
		together.first.handler = first_done;
		together.second.handler = second_done;
		flexsc_post(&together.first, SYS_getpgid, 0, 0, 0, 0, 0, 0);
		flexsc_post(&together.second, SYS_getpgid, 0, 0, 0, 0, 0, 0);
		usleep(2000); /* both complete before anybody looks */
		while (together.nr_done < 2)
			flexsc_loop_poll(loop, MS);
		run_ms(2);
		CHECK_EQ(together.reader.nr_done, 0);
		CHECK_EQ(write(together.fds[1], "x", 1), 1);
		CHECK_EQ(WAIT(&together.reader), 1);
	}
	close(together.fds[0]);
	close(together.fds[1]);
}

static const struct test tests[] = {
	{ "parked", parked, 0 },
	{ "every_parked_kind", every_parked_kind, 0 },
	{ "queued", queued, TEST_NO_LOOP },
	{ "running", running, TEST_BESIDE },
	{ "opening", opening, TEST_BESIDE },
	{ "complete", complete, 0 },
	{ "completed_together", completed_together, 0 },
	{ "partial", partial, 0 },
	{ "time_limits", time_limits, 0 },
	{ "time_limits_running", time_limits_running, TEST_BESIDE },
	{ "storm", storm, 0 },
	{ "storm_threads", storm_threads, TEST_BESIDE },
	{ "storm_accept", storm_accept, 0 },
	{ "timers", timers, 0 },
	{ "timers_cancelled", timers_cancelled, 0 },
};

int main(int argc, char **argv)
{
	return run_group(argc, argv, tests, ARRAY_SIZE(tests));
}
