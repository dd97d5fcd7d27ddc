/* SPDX-License-Identifier: MIT */
/*
 * Sockets that are waited for again and again, whose registration stays
 * (kmod/stay.h): every wake-up is seen, a plain close(2) is a close at once,
 * and nothing outlives descriptor, process and set.
 */
#include "cases.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

/* Two that wait are enough for a registration to stay. */
#define ROUNDS 4

static void make_unix(int sv[2])
{
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
}

static void make_tcp(int sv[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	CHECK_EQ(bind(listener, (void *)&at, size), 0);
	CHECK_EQ(getsockname(listener, (void *)&at, &size), 0);
	CHECK_EQ(listen(listener, 1), 0);
	sv[1] = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_EQ(connect(sv[1], (void *)&at, size), 0);
	sv[0] = accept(listener, NULL, NULL);
	CHECK(sv[0] >= 0);
	close(listener);
}

static void (*const makers[])(int sv[2]) = { make_unix, make_tcp };
#define NR_KINDS (sizeof(makers) / sizeof(makers[0]))

static char byte;

static void post_receive(struct kset *set, uint32_t index, int fd)
{
	uint32_t before = set->shared->nr_armed;

	POST(set, index, SYS_recvfrom, fd, ARG(&byte), 1, 0, 0, 0);
	CHECK_EQ(kset_run(set, 0), 0);
	CHECK_EQ(set->shared->nr_armed, before + 1);
}

static void expect(struct kset *set, uint32_t index, int64_t ret)
{
	uint32_t got;

	CHECK_EQ(kset_next(set, &got), ret);
	CHECK_EQ(got, index);
}

/* Waits, is answered, waits, ... */
static void wait_often(struct kset *set, int sv[2])
{
	for (char c = 'a'; c < 'a' + ROUNDS; c++) {
		post_receive(set, 1, sv[0]);
		CHECK_EQ(write(sv[1], &c, 1), 1);
		expect(set, 1, 1);
		CHECK_EQ(byte, c);
	}
}

static bool at_end(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 20000) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void again_and_again(void)
{
	struct kset set;
	int sv[2];

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	for (unsigned kind = 0; kind < NR_KINDS; kind++) {
		makers[kind](sv);
		for (int i = 0; i < 50; i++)
			wait_often(&set, sv);
		/* What is there is not waited for. */
		CHECK_EQ(write(sv[1], "xy", 2), 2);
		CHECK_EQ(CALL(&set, SYS_recvfrom, sv[0], ARG(&byte), 1, 0, 0,
			      0),
			 1);
		CHECK_EQ(byte, 'x');
		CHECK_EQ(CALL(&set, SYS_read, sv[0], ARG(&byte), 1), 1);
		CHECK_EQ(byte, 'y');
		wait_often(&set, sv);
	}
	kset_fini(&set);
}

/* One end of the two has that number. */
static void take_number(int sv[2], int number)
{
	if (sv[1] == number) {
		sv[1] = sv[0];
		sv[0] = number;
	}
	if (sv[0] == number)
		return;
	CHECK_EQ(dup2(sv[0], number), number);
	close(sv[0]);
	sv[0] = number;
}

/* The other end sees it at once, and the number is another socket's. */
static void plainly_closed(void)
{
	struct kset set;
	int sv[2], new[2];

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	for (unsigned i = 0; i < 6 * NR_KINDS; i++) {
		makers[i % NR_KINDS](sv);
		wait_often(&set, sv);
		CHECK_EQ(close(sv[0]), 0);
		CHECK(at_end(sv[1]));
		makers[i / NR_KINDS % NR_KINDS](new);
		take_number(new, sv[0]);
		wait_often(&set, new);
		CHECK_EQ(CALL(&set, SYS_close, new[0]), 0);
		CHECK(at_end(new[1]));
		close(sv[1]);
		close(new[1]);
	}
	kset_fini(&set);
}

/* Of two that wait one has the registration; of two numbers each has its own. */
static void two_at_once(void)
{
	struct kset set;
	int sv[2], other;

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	for (unsigned kind = 0; kind < NR_KINDS; kind++) {
		makers[kind](sv);
		wait_often(&set, sv);
		other = dup(sv[0]);
		for (int i = 0; i < ROUNDS; i++) {
			uint32_t first, second, third;

			post_receive(&set, 1, sv[0]);
			post_receive(&set, 2, sv[0]);
			post_receive(&set, 3, other);
			CHECK_EQ(write(sv[1], "123", 3), 3);
			CHECK_EQ(kset_next(&set, &first), 1);
			CHECK_EQ(kset_next(&set, &second), 1);
			CHECK_EQ(kset_next(&set, &third), 1);
			CHECK_EQ(first + second + third, 6);
		}
		close(other);
		wait_often(&set, sv);
		post_receive(&set, 1, sv[0]);
		POST(&set, 2, SYS_close, sv[0]);
		expect(&set, 1, -ECANCELED);
		expect(&set, 2, 0);
		CHECK(at_end(sv[1]));
	}
	kset_fini(&set);
}

/* Ended by other things than bytes. */
static void ended(void)
{
	struct linger now = { 1, 0 };
	struct kset set;
	int sv[2];

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	for (unsigned kind = 0; kind < NR_KINDS; kind++) {
		makers[kind](sv);
		wait_often(&set, sv);
		post_receive(&set, 1, sv[0]);
		CHECK_EQ(shutdown(sv[1], SHUT_WR), 0);
		expect(&set, 1, 0);
		makers[kind](sv);
		wait_often(&set, sv);
		post_receive(&set, 1, sv[0]);
		CHECK_EQ(shutdown(sv[0], SHUT_RD), 0);
		expect(&set, 1, 0);
		makers[kind](sv);
		wait_often(&set, sv);
		post_receive(&set, 1, sv[0]);
		set.entries[1].status = FLEXSC_CANCEL;
		CHECK_EQ(request(set.fd, FLEXSC_IOC_CANCEL, 1), 0);
		expect(&set, 1, -ECANCELED);
		wait_often(&set, sv);
	}
	post_receive(&set, 1, sv[0]);
	setsockopt(sv[1], SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(sv[1]);
	expect(&set, 1, -ECONNRESET);
	kset_fini(&set);
}

/* Options that decide whether, and how long, it waits. */
static void options(void)
{
	struct timeval soon = { .tv_usec = 50000 };
	struct lent lent;
	struct kset set;
	int sv[2], four = 4;
	char bytes[4];

	CHECK_EQ(kset_init(&set, 64, 1), 0);
	lend(&lent, &set, 0);
	for (unsigned kind = 0; kind < NR_KINDS; kind++) {
		makers[kind](sv);
		wait_often(&set, sv);
		CHECK_EQ(fcntl(sv[0], F_SETFL, O_NONBLOCK), 0);
		CHECK_EQ(CALL(&set, SYS_read, sv[0], ARG(&byte), 1), -EAGAIN);
		CHECK_EQ(fcntl(sv[0], F_SETFL, 0), 0);
		wait_often(&set, sv);
		CHECK_EQ(CALL(&set, SYS_recvfrom, sv[0], ARG(&byte), 1,
			      MSG_DONTWAIT, 0, 0),
			 -EAGAIN);
		CHECK_EQ(setsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &soon,
				    sizeof(soon)),
			 0);
		CHECK_EQ(CALL(&set, SYS_read, sv[0], ARG(&byte), 1), -EAGAIN);
		soon.tv_usec = 0;
		setsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
		soon.tv_usec = 50000;
		wait_often(&set, sv);
		CHECK_EQ(setsockopt(sv[0], SOL_SOCKET, SO_RCVLOWAT, &four,
				    sizeof(four)),
			 0);
		/* At once: of TCP what comes in two parts is not woken for. */
		POST(&set, 1, SYS_recvfrom, sv[0], ARG(bytes), 4, 0, 0, 0);
		CHECK(kset_run(&set, 0) >= 0);
		CHECK_EQ(write(sv[1], "abcd", 4), 4);
		expect(&set, 1, 4);
		CHECK_EQ(bytes[3], 'd');
	}
	request(set.fd, FLEXSC_IOC_STOP, 0);
	unlend(&lent);
	kset_fini(&set);
}

/* In this machine, of one kind of sockets. */
static long nr_sockets(const char *kind)
{
	FILE *file = fopen("/proc/net/protocols", "r");
	char line[256], name[32];
	long nr = -1, found;
	int size;

	CHECK(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%31s %d %ld", name, &size, &found) == 3 &&
		    (!strcmp(name, kind) ||
		     (!strcmp(kind, "UNIX") && !strcmp(name, "UNIX-STREAM"))))
			nr = (nr < 0 ? 0 : nr) + found;
	fclose(file);
	return nr;
}

/* Freed behind a section of RCU. */
static void expect_at_most(long wanted)
{
	uint64_t end = now_ns() + 20000000000ull;

	while (nr_sockets("UNIX") > wanted && now_ns() < end)
		sleep_ms(10);
	CHECK(nr_sockets("UNIX") <= wanted);
}

static void many_closed(void)
{
	enum {
		NR = 500
	};
	struct rlimit files = { 4096, 4096 };
	long before = nr_sockets("UNIX");
	static int sv[NR][2];
	struct kset set;

	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
	CHECK_EQ(kset_init(&set, 64, 0), 0);
	for (unsigned i = 0; i < NR; i++)
		make_unix(sv[i]);
	for (unsigned i = 0; i < NR; i++)
		wait_often(&set, sv[i]);
	for (unsigned i = 0; i < NR; i++) {
		close(sv[i][0]);
		close(sv[i][1]);
	}
	/* Of each that was closed plainly the one end may be there still. */
	expect_at_most(before + NR);
	/* Others take their places, and all go with the set. */
	for (unsigned i = 0; i < NR; i++) {
		make_unix(sv[0]);
		wait_often(&set, sv[0]);
		close(sv[0][0]);
		close(sv[0][1]);
	}
	expect_at_most(before + NR / 2);
	kset_fini(&set);
	expect_at_most(before);
}

/* A child has them too, and uses them when its parent's set is gone. */
static void shared(void)
{
	int sv[NR_KINDS][2], status;
	pid_t child;

	for (unsigned kind = 0; kind < NR_KINDS; kind++)
		makers[kind](sv[kind]);
	child = fork();
	if (!child) {
		struct kset set;
		pid_t own;

		CHECK_EQ(kset_init(&set, 64, 0), 0);
		for (unsigned kind = 0; kind < NR_KINDS; kind++) {
			wait_often(&set, sv[kind]);
			post_receive(&set, 2 + kind, sv[kind][0]);
		}
		/* Keeps the device and the sockets open for longer. */
		own = fork();
		if (!own) {
			sleep_ms(200);
			for (unsigned kind = 0; kind < NR_KINDS; kind++) {
				CHECK_EQ(write(sv[kind][1], "x", 1), 1);
				CHECK_EQ(read(sv[kind][0], &byte, 1), 1);
			}
			_exit(0);
		}
		raise(SIGKILL);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	for (int i = 0; i < 100; i++) {
		for (unsigned kind = 0; kind < NR_KINDS; kind++) {
			CHECK_EQ(write(sv[kind][0], "y", 1), 1);
			CHECK_EQ(read(sv[kind][1], &byte, 1), 1);
		}
		sleep_ms(3);
	}
}

/* A program that replaces the process, with the sockets left open. */
static void replaced(void)
{
	int sv[2], ready[2], status;
	pid_t child;

	make_tcp(sv);
	CHECK_EQ(pipe(ready), 0);
	child = fork();
	if (!child) {
		struct kset set;

		CHECK_EQ(kset_init(&set, 64, 0), 0);
		wait_often(&set, sv);
		post_receive(&set, 1, sv[0]);
		CHECK_EQ(write(ready[1], "", 1), 1);
		execl("/bin/sleep", "sleep", "0.2", NULL);
		_exit(1);
	}
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(send(sv[1], "x", 1, MSG_NOSIGNAL), 1);
		sleep_ms(3);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

struct stream {
	int sv[2];
	uint32_t nr, got;
};

static void *write_all(void *arg)
{
	struct stream *s = arg;

	for (uint32_t i = 0; i < s->nr; i++) {
		CHECK_EQ(write(s->sv[1], &byte, 1), 1);
		/* At each distance from what the other one does. */
		for (volatile uint32_t n = i * 7 % 300; n; n--)
			;
		while (__atomic_load_n(&s->got, __ATOMIC_ACQUIRE) + 2 < i)
			sched_yield();
	}
	return NULL;
}

/* Bytes come at any moment: none is waited for in vain. */
static void at_any_moment(void)
{
	struct kset set;
	uint32_t index;

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	for (unsigned kind = 0; kind < NR_KINDS; kind++) {
		struct stream s = { .nr = 2000 };
		pthread_t writer;

		makers[kind](s.sv);
		CHECK_EQ(pthread_create(&writer, NULL, write_all, &s), 0);
		for (uint32_t i = 0; i < s.nr; i++) {
			POST(&set, i % 64, SYS_recvfrom, s.sv[0], ARG(&byte), 1,
			     0, 0, 0);
			CHECK_EQ(kset_next(&set, &index), 1);
			CHECK_EQ(index, i % 64);
			__atomic_store_n(&s.got, i + 1, __ATOMIC_RELEASE);
		}
		pthread_join(writer, NULL);
		close(s.sv[0]);
		close(s.sv[1]);
	}
	kset_fini(&set);
}

/* Closed by another thread at any moment, and replaced. */
static void *close_often(void *arg)
{
	int *fds = arg, sv[2];

	for (int i = 0; i < 1000; i++) {
		int number = fds[i % 4], old = fds[4 + i % 4];

		makers[i / 4 % NR_KINDS](sv);
		CHECK_EQ(dup2(sv[0], number), number);
		close(sv[0]);
		__atomic_store_n(&fds[4 + i % 4], sv[1], __ATOMIC_RELEASE);
		for (int n = 0; n < 3; n++) {
			send(sv[1], "z", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
			sched_yield();
		}
		close(old);
	}
	__atomic_store_n(&fds[8], 1, __ATOMIC_RELEASE);
	return NULL;
}

static void closed_by_others(void)
{
	struct kset set;
	int fds[9] = { 0 }, sv[2];
	uint32_t index;
	int64_t ret;
	pthread_t closer;

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	for (int i = 0; i < 4; i++) {
		makers[i % NR_KINDS](sv);
		fds[i] = sv[0];
		fds[4 + i] = sv[1];
		POST(&set, i, SYS_recvfrom, sv[0], ARG(&byte), 1, 0, 0, 0);
	}
	CHECK_EQ(pthread_create(&closer, NULL, close_often, fds), 0);
	while (!__atomic_load_n(&fds[8], __ATOMIC_ACQUIRE)) {
		CHECK(kset_run(&set, 1000000) >= 0);
		/* What waited on a file that was closed ends with ECANCELED. */
		while (kset_reap(&set, &index, &ret))
			POST(&set, index, SYS_recvfrom, fds[index], ARG(&byte),
			     1, 0, 0, 0);
		for (int i = 0; i < 4; i++)
			send(__atomic_load_n(&fds[4 + i], __ATOMIC_ACQUIRE),
			     "w", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	pthread_join(closer, NULL);
	kset_fini(&set);
}

int main(void)
{
	static const struct test_case cases[] = {
		CASE(again_and_again), CASE(plainly_closed),
		CASE(two_at_once),     CASE(ended),
		CASE(options),	       CASE(many_closed),
		CASE(shared),	       CASE(replaced),
		CASE(at_any_moment),   CASE(closed_by_others),
	};

	return run_cases(cases, sizeof(cases) / sizeof(*cases));
}
