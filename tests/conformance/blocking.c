/* SPDX-License-Identifier: MIT */
/*
 * What a blocking call promises and an engine that only tries has to rebuild:
 * whole writes, MSG_WAITALL, time-outs of sockets, ends of streams and
 * broken ones without signals; and the flags of descriptors, never touched.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

enum {
	BIG = 4 << 20
};

/* Takes what a descriptor gives, a little at a time, and checks it. */
struct drain {
	int fd;
	size_t chunk;
	uint64_t nr;
};

static void *drain(void *arg)
{
	struct drain *d = arg;
	uint8_t *buf = malloc(d->chunk);
	ssize_t ret;

	while ((ret = read(d->fd, buf, 1 + (d->nr * 31) % d->chunk)) > 0) {
		CHECK(filled(buf, d->nr, (size_t)ret));
		d->nr += (uint64_t)ret;
	}
	CHECK_EQ(ret, 0);
	free(buf);
	return NULL;
}

static void write_whole_to(int in, int out, size_t chunk)
{
	struct drain d = { .fd = out, .chunk = chunk };
	uint8_t *bytes = malloc(BIG);
	struct op op = { 0 };
	pthread_t thread;

	fill(bytes, 0, BIG);
	POST(write, &op, in, bytes, BIG);
	run_ms(20);
	CHECK_EQ(op.nr_done, 0);
	thread = thread_start(drain, &d);
	CHECK_EQ(WAIT(&op), BIG);
	CHECK_EQ(CALL(close, in), 0);
	thread_join(thread);
	CHECK_EQ(d.nr, BIG);
	close(out);
	free(bytes);
}

static void write_whole(void)
{
	int fds[2];

	make_pair(fds);
	write_whole_to(fds[0], fds[1], 100000);
	make_pair(fds);
	write_whole_to(fds[0], fds[1], 5000);
	make_tcp_pair(fds);
	write_whole_to(fds[0], fds[1], 60000);
	make_pipe(fds);
	write_whole_to(fds[1], fds[0], 30000);
	make_pipe(fds);
	write_whole_to(fds[1], fds[0], 4097);
}

static void send_whole(void)
{
	struct drain d = { .chunk = 50000 };
	uint8_t *bytes = malloc(BIG);
	struct iovec iov = { .iov_base = bytes, .iov_len = BIG / 2 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	pthread_t thread;
	int64_t sent;
	int sv[2];

	fill(bytes, 0, BIG);
	make_tcp_pair(sv);
	d.fd = sv[1];
	thread = thread_start(drain, &d);
	CHECK_EQ(CALL(send, sv[0], bytes, BIG / 4, 0), BIG / 4);
	CHECK_EQ(CALL(sendto, sv[0], bytes + BIG / 4, BIG / 4, 0, NULL, 0),
		 BIG / 4);
	iov.iov_base = bytes + BIG / 2;
	CHECK_EQ(CALL(sendmsg, sv[0], &msg, 0), BIG / 2);
	CHECK_EQ(iov.iov_len, BIG / 2); /* the caller's memory is not changed */
	shutdown(sv[0], SHUT_WR);
	thread_join(thread);
	CHECK_EQ(d.nr, BIG);
	/* Not to wait is a promise too. */
	fill_up(sv[1]);
	/* What was sent goes on to the peer, which may make room again. */
	do
		sent = CALL(send, sv[1], bytes, BIG, MSG_DONTWAIT);
	while (sent > 0);
	CHECK_EQ(sent, -EAGAIN);
	free(bytes);
}

/* Gives a descriptor some bytes, in pieces. */
struct feed {
	int fd;
	size_t total, piece;
	unsigned int ms;
};

static void *feed(void *arg)
{
	struct feed *f = arg;
	uint8_t *buf = malloc(f->piece);

	for (size_t at = 0; at < f->total;) {
		size_t len = f->total - at;

		if (len > f->piece)
			len = f->piece;
		fill(buf, at, len);
		CHECK_EQ(send(f->fd, buf, len, MSG_NOSIGNAL), len);
		at += len;
		sleep_ms(f->ms);
	}
	free(buf);
	return NULL;
}

static void waitall_on(void (*make)(int *))
{
	struct feed f = { .total = 100000, .piece = 9999, .ms = 2 };
	uint8_t *buf = malloc(200000);
	pthread_t thread;
	int sv[2];

	make(sv);
	f.fd = sv[1];
	thread = thread_start(feed, &f);
	CHECK_EQ(CALL(recv, sv[0], buf, 100000, MSG_WAITALL), 100000);
	CHECK(filled(buf, 0, 100000));
	thread_join(thread);
	/* Without it the first bytes are enough. */
	f.ms = 10;
	thread = thread_start(feed, &f);
	CHECK_IN(CALL(recv, sv[0], buf, 100000, 0), 1, 99999);
	thread_join(thread);
	while (recv(sv[0], buf, 200000, MSG_DONTWAIT) > 0)
		;
	/* The end of the stream ends it. */
	thread = thread_start(feed, &f);
	CHECK_EQ(CALL(recv, sv[0], buf, 50000, MSG_WAITALL), 50000);
	thread_join(thread);
	shutdown(sv[1], SHUT_WR);
	CHECK_EQ(CALL(recv, sv[0], buf, 90000, MSG_WAITALL), 50000);
	CHECK(filled(buf, 50000, 50000));
	CHECK_EQ(CALL(recv, sv[0], buf, 90000, MSG_WAITALL), 0);
	/* It does not make a call wait that says it will not. */
	CHECK_EQ(send(sv[0], buf, 10, 0), 10);
	sleep_ms(5);
	CHECK_EQ(CALL(recv, sv[1], buf, 90, MSG_WAITALL | MSG_DONTWAIT), 10);
	free(buf);
	close(sv[0]);
	close(sv[1]);
}

static void waitall(void)
{
	waitall_on(make_pair);
	waitall_on(make_tcp_pair);
}

static const size_t odd_sizes[] = { 1,	   0, 3,     4095, 4097, 0,
				    65537, 7, 99999, 1,	   512,	 123457 };
enum {
	NR_ODD = ARRAY_SIZE(odd_sizes)
};

static size_t odd_vectors(struct iovec *iov, uint8_t *bytes)
{
	size_t at = 0;

	for (int i = 0; i < NR_ODD; i++) {
		iov[i].iov_base = bytes + at;
		iov[i].iov_len = odd_sizes[i];
		at += odd_sizes[i];
	}
	return at;
}

static void write_vectors(void)
{
	uint8_t *bytes = malloc(1 << 20);
	struct iovec iov[NR_ODD], before[NR_ODD];
	size_t total = odd_vectors(iov, bytes);

	memcpy(before, iov, sizeof(iov));
	fill(bytes, 0, total);
	for (size_t chunk = 1000; chunk < 200000; chunk = chunk * 3 + 1) {
		struct drain d = { .chunk = chunk };
		struct op op = { 0 };
		pthread_t thread;
		int fds[2];

		if (chunk & 1)
			make_pair(fds);
		else
			make_pipe(fds);
		d.fd = fds[!!(chunk & 1)];
		POST(writev, &op, fds[!(chunk & 1)], iov, NR_ODD);
		run_ms(3);
		thread = thread_start(drain, &d);
		CHECK_EQ(WAIT(&op), total);
		close(fds[!(chunk & 1)]);
		thread_join(thread);
		CHECK_EQ(d.nr, total);
		CHECK(!memcmp(before, iov, sizeof(iov)));
		close(d.fd);
	}
	free(bytes);
}

static void read_vectors(void)
{
	uint8_t *bytes = calloc(1, 1 << 20);
	struct iovec iov[NR_ODD], before[NR_ODD];
	size_t total = odd_vectors(iov, bytes);
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = NR_ODD };
	struct feed f = { .total = total, .piece = 33333, .ms = 1 };
	pthread_t thread;
	int sv[2];

	memcpy(before, iov, sizeof(iov));
	make_pair(sv);
	f.fd = sv[1];
	thread = thread_start(feed, &f);
	CHECK_EQ(CALL(recvmsg, sv[0], &msg, MSG_WAITALL), total);
	thread_join(thread);
	CHECK(filled(bytes, 0, total));
	CHECK(!memcmp(before, iov, sizeof(iov)));
	/* readv takes what there is, across the vectors. */
	memset(bytes, 0, total);
	f.total = 5000;
	f.piece = 5000;
	thread = thread_start(feed, &f);
	CHECK_EQ(CALL(readv, sv[0], iov, NR_ODD), 5000);
	CHECK(filled(bytes, 0, 5000));
	CHECK_EQ(bytes[5000], 0);
	thread_join(thread);
	free(bytes);
}

/* The owner of a descriptor said that it must not block: no waiting. */
static void nonblocking(void)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	uint8_t *buf = calloc(1, BIG);
	int fds[2], sv[2], ev, listener, out;
	uint64_t begin = now_ns();
	uint16_t port;

	CHECK_EQ(pipe2(fds, O_NONBLOCK), 0);
	CHECK_EQ(CALL(read, fds[0], buf, 10), -EAGAIN);
	CHECK_EQ(CALL(write, fds[1], buf, BIG), 65536);
	CHECK_EQ(CALL(write, fds[1], buf, BIG), -EAGAIN);
	make_pair(sv);
	CHECK_EQ(fcntl(sv[0], F_SETFL, O_RDWR | O_NONBLOCK), 0);
	CHECK_EQ(CALL(read, sv[0], buf, 10), -EAGAIN);
	/* What came since must be found by trying: no edge will tell. */
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	CHECK_EQ(CALL(read, sv[0], buf, 10), 3);
	CHECK_EQ(CALL(recv, sv[0], buf, 10, MSG_WAITALL), -EAGAIN);
	CHECK_EQ(CALL(recv, sv[1], buf, 10, MSG_DONTWAIT), -EAGAIN);
	CHECK_IN(CALL(write, sv[0], buf, BIG), 1, BIG - 1);
	fill_up(sv[0]);
	CHECK_EQ(CALL(send, sv[0], buf, 10, 0), -EAGAIN);
	ev = eventfd(0, EFD_NONBLOCK);
	CHECK_EQ(CALL(read, ev, buf, 8), -EAGAIN);
	listener = make_listener(&port);
	CHECK_EQ(fcntl(listener, F_SETFL, O_RDWR | O_NONBLOCK), 0);
	CHECK_EQ(CALL(accept, listener, NULL, NULL), -EAGAIN);
	CHECK_EQ(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
	out = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK_EQ(CALL(connect, out, (struct sockaddr *)&addr, len),
		 -EINPROGRESS);
	CHECK_IN(now_ns() - begin, 0, 800 * slowness() * MS);
	free(buf);
}

/* It may say so, or take it back, while a read is parked. */
static void nonblocking_changed(void)
{
	struct op op = { 0 };
	char buf[10];
	int sv[2];

	make_pair(sv);
	POST(read, &op, sv[0], buf, sizeof(buf));
	run_ms(10);
	CHECK_EQ(fcntl(sv[0], F_SETFL, O_RDWR | O_NONBLOCK), 0);
	run_ms(60);
	CHECK_EQ(CALL(read, sv[0], buf, sizeof(buf)), -EAGAIN);
	CHECK_EQ(fcntl(sv[0], F_SETFL, O_RDWR), 0);
	CHECK_EQ(op.nr_done, 0);
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	CHECK_EQ(WAIT(&op), 3);
	POST(read, &op, sv[0], buf, sizeof(buf));
	run_ms(10);
	CHECK_EQ(op.nr_done, 0);
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	CHECK_EQ(WAIT(&op), 3);
}

/* Record an outcome that takes 100 ms. */
/*
 * The clock that moves with the kernel's ticks, as time-outs of sockets do: both
 * are late together where the machine has no time for a virtual one.
 */
static uint64_t ticks_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#define TIMED(what, call)                                         \
	({                                                        \
		uint64_t begin_ = ticks_ns();                     \
		int64_t ret_ = (call);                            \
		CHECK_IN(ticks_ns() - begin_, 95 * MS,            \
			 900 * slowness() * MS);                  \
		note(what, ret_);                                 \
	})

static void socket_timeouts(void)
{
	struct timeval limit = { .tv_usec = 100000 };
	int sv[2], listener, fds[2];
	uint16_t port;
	static uint8_t buf[1 << 20];

	make_pair(sv);
	setsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(sv[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	TIMED("read", EITHER(read, sv[0], buf, 10));
	TIMED("recv", EITHER(recv, sv[0], buf, 10, 0));
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	TIMED("all", EITHER(recv, sv[0], buf, 10, MSG_WAITALL));
	TIMED("part", EITHER(write, sv[0], buf, sizeof(buf)) > 0);
	TIMED("write", EITHER(write, sv[0], buf, 100000));
	TIMED("send", EITHER(send, sv[0], buf, 100000, 0));
	listener = make_listener(&port);
	setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	TIMED("accept", EITHER(accept, listener, NULL, NULL));
	make_tcp_pair(fds);
	setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	TIMED("tcp", EITHER(read, fds[0], buf, 10));
	/* Taken back: it waits again. */
	limit.tv_usec = 0;
	setsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (way == WAY_POSTED) {
		struct op op = { 0 };

		POST(read, &op, sv[0], buf, 10);
		run_ms(250);
		CHECK_EQ(op.nr_done, 0);
		CHECK_EQ(write(sv[1], "x", 1), 1);
		CHECK_EQ(WAIT(&op), 1);
	}
}

static void ends(void)
{
	struct linger abrupt = { .l_onoff = 1 };
	struct op op = { 0 };
	char buf[100];
	int sv[2];

	make_tcp_pair(sv);
	POST(read, &op, sv[0], buf, sizeof(buf));
	run_ms(5);
	close(sv[1]);
	CHECK_EQ(WAIT(&op), 0);
	CHECK_EQ(CALL(read, sv[0], buf, sizeof(buf)), 0);
	make_tcp_pair(sv);
	POST(read, &op, sv[0], buf, sizeof(buf));
	run_ms(5);
	setsockopt(sv[1], SOL_SOCKET, SO_LINGER, &abrupt, sizeof(abrupt));
	close(sv[1]);
	CHECK_EQ(WAIT(&op), -ECONNRESET);
	CHECK_EQ(CALL(read, sv[0], buf, sizeof(buf)), 0);
	/* Reset under a parked write. */
	make_tcp_pair(sv);
	fill_up(sv[0]);
	POST(write, &op, sv[0], buf, sizeof(buf));
	run_ms(5);
	CHECK_EQ(op.nr_done, 0);
	setsockopt(sv[1], SOL_SOCKET, SO_LINGER, &abrupt, sizeof(abrupt));
	close(sv[1]);
	CHECK_EQ(WAIT(&op), -ECONNRESET);
	/* Our own shutdown ends a parked read. */
	make_pair(sv);
	POST(read, &op, sv[0], buf, sizeof(buf));
	run_ms(5);
	CHECK_EQ(CALL(shutdown, sv[0], SHUT_RD), 0);
	CHECK_EQ(WAIT(&op), 0);
}

static volatile sig_atomic_t nr_signals;

/* What was only looked at is still there. */
static void peeks(void)
{
	struct op op = { 0 };
	uint64_t waited_ns = 0;
	char buf[64];
	int sv[2];

	make_tcp_pair(sv);
	for (int i = 0; i < 20; i++) {
		uint64_t begin;

		POST(recv, &op, sv[0], buf, sizeof(buf), MSG_PEEK);
		run_ms(0);
		CHECK(op.posted);
		CHECK_EQ(write(sv[1], "abc", 3), 3);
		CHECK_EQ(WAIT(&op), 3);
		begin = now_ns();
		POST(recv, &op, sv[0], buf, sizeof(buf), 0);
		CHECK_EQ(WAIT(&op), 3);
		waited_ns += now_ns() - begin;
	}
	CHECK_IN(waited_ns, 0, 150 * MS);
	close(sv[0]);
	close(sv[1]);
}

static void count_signal(int sig)
{
	(void)sig;
	nr_signals++;
}

static void broken(int file)
{
	struct iovec iov = { .iov_base = (char[]){ "abc" }, .iov_len = 3 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[2], sv[2];

	make_pipe(fds);
	close(fds[0]);
	CHECK_EQ(CALL(write, fds[1], "x", 1), -EPIPE);
	CHECK_EQ(CALL(writev, fds[1], &iov, 1), -EPIPE);
	CHECK_EQ(CALL(sendfile, fds[1], file, NULL, 5), -EPIPE);
	CHECK_EQ(CALL(splice, file, NULL, fds[1], NULL, 5, 0), -EPIPE);
	make_pair(sv);
	close(sv[1]);
	CHECK_EQ(CALL(write, sv[0], "x", 1), -EPIPE);
	CHECK_EQ(CALL(send, sv[0], "x", 1, 0), -EPIPE);
	CHECK_EQ(CALL(sendmsg, sv[0], &msg, 0), -EPIPE);
	CHECK_EQ(CALL(sendfile, sv[0], file, NULL, 5), -EPIPE);
	make_tcp_pair(sv);
	CHECK_EQ(shutdown(sv[0], SHUT_WR), 0);
	CHECK_EQ(CALL(writev, sv[0], &iov, 1), -EPIPE);
	CHECK_EQ(CALL(send, sv[0], "x", 1, MSG_NOSIGNAL), -EPIPE);
	CHECK_EQ(CALL(sendfile, sv[0], file, NULL, 5), -EPIPE);
}

static void no_sigpipe(void)
{
	static uint8_t buf[1 << 20];
	int file = make_file("file", 10), fds[2];
	struct op op = { 0 };
	sigset_t set, pending;

	broken(file); /* the default action would end the process */
	make_pipe(fds);
	POST(write, &op, fds[1], buf, sizeof(buf)); /* broken when parked */
	run_ms(5);
	close(fds[0]);
	CHECK_EQ(WAIT(&op), 65536);
	signal(SIGPIPE, count_signal);
	broken(file);
	CHECK_EQ(nr_signals, 0);
	/* The application's own pending SIGPIPE stays pending. */
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	sigprocmask(SIG_BLOCK, &set, NULL);
	broken(file);
	sigpending(&pending);
	CHECK(!sigismember(&pending, SIGPIPE));
	raise(SIGPIPE);
	broken(file);
	sigpending(&pending);
	CHECK(sigismember(&pending, SIGPIPE));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	CHECK_EQ(nr_signals, 1);
}

static void no_sigxfsz(void)
{
	struct rlimit limit = { .rlim_cur = 4096, .rlim_max = 4096 };
	static uint8_t buf[10000];
	int fd = make_file("file", 0);

	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	CHECK_EQ(CALL(write, fd, buf, sizeof(buf)), 4096);
	CHECK_EQ(CALL(write, fd, buf, sizeof(buf)), -EFBIG);
	CHECK_EQ(CALL(pwrite, fd, buf, 10, 5000), -EFBIG);
	CHECK_EQ(CALL(ftruncate, fd, 5000), -EFBIG);
	CHECK_EQ(CALL(truncate, "file", 5000), -EFBIG);
	CHECK_EQ(CALL(fallocate, fd, 0, 0, 5000), -EFBIG);
}

static const struct test tests[] = {
	{ "write_whole", write_whole, TEST_SLOW },
	{ "send_whole", send_whole, 0 },
	{ "waitall", waitall, 0 },
	{ "write_vectors", write_vectors, 0 },
	{ "read_vectors", read_vectors, 0 },
	{ "nonblocking", nonblocking, 0 },
	{ "nonblocking_changed", nonblocking_changed, 0 },
	{ "socket_timeouts", socket_timeouts, TEST_BOTH },
	{ "ends", ends, 0 },
	{ "peeks", peeks, 0 },
	{ "no_sigpipe", no_sigpipe, 0 },
	{ "no_sigxfsz", no_sigxfsz, 0 },
};

int main(int argc, char **argv)
{
	return run_group(argc, argv, tests, ARRAY_SIZE(tests));
}
