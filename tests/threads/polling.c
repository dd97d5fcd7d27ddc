/* SPDX-License-Identifier: MIT */
/*
 * Threads that wait until descriptors are ready: poll, select, epoll, and what
 * non-blocking reads and writes say before and after.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 1000

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void pair(int fds[2])
{
	socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
}

/* Of TCP a short read means that nothing is left, which is remembered. */
static void tcp_pair(int fds[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	bind(listener, (struct sockaddr *)&at, size);
	listen(listener, 1);
	getsockname(listener, (struct sockaddr *)&at, &size);
	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	connect(fds[0], (struct sockaddr *)&at, size);
	fds[1] = accept(listener, NULL, NULL);
	setsockopt(fds[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fds[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	close(listener);
}

/* Another thread that does something to a descriptor a little later. */
struct later {
	void (*act)(int fd);
	int fd;
	pthread_t thread;
};

static void *do_later(void *arg)
{
	struct later *l = arg;

	usleep(5000);
	l->act(l->fd);
	return NULL;
}

static void begin(struct later *l, void (*act)(int), int fd)
{
	l->act = act;
	l->fd = fd;
	pthread_create(&l->thread, NULL, do_later, l);
}

static void send_some(int fd)
{
	write(fd, "abc", 3);
}

static void shut(int fd)
{
	close(fd);
}

static void take_all(int fd)
{
	char buf[65536];

	while (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
}

static int poll_one(int fd, short events, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = events };
	int n = poll(&p, 1, timeout_ms);

	return n > 0 ? p.revents : n;
}

static void *one_descriptor(void *arg)
{
	struct later other;
	double begun = now_ms();
	char buf[100000] = "";
	int fds[2];

	pair(fds);
	printf("time-out %d", poll_one(fds[0], POLLIN, 30));
	printf(" after 30 ms %d\n", now_ms() - begun >= 29);
	begin(&other, send_some, fds[1]);
	printf("data %x\n", poll_one(fds[0], POLLIN, -1));
	pthread_join(other.thread, NULL);
	printf("still %x\n", poll_one(fds[0], POLLIN | POLLOUT, -1));
	printf("read %zd\n", read(fds[0], buf, sizeof(buf)));
	printf("none %x\n", poll_one(fds[0], POLLIN | POLLPRI, 1));
	while (send(fds[0], buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
	printf("full %x\n", poll_one(fds[0], POLLOUT, 1));
	begin(&other, take_all, fds[1]);
	printf("room %x\n", poll_one(fds[0], POLLOUT, -1));
	pthread_join(other.thread, NULL);
	begin(&other, shut, fds[1]);
	printf("end %x\n", poll_one(fds[0], POLLIN, -1));
	pthread_join(other.thread, NULL);
	printf("over %x\n", poll_one(fds[0], POLLIN | POLLRDHUP, -1));
	close(fds[0]);
	printf("closed %x\n", poll_one(fds[0], POLLIN, -1));
	printf("no number %d\n", poll_one(-1, POLLIN, 2));
	printf("none at all %d\n", poll(NULL, 0, 2));
	return NULL;
}

static void *bad_memory(void *arg)
{
	struct pollfd *none =
		mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	printf("bad memory %d", poll(none, 1, -1));
	printf(" %s\n", strerror(errno));
	return NULL;
}

/* None of these may wait, whatever is remembered of the descriptor. */
static void *refuses(void *arg)
{
	char buf[100];
	int fds[2];

	for (int i = 0; i < 20; i++) {
		struct later other;

		tcp_pair(fds);
		begin(&other, send_some, fds[1]);
		if (read(fds[0], buf, sizeof(buf)) != 3)
			printf("read\n");
		pthread_join(other.thread, NULL);
		if (recv(fds[0], buf, sizeof(buf), MSG_DONTWAIT) != -1 ||
		    errno != EAGAIN)
			printf("recv waits\n");
		fcntl(fds[0], F_SETFL, O_RDWR | O_NONBLOCK);
		if (read(fds[0], buf, sizeof(buf)) != -1 || errno != EAGAIN)
			printf("read waits\n");
		send_some(fds[1]);
		poll_one(fds[0], POLLIN, 1000);
		if (read(fds[0], buf, sizeof(buf)) != 3)
			printf("read after poll\n");
		close(fds[0]);
		close(fds[1]);
	}
	printf("nothing waited\n");
	return NULL;
}

/* Poll, then read without waiting: what poll said must be true. */
static void *turns(void *arg)
{
	const int *fds = arg;
	int fd = fds[0], wrong = 0;
	char byte = 0;

	fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
	for (int i = 0; i < ROUNDS; i++) {
		if (poll_one(fd, POLLIN, 10000) != POLLIN)
			wrong++;
		if (read(fd, &byte, 1) != 1)
			wrong++;
		if (write(fd, &byte, 1) != 1)
			wrong++;
	}
	return (void *)(intptr_t)wrong;
}

static void ping_pong(void (*make)(int fds[2]))
{
	pthread_t a, b;
	void *wrong_a, *wrong_b;
	int fds[2];

	make(fds);
	write(fds[0], "x", 1);
	pthread_create(&a, NULL, turns, &fds[0]);
	pthread_create(&b, NULL, turns, &fds[1]);
	pthread_join(a, &wrong_a);
	pthread_join(b, &wrong_b);
	printf("ping-pong %ld %ld\n", (long)(intptr_t)wrong_a,
	       (long)(intptr_t)wrong_b);
}

static void *several(void *arg)
{
	struct timeval limit = { .tv_usec = 10000 };
	struct pollfd p[3] = { 0 };
	struct later other;
	fd_set set;
	int fds[3][2];

	FD_ZERO(&set);
	for (int i = 0; i < 3; i++) {
		pair(fds[i]);
		p[i] = (struct pollfd){ .fd = fds[i][0], .events = POLLIN };
		FD_SET(fds[i][0], &set);
	}
	begin(&other, send_some, fds[1][1]);
	printf("poll %d", poll(p, 3, -1));
	printf(" %x %x %x\n", p[0].revents, p[1].revents, p[2].revents);
	pthread_join(other.thread, NULL);
	printf("select %d", select(fds[2][0] + 1, &set, NULL, NULL, NULL));
	printf(" %d %d\n", FD_ISSET(fds[0][0], &set) != 0,
	       FD_ISSET(fds[1][0], &set) != 0);
	FD_ZERO(&set);
	FD_SET(fds[0][0], &set);
	printf("one %d", select(fds[0][0] + 1, &set, NULL, NULL, &limit));
	printf(" %d\n", FD_ISSET(fds[0][0], &set) != 0);
	FD_SET(fds[0][0], &set);
	begin(&other, send_some, fds[0][1]);
	printf("later %d", select(fds[0][0] + 1, &set, NULL, NULL, NULL));
	printf(" %d\n", FD_ISSET(fds[0][0], &set) != 0);
	pthread_join(other.thread, NULL);
	return NULL;
}

/* Edge-triggered: a read that says EAGAIN too early would wait for ever. */
struct flow {
	int set, nr, fds[8][2];
};

static void *pour(void *arg)
{
	struct flow *f = arg;
	char buf[64] = "";
	unsigned seed = 1;

	for (int i = 0; i < ROUNDS * 4; i++) {
		seed = seed * 1103515245 + 12345;
		write(f->fds[seed / 65536 % 8][1], buf, 64);
		if (seed / 1024 % 16 == 0)
			sched_yield();
	}
	return NULL;
}

static void *collect(void *arg)
{
	struct flow *f = arg;
	struct epoll_event events[4];
	long got = 0;
	char buf[1000];

	while (got < ROUNDS * 4 * 64) {
		int n = epoll_wait(f->set, events, 4, 5000);

		if (n <= 0)
			break;
		for (int i = 0; i < n; i++) {
			ssize_t r;

			while ((r = read(events[i].data.fd, buf, sizeof(buf))) >
			       0)
				got += r;
		}
	}
	return (void *)got;
}

static void edges(uint32_t how)
{
	struct flow f = { .set = epoll_create1(0) };
	pthread_t from, to;
	void *got;

	for (int i = 0; i < 8; i++) {
		struct epoll_event e = { .events = EPOLLIN | how };

		tcp_pair(f.fds[i]);
		e.data.fd = f.fds[i][0];
		fcntl(f.fds[i][0], F_SETFL, O_RDWR | O_NONBLOCK);
		epoll_ctl(f.set, EPOLL_CTL_ADD, f.fds[i][0], &e);
	}
	pthread_create(&to, NULL, collect, &f);
	pthread_create(&from, NULL, pour, &f);
	pthread_join(from, NULL);
	pthread_join(to, &got);
	printf("epoll %d of %d\n", (int)(intptr_t)got, ROUNDS * 4 * 64);
	for (int i = 0; i < 8; i++) {
		close(f.fds[i][0]);
		close(f.fds[i][1]);
	}
	close(f.set);
}

/* Writable and O_NONBLOCK, a socket takes a part of a file, however full. */
static void *part_of_file(void *arg)
{
	int file = memfd_create("file", 0), size = 4 << 20, sent = 0;
	static char buf[100000];
	int fds[2], empty = 0;

	tcp_pair(fds);
	ftruncate(file, size);
	fcntl(fds[0], F_SETFL, O_RDWR | O_NONBLOCK);
	while (sent < size) {
		struct pollfd ends[2] = { { .fd = fds[0], .events = POLLOUT },
					  { .fd = fds[1], .events = POLLIN } };
		ssize_t r;

		poll(ends, 2, -1);
		if (!ends[0].revents) {
			read(fds[1], buf, sizeof(buf));
			continue;
		}
		r = sendfile(fds[0], file, NULL, (size_t)(size - sent));
		if (r > 0)
			sent += (int)r;
		else if (++empty > 100)
			break;
	}
	printf("sendfile %d, %d times nothing\n", sent, empty);
	close(file);
	close(fds[0]);
	close(fds[1]);
	return NULL;
}

static void handler(int signal)
{
	(void)signal;
}

static volatile int nr_interrupted;

static void *interrupted(void *arg)
{
	struct epoll_event event;
	int fds[2], set = epoll_create1(0), r;

	pair(fds);
	event = (struct epoll_event){ .events = EPOLLIN };
	epoll_ctl(set, EPOLL_CTL_ADD, fds[0], &event);
	r = poll_one(fds[0], POLLIN, -1);
	printf("poll %d %s\n", r, strerror(errno));
	nr_interrupted = 1;
	r = epoll_wait(set, &event, 1, -1);
	printf("epoll_wait %d %s\n", r, strerror(errno));
	nr_interrupted = 2;
	while (poll_one(fds[0], POLLIN, -1) < 0)
		;
	printf("not canceled\n");
	return NULL;
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = handler,
				    .sa_flags = SA_RESTART };
	pthread_t thread;
	void *result;

	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&thread, NULL, interrupted, NULL);
	do {
		usleep(50000);
		pthread_kill(thread, SIGUSR1);
	} while (nr_interrupted < 2);
	usleep(50000);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	printf("canceled %d\n", result == PTHREAD_CANCELED);
}

static void run(void *(*start)(void *))
{
	pthread_t thread;

	pthread_create(&thread, NULL, start, NULL);
	pthread_join(thread, NULL);
}

int main(void)
{
	run(one_descriptor);
	run(bad_memory);
	run(refuses);
	run(several);
	run(part_of_file);
	ping_pong(pair);
	ping_pong(tcp_pair);
	edges(0);
	edges(EPOLLET);
	signals();
	return 0;
}
