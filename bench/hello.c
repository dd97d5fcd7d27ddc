/* SPDX-License-Identifier: MIT */
/*
 * Workloads `hello-threads` and `hello-epoll`: an HTTP server that says hello,
 * with a thread for each connection that blocks in read and write, and the
 * same by hand on edge-triggered epoll. Knows nothing of FlexSC.
 */
#include "bench/child.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	STACK_SIZE = 65536,
	REQUEST_MAX = 1024,
	MAX_EVENTS = 256
};

static const char answer[] = "HTTP/1.1 200 OK\r\n"
			     "Content-Type: text/plain\r\n"
			     "Content-Length: 13\r\n"
			     "\r\n"
			     "Hello, world\n";

/* Requests come whole: the client sends each with one call. */
static bool is_request(const char *buf, ssize_t n)
{
	return n >= 18 && memcmp(buf, "GET ", 4) == 0 &&
	       memcmp(buf + n - 4, "\r\n\r\n", 4) == 0;
}

static int listen_somewhere(int flags)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) ||
	    listen(fd, 4096) ||
	    getsockname(fd, (struct sockaddr *)&address, &size))
		return -1;
	workload_say("port", ntohs(address.sin_port));
	return fd;
}

static void be_quick(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char buf[REQUEST_MAX];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0 && is_request(buf, n))
		if (write(fd, answer, sizeof(answer) - 1) < 0)
			break;
	close(fd);
	return NULL;
}

static int hello_threads(bool quick)
{
	int listener = listen_somewhere(0), fd;
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0 ||
	       errno == EINTR || errno == ECONNABORTED) {
		if (fd < 0)
			continue;
		be_quick(fd);
		if (pthread_create(&thread, &attr, serve, (void *)(intptr_t)fd))
			close(fd);
	}
	return 1;
}

static void accept_all(int set, int listener)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET };
	int fd;

	while ((fd = accept4(listener, NULL, NULL,
			     SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		be_quick(fd);
		event.data.fd = fd;
		epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
	}
}

/* No second read after a short one: the next edge will tell. */
static void serve_ready(int fd)
{
	char buf[REQUEST_MAX];
	ssize_t n = read(fd, buf, sizeof(buf));

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0 || !is_request(buf, n) ||
	    write(fd, answer, sizeof(answer) - 1) < 0)
		close(fd);
}

static int hello_epoll(bool quick)
{
	int set = epoll_create1(EPOLL_CLOEXEC);
	int listener = listen_somewhere(SOCK_NONBLOCK);
	struct epoll_event events[MAX_EVENTS];
	struct epoll_event event = { .events = EPOLLIN, .data.fd = listener };

	epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
	for (;;) {
		int nr = epoll_wait(set, events, MAX_EVENTS, -1);

		if (nr < 0 && errno != EINTR)
			return 1;
		for (int i = 0; i < nr; i++) {
			if (events[i].data.fd == listener)
				accept_all(set, listener);
			else
				serve_ready(events[i].data.fd);
		}
	}
}

const struct workload workload_hello_threads = {
	.name = "hello-threads",
	.run = hello_threads,
};

const struct workload workload_hello_epoll = {
	.name = "hello-epoll",
	.run = hello_epoll,
};
