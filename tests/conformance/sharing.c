/* SPDX-License-Identifier: MIT */
/*
 * Several calls, loops and processes on one descriptor: nobody hangs, nothing
 * is lost or done twice, and the flags of the open file, which all of them
 * share, stay as they are. Also calls that move nothing at all.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

static void nothing_moved(void)
{
	int file = make_file("file", 10), fds[2], sv[2], dg[2];
	char buf[10];

	make_pipe(fds);
	make_pair(sv);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, dg), 0);
	DO(read, file, buf, 0);
	DO(write, file, buf, 0);
	DO(pread, file, buf, 0, 3);
	DO(read, fds[0], buf, 0);
	DO(write, fds[1], buf, 0);
	DO(read, sv[0], buf, 0);
	DO(write, sv[0], buf, 0);
	DO(send, sv[0], buf, 0, 0);
	DO(writev, sv[0], NULL, 0);
	DO(readv, sv[0], NULL, 0);
	DO(write, dg[0], buf, 0);
	DO(send, dg[0], buf, 0, 0);
	DO(recv, dg[1], buf, sizeof(buf), 0);
	DO(recv, dg[1], buf, sizeof(buf), MSG_DONTWAIT);
	CHECK_EQ(write(sv[0], "a", 1), 1);
	DO(recv, sv[1], buf, 0, 0);
	DO(recv, sv[1], buf, sizeof(buf), 0);
	DO(sendfile, sv[0], file, NULL, 0);
	DO(splice, fds[0], NULL, fds[1], NULL, 0, 0);
	DO(read, fds[1], buf, 0);
	DO(read, -1, buf, 0);
}

/* All kinds of descriptors: flags before, during and after. */
static void flags_untouched(void)
{
	int fds[8], pipe_fds[2], sv[2], tcp[2], before[8];
	struct op ops[8] = { 0 };
	char buf[8][8];
	uint16_t port;

	make_pipe(pipe_fds);
	make_pair(sv);
	make_tcp_pair(tcp);
	memcpy(fds,
	       (int[]){ pipe_fds[0], sv[0], tcp[0], eventfd(0, 0),
			make_listener(&port), pipe_fds[1], sv[1],
			make_file("file", 5) },
	       sizeof(fds));
	for (int i = 0; i < 8; i++)
		before[i] = fcntl(fds[i], F_GETFL);
	for (int i = 0; i < 4; i++)
		POST(read, &ops[i], fds[i], buf[i], 8);
	POST(accept, &ops[4], fds[4], NULL, NULL);
	fill_up(pipe_fds[1]);
	POST(write, &ops[5], fds[5], "x", 1);
	POST(write, &ops[6], fds[6], "x", 1);
	POST(read, &ops[7], fds[7], buf[7], 8);
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 8; i++)
			CHECK_EQ(fcntl(fds[i], F_GETFL), before[i]);
		run_ms(1);
	}
	for (int i = 0; i < 8; i++) {
		if (!ops[i].nr_done)
			CHECK_EQ(flexsc_cancel(&ops[i].ev), 0);
		WAIT(&ops[i]);
		CHECK_EQ(fcntl(fds[i], F_GETFL), before[i]);
	}
}

/* Two reads wait for one descriptor: each message wakes one of them. */
static void two_readers(void)
{
	struct op ops[3] = { 0 };
	unsigned long expected;
	char buf[3][10];
	int sv[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	for (int round = 0; round < 50; round++) {
		expected = nr_ops_done;
		for (int i = 0; i < 3; i++)
			POST(read, &ops[i], sv[0], buf[i], sizeof(buf[i]));
		if (round & 1)
			run_ms(1);
		for (int i = 0; i < 3; i++) {
			CHECK_EQ(write(sv[1], "abcdef", (size_t)i + 1), i + 1);
			RUN_UNTIL(nr_ops_done, expected + (unsigned)i + 1);
		}
		CHECK_EQ(ops[0].ev.ret + ops[1].ev.ret + ops[2].ev.ret, 6);
	}
	/* And both at once when everything is there at once. */
	POST(read, &ops[0], sv[0], buf[0], 10);
	POST(read, &ops[1], sv[0], buf[1], 10);
	run_ms(5);
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	CHECK_EQ(write(sv[1], "de", 2), 2);
	CHECK_EQ(WAIT(&ops[0]) + WAIT(&ops[1]), 5);
	/* The end is for all of them. */
	POST(read, &ops[0], sv[0], buf[0], 10);
	POST(read, &ops[1], sv[0], buf[1], 10);
	run_ms(5);
	close(sv[1]);
	CHECK_EQ(WAIT(&ops[0]), 0);
	CHECK_EQ(WAIT(&ops[1]), 0);
}

/* Reads one by one what came in one go: none of them waits for more. */
static void burst(int in, int out, const struct msghdr *msg)
{
	uint64_t begin = now_ns();
	struct op op = { 0 };
	char buf[100];

	for (int round = 0; round < 10; round++) {
		POST(read, &op, in, buf, sizeof(buf));
		run_ms(1);
		for (int i = 0; i < 3; i++)
			CHECK_EQ(msg ? sendmsg(out, msg, 0) :
				       write(out, "abc", 3), 3);
		for (int i = 0; i < 3; i++) {
			if (i)
				POST(read, &op, in, buf, sizeof(buf));
			CHECK_EQ(WAIT(&op), 3);
		}
	}
	CHECK_IN(now_ns() - begin, 0, 400 * MS * slowness());
}

/* A short read does not say that there is nothing left. */
static void messages(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);
	int sv[2], fds[2];
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)),
				  .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { .iov_base = (char[]){ "abc" }, .iov_len = 3 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };

	CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, sv), 0);
	burst(sv[0], sv[1], NULL);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	burst(sv[0], sv[1], NULL);
	sv[0] = socket(AF_INET, SOCK_DGRAM, 0);
	sv[1] = socket(AF_INET, SOCK_DGRAM, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_EQ(bind(sv[0], (void *)&address, size), 0);
	CHECK_EQ(getsockname(sv[0], (void *)&address, &size), 0);
	CHECK_EQ(connect(sv[1], (void *)&address, size), 0);
	burst(sv[0], sv[1], NULL);
	CHECK_EQ(pipe2(fds, O_DIRECT), 0);
	burst(fds[0], fds[1], NULL);
	/* A descriptor that is passed ends a read of a stream. */
	make_pair(sv);
	memcpy(CMSG_DATA(&control.header), &fds[0], sizeof(int));
	burst(sv[0], sv[1], &msg);
}

/* A stream written by many calls and read by many: every byte once. */
static void many_on_one(void)
{
	enum {
		NR = 64,
		SIZE = 1000,
		TOTAL = NR * SIZE
	};
	static struct op reads[NR], writes[NR];
	static uint8_t in[NR][SIZE];
	unsigned long sum = 0, nr = 0;
	static uint8_t out[SIZE];
	int fds[2];

	make_pipe(fds);
	memset(out, 3, SIZE);
	for (int i = 0; i < NR; i++) {
		POST(read, &reads[i], fds[0], in[i], SIZE);
		POST(write, &writes[i], fds[1], out, SIZE);
	}
	for (int i = 0; i < NR; i++)
		CHECK_EQ(WAIT(&writes[i]), SIZE);
	close(fds[1]);
	for (int i = 0; i < NR; i++) {
		int64_t ret = WAIT(&reads[i]);

		CHECK_IN(ret, 0, SIZE);
		for (int64_t j = 0; j < ret; j++)
			sum += in[i][j];
		nr += (unsigned long)ret;
	}
	while (nr < TOTAL) {
		int64_t ret = CALL(read, fds[0], in[0], SIZE);

		CHECK_IN(ret, 1, SIZE);
		nr += (unsigned long)ret;
		sum += 3 * (unsigned long)ret;
	}
	CHECK_EQ(nr, TOTAL);
	CHECK_EQ(sum, 3 * TOTAL);
}

static void *answer(void *arg)
{
	int fd = *(int *)arg;
	static uint8_t buf[65536];
	size_t left = 1 << 20;

	sleep_ms(20);
	while (left) {
		ssize_t ret = read(fd, buf, sizeof(buf));

		CHECK(ret > 0);
		left -= (size_t)ret;
	}
	sleep_ms(20);
	CHECK_EQ(write(fd, "answer", 6), 6);
	return NULL;
}

static void read_and_write(void)
{
	struct op in = { 0 }, out = { 0 };
	uint8_t *bytes = calloc(1, 1 << 20);
	void (*const makes[])(int *) = { make_pair, make_tcp_pair };
	char buf[10];
	int sv[2];

	for (int i = 0; i < 4; i++) {
		pthread_t thread;

		makes[i & 1](sv);
		if (i < 2)
			POST(read, &in, sv[0], buf, sizeof(buf));
		POST(write, &out, sv[0], bytes, 1 << 20);
		if (i >= 2)
			POST(read, &in, sv[0], buf, sizeof(buf));
		run_ms(5);
		CHECK_EQ(in.nr_done, 0);
		thread = thread_start(answer, &sv[1]);
		CHECK_EQ(WAIT(&out), 1 << 20);
		CHECK_EQ(in.nr_done, 0);
		CHECK_EQ(WAIT(&in), 6);
		thread_join(thread);
		close(sv[0]);
		close(sv[1]);
	}
	free(bytes);
}

/* Data and the end arrive at once: neither hides the other. */
static void data_with_end(void)
{
	void (*const makes[])(int *) = { make_pair, make_tcp_pair, make_pipe };
	char buf[10];
	int fds[2];

	for (int i = 0; i < 300; i++) {
		struct op op = { 0 };

		makes[i % 3](fds);
		if (i & 1) {
			POST(read, &op, fds[0], buf, sizeof(buf));
			flexsc_loop_poll(loop, i & 2 ? (int64_t)MS : 0);
		}
		CHECK_EQ(write(fds[1], "abcde", 5), 5);
		CHECK_EQ(close(fds[1]), 0);
		if (!(i & 1))
			POST(read, &op, fds[0], buf, sizeof(buf));
		CHECK_EQ(WAIT(&op), 5);
		CHECK_EQ(CALL(read, fds[0], buf, sizeof(buf)), 0);
		CHECK_EQ(CALL(close, fds[0]), 0);
	}
}

/* Numbers ------------------------------------------------------------------ */

static bool numbers_free, numbers_used;

static void *use_numbers(void *unused)
{
	struct flexsc_loop *own = new_loop(0, 0);
	int sv[4];

	(void)unused;
	make_pair(sv);
	make_pair(sv + 2);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(write(sv[i], "mine", 4), 4);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(flexsc_close(NULL, sv[i]), 0);
	CHECK_EQ(flexsc_loop_run(own), 0);
	__atomic_store_n(&numbers_free, true, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&numbers_used, __ATOMIC_RELAXED))
		sleep_ms(1);
	end_loop(own);
	return NULL;
}

/*
 * A loop's own descriptors have the numbers of what another thread used and
 * closed by its loop; TSan, which saw that use and no close, is to be quiet.
 */
static void numbers_again(void)
{
	pthread_t thread = thread_start(use_numbers, NULL);

	while (!__atomic_load_n(&numbers_free, __ATOMIC_RELAXED))
		sleep_ms(1);
	end_loop(new_loop(0, 0));
	__atomic_store_n(&numbers_used, true, __ATOMIC_RELAXED);
	thread_join(thread);
}

/* Accepting in two processes with two loops each -------------------------- */

enum {
	NR_CLIENTS = 1500,
	NR_ACCEPTS = 4
};

struct server {
	struct flexsc_loop *loop;
	int listener;
	struct flexsc_event accepts[NR_ACCEPTS];
};

static void accepted(struct flexsc_event *ev)
{
	struct server *server = ev->data;
	int fd = (int)ev->ret;

	if (fd >= 0) {
		CHECK_EQ(write(fd, "s", 1), 1);
		CHECK_EQ(flexsc_close(NULL, fd), 0);
	} else {
		CHECK_EQ(fd, -EINVAL); /* the listener was shut down */
		return;
	}
	CHECK_EQ(flexsc_accept(ev, server->listener, NULL, NULL), 0);
}

static void *serve(void *arg)
{
	struct server server = { .listener = *(int *)arg };

	server.loop = new_loop(0, 0);
	for (int i = 0; i < NR_ACCEPTS; i++) {
		server.accepts[i].handler = accepted;
		server.accepts[i].data = &server;
		CHECK_EQ(flexsc_accept(&server.accepts[i], server.listener,
				       NULL, NULL),
			 0);
	}
	CHECK_EQ(flexsc_loop_run(server.loop), 0);
	end_loop(server.loop);
	return NULL;
}

static pid_t start_server(int listener)
{
	pid_t pid = fork_or_fail();
	pthread_t thread;

	if (pid)
		return pid;
	thread = thread_start(serve, &listener);
	serve(&listener);
	thread_join(thread);
	_exit(EXIT_SUCCESS);
}

static void shared_listener(void)
{
	uint16_t port;
	int listener = make_listener(&port), fds[20];
	pid_t pids[2] = { start_server(listener), start_server(listener) };

	for (int i = 0; i < NR_CLIENTS; i += 20) {
		for (int j = 0; j < 20; j++)
			fds[j] = connect_to(port);
		for (int j = 0; j < 20; j++) {
			struct pollfd ready = { .fd = fds[j],
						.events = POLLIN };
			char byte;

			if (poll(&ready, 1, 4000 * (int)slowness()) != 1)
				FAIL("connection %d was not served", i + j);
			CHECK_EQ(read(fds[j], &byte, 1), 1);
			CHECK_EQ(read(fds[j], &byte, 1), 0);
			close(fds[j]);
		}
		if (i % 300 == 0)
			sleep_ms(5); /* let them park */
	}
	CHECK_EQ(shutdown(listener, SHUT_RDWR), 0);
	reap_child(pids[0], EXIT_SUCCESS);
	reap_child(pids[1], EXIT_SUCCESS);
}

/* Another process takes what was announced: the parked call waits on. */
static void stolen_data(void)
{
	struct op op = { 0 };
	char buf[10];
	int sv[2];

	make_pair(sv);
	for (int i = 0; i < 200; i++) {
		POST(read, &op, sv[0], buf, sizeof(buf));
		if (i & 1)
			flexsc_loop_poll(loop, 0);
		CHECK_EQ(write(sv[1], "stolen", 6), 6);
		/* Before the loop sees it, if it has not yet. */
		if (recv(sv[0], buf, sizeof(buf), MSG_DONTWAIT) == 6) {
			flexsc_loop_poll(loop, 0);
			flexsc_loop_poll(loop, 0);
			CHECK_EQ(op.nr_done, 0);
			CHECK_EQ(write(sv[1], "mine", 4), 4);
			CHECK_EQ(WAIT(&op), 4);
		} else {
			CHECK_EQ(WAIT(&op), 6);
		}
	}
}

static const struct test tests[] = {
	{ "nothing_moved", nothing_moved, TEST_BOTH },
	{ "flags_untouched", flags_untouched, 0 },
	{ "two_readers", two_readers, 0 },
	{ "messages", messages, 0 },
	{ "many_on_one", many_on_one, 0 },
	{ "read_and_write", read_and_write, 0 },
	{ "data_with_end", data_with_end, 0 },
	{ "numbers_again", numbers_again, TEST_NO_LOOP },
	{ "shared_listener", shared_listener, TEST_NO_LOOP | TEST_SLOW },
	{ "stolen_data", stolen_data, 0 },
};

int main(int argc, char **argv)
{
	return run_group(argc, argv, tests, ARRAY_SIZE(tests));
}
