/* SPDX-License-Identifier: MIT */
/*
 * Waiting for readiness without a call, as who embeds a TLS library does; and
 * taking the result of what was over when it was posted.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

enum {
	ROUNDS = 200
};

static void set_nonblocking(int fd)
{
	CHECK_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

/*
 * Until it stays full: an acknowledgement that comes late makes room again, and
 * the buffer grow. They and probes take 200 ms at most.
 */
static void fill_for_good(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	do
		fill_up(fd);
	while (poll(&p, 1, 300) > 0);
}

/* Both directions, before and after; O_NONBLOCK and time-outs do not matter. */
static void either_way(void)
{
	struct timeval limit = { .tv_usec = 10000 };
	struct op op = { 0 };
	int sv[2];

	make_tcp_pair(sv);
	set_nonblocking(sv[0]);
	CHECK_EQ(setsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &limit,
			    sizeof(limit)),
		 0);
	CHECK_EQ(CALL(ready, sv[0], POLLOUT), POLLOUT);
	POST(ready, &op, sv[0], POLLIN);
	run_ms(40);
	CHECK_EQ(op.nr_done, 0);
	CHECK_EQ(write(sv[1], "x", 1), 1);
	CHECK_EQ(WAIT(&op), POLLIN);
	/* It took nothing. */
	CHECK_EQ(CALL(ready, sv[0], POLLIN), POLLIN);
	fill_for_good(sv[0]);
	POST(ready, &op, sv[0], POLLOUT);
	run_ms(20);
	CHECK_EQ(op.nr_done, 0);
	close(sv[1]);
	CHECK(WAIT(&op) & (POLLOUT | POLLERR | POLLHUP));
	CHECK(CALL(ready, sv[0], POLLIN | POLLRDHUP) & POLLIN);
}

/* As an event loop uses it: try, wait for the next thing, try. */
static void next_time(void)
{
	struct op op = { 0 };
	unsigned int nr_got = 0;
	char buf[8];
	int sv[2];

	make_tcp_pair(sv);
	set_nonblocking(sv[0]);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		bool early = i % 3 == 0;

		/* On the way before it is waited for; and after. */
		if (early)
			CHECK_EQ(write(sv[1], "x", 1), 1);
		POST(ready, &op, sv[0], POLLIN | POLLRDHUP | FLEXSC_READY_NEXT);
		if (!early)
			CHECK_EQ(write(sv[1], "x", 1), 1);
		for (;;) {
			ssize_t n;

			CHECK(WAIT(&op) & POLLIN);
			n = read(sv[0], buf, sizeof(buf));
			if (n > 0) {
				nr_got += (unsigned int)n;
				break;
			}
			/* For nothing: allowed. */
			CHECK(n < 0 && errno == EAGAIN);
			POST(ready, &op, sv[0],
			     POLLIN | POLLRDHUP | FLEXSC_READY_NEXT);
		}
	}
	CHECK_EQ(nr_got, ROUNDS);
	/* The end of the stream, together with the last bytes and alone. */
	POST(ready, &op, sv[0], POLLIN | POLLRDHUP | FLEXSC_READY_NEXT);
	CHECK_EQ(write(sv[1], "x", 1), 1);
	close(sv[1]);
	while (nr_got == ROUNDS) {
		WAIT(&op);
		if (read(sv[0], buf, sizeof(buf)) == 1)
			nr_got++;
		POST(ready, &op, sv[0], POLLIN | POLLRDHUP | FLEXSC_READY_NEXT);
	}
	do {
		WAIT(&op);
		nr_got = (unsigned int)read(sv[0], buf, sizeof(buf));
		if (nr_got)
			POST(ready, &op, sv[0],
			     POLLIN | POLLRDHUP | FLEXSC_READY_NEXT);
	} while (nr_got);
}

static void next_room(void)
{
	struct op op = { 0 };
	char buf[65536];
	int sv[2];

	make_tcp_pair(sv);
	set_nonblocking(sv[0]);
	set_nonblocking(sv[1]);
	for (unsigned int i = 0; i < 5; i++) {
		fill_up(sv[0]);
		POST(ready, &op, sv[0], POLLOUT | FLEXSC_READY_NEXT);
		while (read(sv[1], buf, sizeof(buf)) > 0 || !op.nr_done)
			CHECK(flexsc_loop_poll(loop, MS) >= 0);
		CHECK(op.ev.ret & POLLOUT);
	}
}

static void ended(void)
{
	struct op op = { 0 };
	int64_t bad;
	int sv[2];

	make_pair(sv);
	POST(ready, &op, sv[0], POLLIN);
	run_ms(1);
	CHECK_EQ(flexsc_cancel(&op.ev), 0);
	CHECK_EQ(WAIT(&op), -ECANCELED);
	POST(ready, &op, sv[0], POLLIN | FLEXSC_READY_NEXT);
	run_ms(5);
	flexsc_forget(sv[0]);
	CHECK_EQ(WAIT(&op), -ECANCELED);
	bad = CALL(ready, 999, POLLIN);
	CHECK(bad == POLLNVAL || bad == -EBADF);
	bad = CALL(ready, 999, POLLIN | FLEXSC_READY_NEXT);
	CHECK(bad == POLLNVAL || bad == -EBADF);
	CHECK_EQ(flexsc_ready(&op.ev, sv[0], 0), -EINVAL);
	CHECK_EQ(flexsc_ready(&op.ev, sv[0], POLLIN | POLLOUT), -EINVAL);
	CHECK_EQ(flexsc_ready(&op.ev, sv[0], FLEXSC_READY_NEXT), -EINVAL);
	CHECK_EQ(flexsc_ready(&op.ev, sv[0], POLLIN | 0x40000), -EINVAL);
}

/* A wait, and the call that it is for, without returning in between. */
static void in_chain(void)
{
	struct op wait = { 0 }, got = { 0 };
	char buf[8];
	int sv[2];

	make_tcp_pair(sv);
	set_nonblocking(sv[0]);
	CHECK_EQ(flexsc_chain_begin(), 0);
	POST(ready, &wait, sv[0], POLLIN);
	POST(recv, &got, sv[0], buf, sizeof(buf), 0);
	CHECK_EQ(flexsc_chain_end(), 0);
	run_ms(5);
	CHECK_EQ(write(sv[1], "four", 4), 4);
	CHECK_EQ(WAIT(&got), 4);
	CHECK_EQ(wait.nr_done, 1);
	CHECK_EQ(wait.ev.ret, POLLIN);
}

static void taken(void)
{
	struct op op = { 0 }, other = { 0 };
	int sv[2], took;
	char buf[8];

	make_pair(sv);
	CHECK_EQ(flexsc_take(&op.ev), 0); /* never posted */
	CHECK_EQ(write(sv[1], "four", 4), 4);
	POST(recv, &op, sv[0], buf, sizeof(buf), 0);
	POST(ready, &other, sv[0], POLLOUT);
	took = flexsc_take(&op.ev);
	if (took) {
		CHECK_EQ(op.ev.ret, 4);
		CHECK(!flexsc_pending(&op.ev));
		CHECK_EQ(flexsc_take(&op.ev), 0);
		op.posted = false;
	} else {
		CHECK_EQ(WAIT(&op), 4);
	}
	CHECK_EQ(WAIT(&other), POLLOUT);
	CHECK_EQ(op.nr_done, !took);
	CHECK_EQ(flexsc_loop_outstanding(loop), 0);
	/* The event is free again; what is not over cannot be taken. */
	POST(recv, &op, sv[0], buf, sizeof(buf), 0);
	CHECK_EQ(flexsc_take(&op.ev), 0);
	CHECK_EQ(write(sv[1], "x", 1), 1);
	CHECK_EQ(WAIT(&op), 1);
	if (strcmp(flexsc_loop_engine(loop), "poll") == 0)
		CHECK(took);
}

/* Does this engine do it? O_NONBLOCK says -EAGAIN before. */
static bool ignores_nonblock(int fd)
{
	int ret = flexsc_ignore_nonblock(fd);

	CHECK(ret == 0 || ret == -EOPNOTSUPP);
	return ret == 0;
}

/* Several at once, and others who take what they might have got. */
static void patient_accepts(void)
{
	struct op ops[4] = { 0 };
	int listener;
	uint16_t port;

	listener = make_listener(&port);
	set_nonblocking(listener);
	CHECK_EQ(CALL(accept4, listener, NULL, NULL, 0), -EAGAIN);
	if (!ignores_nonblock(listener))
		return;
	for (unsigned int i = 0; i < 4; i++)
		POST(accept4, &ops[i], listener, NULL, NULL, SOCK_CLOEXEC);
	run_ms(30); /* longer than a parked call goes unlooked at */
	for (unsigned int i = 0; i < 4; i++)
		CHECK_EQ(ops[i].nr_done, 0);
	for (unsigned int i = 0; i < 8; i++) {
		close(connect_to(port));
		if (i % 2) /* or one of the four was faster */
			close(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
		run_ms(1);
	}
	for (unsigned int i = 0; i < 4; i++) {
		if (!ops[i].nr_done)
			close(connect_to(port));
		CHECK(WAIT(&ops[i]) >= 0);
	}
	/* Not for the next file of this number. */
	flexsc_forget(listener);
	while (accept4(listener, NULL, NULL, SOCK_CLOEXEC) >= 0)
		;
	CHECK_EQ(CALL(accept4, listener, NULL, NULL, 0), -EAGAIN);
}

static void patient_streams(void)
{
	static uint8_t much[4 << 20], all[sizeof(much)];
	struct op op = { 0 }, in = { 0 };
	int sv[2], ends[2];
	char buf[8];

	make_tcp_pair(sv);
	set_nonblocking(sv[0]);
	CHECK_EQ(CALL(recv, sv[0], buf, sizeof(buf), 0), -EAGAIN);
	if (!ignores_nonblock(sv[0]))
		return;
	POST(recv, &op, sv[0], buf, sizeof(buf), 0);
	run_ms(30);
	CHECK_EQ(op.nr_done, 0);
	CHECK_EQ(write(sv[1], "four", 4), 4);
	CHECK_EQ(WAIT(&op), 4);
	CHECK_EQ(CALL(recv, sv[0], buf, sizeof(buf), MSG_DONTWAIT), -EAGAIN);
	fill(much, 0, sizeof(much));
	POST(write, &op, sv[0], much, sizeof(much));
	POST(recv, &in, sv[1], all, sizeof(all), MSG_WAITALL);
	CHECK_EQ(WAIT(&op), (int64_t)sizeof(much));
	CHECK_EQ(WAIT(&in), (int64_t)sizeof(much));
	CHECK(filled(all, 0, sizeof(all)));
	CHECK_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	CHECK(ignores_nonblock(ends[0]));
	POST(read, &op, ends[0], buf, sizeof(buf));
	run_ms(30);
	CHECK_EQ(op.nr_done, 0);
	CHECK_EQ(write(ends[1], "x", 1), 1);
	CHECK_EQ(WAIT(&op), 1);
	CHECK_EQ(flexsc_ignore_nonblock(-1), -EBADF);
}

/* As much as there is room for at once, and again when there is some. */
static void parts_of_files(void)
{
	static uint8_t buf[1 << 16];
	const int64_t size = 8 << 20;
	int file = make_file("file", (size_t)size), sv[2];
	int64_t sent = 0, seen = 0, n;
	struct op op = { 0 };

	make_tcp_pair(sv);
	set_nonblocking(sv[0]);
	while (seen < size) {
		n = sent < size ? CALL(sendfile, sv[0], file, NULL,
				       (size_t)(size - sent)) :
				  0;
		CHECK(n > 0 || n == -EAGAIN || sent == size);
		if (n > 0) {
			sent += n;
			continue;
		}
		/* Full: the reader makes room, and that is told. */
		CHECK(sent > seen);
		if (sent < size)
			POST(ready, &op, sv[0], POLLOUT | FLEXSC_READY_NEXT);
		while (seen < sent) {
			n = read(sv[1], buf, sizeof(buf));
			CHECK(n > 0 && filled(buf, (uint64_t)seen, (size_t)n));
			seen += n;
		}
		if (sent < size)
			CHECK(WAIT(&op) & POLLOUT);
	}
	if (!ignores_nonblock(sv[0]))
		return;
	CHECK_EQ(lseek(file, 0, SEEK_SET), 0);
	POST(sendfile, &op, sv[0], file, NULL, (size_t)size);
	for (seen = 0; seen < size; seen += n) {
		flexsc_loop_poll(loop, 0);
		n = recv(sv[1], buf, sizeof(buf), MSG_DONTWAIT);
		if (n < 0)
			n = 0;
		CHECK(filled(buf, (uint64_t)seen, (size_t)n));
	}
	CHECK_EQ(WAIT(&op), size);
}

static const struct test tests[] = {
	{ "either_way", either_way, 0 },
	{ "next_time", next_time, 0 },
	{ "next_room", next_room, 0 },
	{ "ended", ended, 0 },
	{ "in_chain", in_chain, 0 },
	{ "taken", taken, 0 },
	{ "patient_accepts", patient_accepts, 0 },
	{ "patient_streams", patient_streams, 0 },
	{ "parts_of_files", parts_of_files, 0 },
};

int main(int argc, char **argv)
{
	return run_group(argc, argv, tests, ARRAY_SIZE(tests));
}
