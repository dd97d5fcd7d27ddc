/* SPDX-License-Identifier: MIT */
/*
 * When things go wrong around the calls: descriptors that vanish or change
 * under them, nothing left of descriptors or memory, signals, and fork.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

/* The caller's error: no crash, no second completion, the loop goes on. */
static void closed_natively(void)
{
	struct op op = { 0 }, other = { 0 };
	char buf[10], more[10];
	int sv[2], again[2];

	make_pair(sv);
	POST(read, &op, sv[0], buf, sizeof(buf));
	run_ms(5);
	close(sv[0]);
	make_pair(again); /* takes the number */
	CHECK_EQ(again[0], sv[0]);
	run_ms(20);
	CHECK_EQ(write(again[1], "abc", 3), 3);
	run_ms(50);
	CHECK_IN(op.nr_done, 0, 1);
	POST(read, &other, again[0], more, sizeof(more));
	CHECK_EQ(write(again[1], "def", 3), 3);
	CHECK_EQ(write(again[1], "ghi", 3), 3);
	flexsc_forget(again[0]);
	WAIT(&op);
	run_ms(20);
	CHECK_EQ(op.nr_done, 1);
	CHECK(op.ev.ret > 0 || op.ev.ret == -EBADF || op.ev.ret == -ECANCELED);
	if (!other.nr_done)
		flexsc_cancel(&other.ev);
	WAIT(&other);
	CHECK_EQ(CALL(post, SYS_getpid, 0, 0, 0, 0, 0, 0), getpid());
}

/* Many at once, with data on their way, and numbers reused at random. */
static void closed_natively_often(void)
{
	enum {
		NR = 30
	};
	struct op ops[NR] = { 0 };
	char bufs[NR][10];
	int sv[NR][2], ret;

	srand(1);
	for (int i = 0; i < NR; i++)
		make_pair(sv[i]);
	for (int round = 0; round < 3000; round++) {
		int i = rand() % NR;

		if (rand() % 4 == 0) {
			close(sv[i][0]);
			close(sv[i][1]);
			make_pair(sv[i]);
		}
		if (!ops[i].posted)
			POST(read, &ops[i], sv[i][0], bufs[i], 10);
		if (rand() % 3 == 0)
			CHECK_EQ(write(sv[i][1], "abc", 3), 3);
		if (rand() % 8 == 0)
			flexsc_loop_poll(loop, 0);
	}
	for (int i = 0; i < NR; i++) {
		if (!ops[i].posted)
			continue;
		ret = flexsc_cancel(&ops[i].ev);
		CHECK(ret == 0 || ret == -EALREADY);
		WAIT(&ops[i]);
	}
}

static void close_parked(void)
{
	struct op reads[3] = { 0 }, closed = { 0 };
	char buf[3][10];
	int sv[2];

	for (int round = 0; round < 20; round++) {
		make_pair(sv);
		for (int i = 0; i < 3; i++)
			POST(read, &reads[i], sv[0], buf[i], 10);
		if (round & 1)
			run_ms(2);
		POST(close, &closed, sv[0]);
		CHECK_EQ(WAIT(&closed), 0);
		for (int i = 0; i < 3; i++) {
			CHECK_EQ(WAIT(&reads[i]), -ECANCELED);
			CHECK(reads[i].done_ns <= closed.done_ns);
		}
		CHECK_EQ(fcntl(sv[0], F_GETFD), -1);
		CHECK_EQ(read(sv[1], buf[0], 1), 0);
		close(sv[1]);
	}
}

/* Other calls that close: what was parked on the number ends. */
static void replaced_parked(void)
{
	struct op op = { 0 };
	char buf[10];
	int sv[2], file = make_file("file", 10);

	make_pair(sv);
	POST(read, &op, sv[0], buf, sizeof(buf));
	run_ms(2);
	CHECK_EQ(CALL(dup2, file, sv[0]), sv[0]);
	CHECK_EQ(WAIT(&op), -ECANCELED);
	CHECK_EQ(CALL(read, sv[0], buf, sizeof(buf)), 10);
	make_pair(sv);
	POST(read, &op, sv[0], buf, sizeof(buf));
	run_ms(2);
	CHECK_EQ(CALL(dup3, file, sv[0], O_CLOEXEC), sv[0]);
	CHECK_EQ(WAIT(&op), -ECANCELED);
	make_pair(sv);
	CHECK_EQ(dup2(sv[0], 500), 500);
	POST(read, &op, 500, buf, sizeof(buf));
	run_ms(2);
	CHECK_EQ(CALL(close_range, 450, 550, 0), 0);
	CHECK_EQ(WAIT(&op), -ECANCELED);
	/* The number itself as both: nothing is closed. */
	POST(read, &op, sv[0], buf, sizeof(buf));
	run_ms(2);
	CHECK_EQ(CALL(dup2, sv[0], sv[0]), sv[0]);
	CHECK_EQ(CALL(close, 12345), -EBADF);
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	CHECK_EQ(WAIT(&op), 3);
}

/* Calls that would close, but fail or change nothing, disturb nobody. */
static void replace_fails(void)
{
	struct op op = { 0 };
	char buf[10];
	int sv[2];

	make_pair(sv);
	for (int round = 0; round < 6; round++) {
		POST(read, &op, sv[0], buf, sizeof(buf));
		run_ms(2);
		if (round % 3 == 0)
			CHECK_EQ(CALL(dup2, 9999, sv[0]), -EBADF);
		else if (round % 3 == 1)
			CHECK_EQ(CALL(dup3, 9999, sv[0], 0), -EBADF);
		else
			CHECK_EQ(CALL(dup3, sv[0], sv[0], 0), -EINVAL);
		run_ms(2);
		CHECK_EQ(write(sv[1], "abc", 3), 3);
		CHECK_EQ(WAIT(&op), 3);
	}
}

static void forget(void)
{
	struct op op = { 0 }, other = { 0 };
	char buf[10], more[10];
	int sv[2], tv[2];

	make_pair(sv);
	make_pair(tv);
	POST(read, &op, sv[0], buf, sizeof(buf));
	POST(read, &other, tv[0], more, sizeof(more));
	run_ms(2);
	close(sv[0]);
	flexsc_forget(sv[0]);
	CHECK_EQ(WAIT(&op), -ECANCELED);
	CHECK_EQ(other.nr_done, 0);
	make_pair(sv);
	POST(read, &op, sv[0], buf, sizeof(buf));
	run_ms(2);
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	CHECK_EQ(WAIT(&op), 3);
	CHECK_EQ(write(tv[1], "de", 2), 2);
	CHECK_EQ(WAIT(&other), 2);
}

/* Closed and opened again behind the library's back. */
static void reopened_natively(void)
{
	void (*const makes[])(int *) = { make_pair, make_tcp_pair, make_pipe };
	struct op op = { 0 };
	char buf[10];
	int fds[2], number;

	make_pipe(fds);
	number = fds[0];
	for (int round = 0; round < 6; round++) {
		uint64_t begin;

		POST(read, &op, number, buf, sizeof(buf));
		run_ms(5);
		CHECK_EQ(write(fds[1], "abc", 3), 3);
		CHECK_EQ(WAIT(&op), 3);
		close(number);
		close(fds[1]);
		makes[round % 3](fds);
		if (fds[0] != number) {
			CHECK_EQ(dup2(fds[0], number), number);
			close(fds[0]);
		}
		POST(read, &op, number, buf, sizeof(buf));
		run_ms(20);
		CHECK_EQ(op.nr_done, 0);
		begin = now_ns();
		CHECK_EQ(write(fds[1], "de", 2), 2);
		CHECK_EQ(WAIT(&op), 2);
		CHECK_IN(now_ns() - begin, 0, 1500 * slowness() * MS);
	}
}

static void out_of_descriptors(void)
{
	struct rlimit limit, before;
	struct op op = { 0 };
	int sv[2], listener, client;
	struct timespec nap = { .tv_nsec = 1000000 };
	struct flexsc_loop *second = NULL;
	uint16_t port;
	char buf[10];

	make_pair(sv);
	listener = make_listener(&port);
	client = connect_to(port);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = (rlim_t)dup(0);
	close((int)limit.rlim_cur);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while (dup(0) >= 0) /* holes below, if there are any */
		;
	CHECK_EQ(CALL(open, "/dev/null", O_RDONLY, 0), -EMFILE);
	CHECK_EQ(CALL(socket, AF_INET, SOCK_STREAM, 0), -EMFILE);
	CHECK_EQ(CALL(accept, listener, NULL, NULL), -EMFILE);
	POST(read, &op, sv[0], buf, sizeof(buf));
	CHECK_EQ(CALL(nanosleep, &nap, NULL), 0);
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	CHECK_EQ(WAIT(&op), 3);
	CHECK_EQ(flexsc_loop_new(&second, NULL), -EMFILE);
	CHECK(second == NULL);
	flexsc_loop_use(loop);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	CHECK(CALL(accept, listener, NULL, NULL) >= 0);
	close(client);
}

static size_t address_space(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	CHECK(file && fscanf(file, "%lu", &pages) == 1);
	fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* A loop comes to be or -ENOMEM does; and calls on it end somehow. */
static void out_of_memory(void)
{
	struct rlimit limit, before;
	unsigned int nr_failed = 0;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip("sanitizers need all of the address space");
#endif
	CHECK_EQ(getrlimit(RLIMIT_AS, &before), 0);
	for (size_t more = 0; more < 64u << 20; more = more * 2 + 16384) {
		struct timespec nap = { .tv_nsec = 1000000 };
		int sv[2], ret;
		char buf[10];

		limit = before;
		limit.rlim_cur = address_space() + more;
		CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
		loop = NULL;
		ret = flexsc_loop_new(&loop, NULL);
		if (ret) {
			CHECK_EQ(ret, -ENOMEM);
			CHECK(loop == NULL);
			nr_failed++;
		} else {
			CHECK_EQ(CALL(post, SYS_getpid, 0, 0, 0, 0, 0, 0),
				 getpid());
			CHECK_IN(CALL(nanosleep, &nap, NULL), -4095, 0);
			make_pair(sv);
			CHECK_EQ(write(sv[1], "abc", 3), 3);
			CHECK_EQ(CALL(read, sv[0], buf, sizeof(buf)), 3);
			CHECK_EQ(flexsc_loop_shutdown(loop), 0);
			end_loop(loop);
			close(sv[0]);
			close(sv[1]);
		}
		CHECK_EQ(setrlimit(RLIMIT_AS, &before), 0);
	}
	CHECK(nr_failed > 0);
	loop = new_loop(0, 0);
	CHECK_EQ(CALL(post, SYS_getpid, 0, 0, 0, 0, 0, 0), getpid());
	end_loop(loop);
	loop = NULL;
}

/*
 * A call that takes a thread, and no memory for one: it ends all the same, with
 * what stands behind it in its chain. And with memory it is as always.
 */
static void no_thread(void)
{
	struct timespec nap = { .tv_nsec = 1000000 };
	struct op slept = { 0 }, behind = { 0 };
	struct rlimit limit, before;
	int listener, client;
	uint16_t port;
	int64_t ret;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip("sanitizers need all of the address space");
#endif
	if (flexsc_loop_engine(loop)[0] == 'k')
		skip("kmod's threads are not the pool's, and set errno");
	listener = make_listener(&port);
	client = connect_to(port);
	CHECK_EQ(getrlimit(RLIMIT_AS, &before), 0);
	limit = before;
	limit.rlim_cur = address_space();
	CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
	/* It wants somebody to watch it, who is not to be had either. */
	ret = CALL(accept, listener, NULL, NULL);
	CHECK(ret >= 0 || ret == -ENOMEM);
	ret = CALL(nanosleep, &nap, NULL);
	CHECK(ret == 0 || ret == -ENOMEM);
	CHECK_EQ(flexsc_chain_begin(), 0);
	POST(nanosleep, &slept, &nap, NULL);
	POST(post, &behind, SYS_getpid, 0, 0, 0, 0, 0, 0);
	CHECK_EQ(flexsc_chain_end(), 0);
	WAIT(&behind);
	CHECK_EQ(slept.nr_done, 1);
	CHECK_EQ(behind.ev.ret, slept.ev.ret ? -ECANCELED : getpid());
	if (strcmp(flexsc_loop_engine(loop), "poll") == 0)
		CHECK_EQ(ret, -ENOMEM);
	CHECK_EQ(setrlimit(RLIMIT_AS, &before), 0);
	CHECK_EQ(CALL(nanosleep, &nap, NULL), 0);
	close(client);
}

static volatile sig_atomic_t nr_alarms;

static void count_alarm(int sig)
{
	(void)sig;
	nr_alarms++;
}

static void signals(void)
{
	struct itimerval often = { .it_interval.tv_usec = 1000,
				   .it_value.tv_usec = 1000 };
	struct sigaction action = { .sa_handler = count_alarm };
	struct timespec nap = { .tv_nsec = 5 * 1000000 };
	uint64_t until = now_ns() + 600 * MS;
	struct op reads[4] = { 0 }, naps[2] = { 0 };
	bool sync = !strcmp(engine, "sync");
	char buf[4][10];
	int sv[4][2];

	for (int i = 0; i < 4; i++)
		make_pair(sv[i]);
	CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0); /* no SA_RESTART */
	CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (int round = 0; now_ns() < until || nr_alarms <= 100; round++) {
		for (int i = 0; i < 4; i++) {
			if (!reads[i].posted)
				POST(read, &reads[i], sv[i][0], buf[i], 10);
		}
		for (int i = 0; i < 2 && !sync; i++) {
			CHECK_IN(naps[i].ev.ret, 0, 0);
			if (!naps[i].posted)
				POST(nanosleep, &naps[i], &nap, NULL);
		}
		run_ms(3);
		CHECK_EQ(write(sv[round % 4][1], "abc", 3), 3);
		CHECK_EQ(WAIT(&reads[round % 4]), 3);
	}
	often = (struct itimerval){ 0 };
	CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
	CHECK(nr_alarms > 100);
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(write(sv[i][1], "abc", 3), 3);
		if (reads[i].posted)
			CHECK_EQ(WAIT(&reads[i]), 3);
	}
	for (int i = 0; i < 2 && !sync; i++) {
		if (naps[i].posted)
			WAIT(&naps[i]);
		CHECK_EQ(naps[i].ev.ret, 0);
	}
}

static void in_forked_child(const struct op *parents, int nr)
{
	struct timespec nap = { .tv_nsec = 1000000 };
	unsigned long before = nr_ops_done;
	unsigned int done[50];
	struct op op = { 0 };
	char buf[10];
	int sv[2];

	for (int i = 0; i < nr; i++)
		done[i] = parents[i].nr_done;
	CHECK_EQ(flexsc_loop_outstanding(loop), 0);
	CHECK(flexsc_loop_current() == loop);
	CHECK_EQ(CALL(post, SYS_getpid, 0, 0, 0, 0, 0, 0), getpid());
	CHECK_EQ(CALL(post, SYS_gettid, 0, 0, 0, 0, 0, 0), gettid());
	make_pair(sv);
	POST(read, &op, sv[0], buf, sizeof(buf));
	run_ms(5);
	CHECK_EQ(op.nr_done, 0);
	CHECK_EQ(CALL(nanosleep, &nap, NULL), 0);
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	CHECK_EQ(WAIT(&op), 3);
	run_ms(20);
	CHECK_EQ(nr_ops_done, before + 4); /* none of the parent's */
	for (int i = 0; i < nr; i++)
		CHECK_EQ(parents[i].nr_done, done[i]);
	end_loop(loop);
	_exit(EXIT_SUCCESS);
}

static void fork_outstanding(void)
{
	enum {
		NR = 20
	};
	struct op ops[NR + 2] = { 0 };
	struct timespec nap = { .tv_nsec = 300 * 1000000 };
	bool sync = !strcmp(engine, "sync");
	char buf[NR][10];
	int sv[NR][2];

	for (int i = 0; i < NR; i++) {
		make_pair(sv[i]);
		POST(read, &ops[i], sv[i][0], buf[i], 10);
	}
	if (!sync)
		POST(nanosleep, &ops[NR], &nap, NULL);
	POST(timer, &ops[NR + 1], 350 * MS);
	for (int round = 0; round < 10; round++) {
		pid_t pid = fork_or_fail();

		if (!pid)
			in_forked_child(ops, NR + 2);
		if (round & 1)
			run_ms(5);
		reap_child(pid, EXIT_SUCCESS);
		CHECK_EQ(write(sv[round][1], "abc", 3), 3);
		CHECK_EQ(WAIT(&ops[round]), 3);
		POST(read, &ops[round], sv[round][0], buf[round], 10);
		run_ms(1);
	}
	for (int i = 0; i < NR; i++)
		CHECK_EQ(write(sv[i][1], "abcd", 4), 4);
	for (int i = 0; i < NR; i++)
		CHECK_EQ(WAIT(&ops[i]), 4);
	if (!sync)
		CHECK_EQ(WAIT(&ops[NR]), 0);
	CHECK_EQ(WAIT(&ops[NR + 1]), 0);
}

/* The child cannot rebuild its loop: each function says so, none crashes. */
static void fork_without_descriptors(void)
{
	struct rlimit limit, none = { 0, 0 };
	struct op op = { 0 }, late = { 0 };
	char buf[10];
	int sv[2];
	pid_t pid;

	make_pair(sv);
	POST(read, &op, sv[0], buf, sizeof(buf));
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none.rlim_max = limit.rlim_max;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	pid = fork_or_fail();
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (!pid) {
		CHECK_EQ(flexsc_pending(&op.ev), 0);
		CHECK_EQ(flexsc_read(&late.ev, sv[0], buf, 1), -ENOMEM);
		CHECK_EQ(flexsc_timer(&late.ev, 1), -ENOMEM);
		CHECK_EQ(flexsc_chain_begin(), -ENOMEM);
		CHECK_EQ(flexsc_loop_send(loop, &late.ev), -ENOMEM);
		CHECK_EQ(flexsc_loop_fd(loop), -ENOMEM);
		CHECK_EQ(flexsc_loop_poll(loop, 0), -ENOMEM);
		CHECK_EQ(flexsc_loop_outstanding(loop), 0);
		CHECK(!strcmp(flexsc_loop_engine(loop), "none"));
		flexsc_loop_stop(loop);
		flexsc_forget(sv[0]);
		CHECK_EQ(flexsc_loop_free(loop), 0);
		_exit(EXIT_SUCCESS);
	}
	reap_child(pid, EXIT_SUCCESS);
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	CHECK_EQ(WAIT(&op), 3);
}

/* Direct I/O goes another way; behind the number there is a pipe by now. */
static void positions_of_a_pipe(void)
{
	static __attribute__((aligned(4096))) uint8_t buf[4096];
	int file = make_file("file", sizeof(buf)), fds[2], fd;

	fd = open("file", O_RDWR | O_DIRECT);
	if (fd < 0)
		skip("no O_DIRECT here");
	CHECK_EQ(CALL(pread, fd, buf, sizeof(buf), 0), sizeof(buf));
	make_pipe(fds);
	CHECK_EQ(dup2(fds[1], fd), fd);
	CHECK_EQ(CALL(pwrite, fd, buf, sizeof(buf), 4096), -ESPIPE);
	close(fds[0]);
	CHECK_EQ(CALL(pwrite, fd, buf, sizeof(buf), 4096), -ESPIPE);
	close(fds[1]);
	close(fd);
	close(file);
}

static void filter_this_thread(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = 1, .filter = &allow };

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/*
 * A program confines itself when its calls are under way: parked, in threads,
 * in the middle of a chain, just posted. All of them go on.
 */
static void filtered_later(void)
{
	struct timespec nap = { .tv_nsec = 300 * 1000000 };
	struct op reads[8] = { 0 }, naps[3] = { 0 }, opened = { 0 },
		  ended = { 0 }, seek = { 0 };
	int sv[8][2], file = make_file("file", 10);
	struct stat st;
	char buf[8][10];

	for (int i = 0; i < 8; i++) {
		make_pair(sv[i]);
		POST(read, &reads[i], sv[i][0], buf[i], 10);
	}
	for (int i = 0; i < 3; i++)
		POST(nanosleep, &naps[i], &nap, NULL);
	run_ms(20);
	POST(lseek, &seek, file, 5, SEEK_SET);
	POST(fstat, &opened, file, &st);
	filter_this_thread();
	run_ms(20);
	CHECK_EQ(flexsc_cancel(&reads[7].ev), 0);
	CHECK_EQ(WAIT(&reads[7]), -ECANCELED);
	for (int i = 0; i < 7; i++) {
		CHECK_EQ(write(sv[i][1], "abc", 3), 3);
		CHECK_EQ(WAIT(&reads[i]), 3);
		CHECK_EQ(memcmp(buf[i], "abc", 3), 0);
	}
	CHECK_EQ(WAIT(&opened), 0);
	CHECK_EQ(WAIT(&seek), 5);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(WAIT(&naps[i]), 0);
	POST(read, &ended, sv[0][0], buf[0], 10);
	run_ms(5);
	close(sv[0][1]);
	CHECK_EQ(WAIT(&ended), 0);
}

static const struct test tests[] = {
	{ "filtered_later", filtered_later, 0 },
	{ "closed_natively", closed_natively, 0 },
	{ "closed_natively_often", closed_natively_often, 0 },
	{ "close_parked", close_parked, 0 },
	{ "replaced_parked", replaced_parked, 0 },
	{ "replace_fails", replace_fails, 0 },
	{ "forget", forget, 0 },
	{ "reopened_natively", reopened_natively, TEST_SLOW },
	{ "positions_of_a_pipe", positions_of_a_pipe, 0 },
	{ "out_of_descriptors", out_of_descriptors, 0 },
	{ "out_of_memory", out_of_memory, TEST_NO_LOOP | TEST_SLOW },
	{ "no_thread", no_thread, 0 },
	{ "signals", signals, 0 },
	{ "fork_outstanding", fork_outstanding, 0 },
	{ "fork_without_descriptors", fork_without_descriptors, 0 },
};

int main(int argc, char **argv)
{
	return run_group(argc, argv, tests, ARRAY_SIZE(tests));
}
