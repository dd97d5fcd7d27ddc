/* SPDX-License-Identifier: MIT */
/*
 * The rival: an echo server on plain epoll at its best. Edge-triggered, one
 * registration for each connection, non-blocking from accept4, and no read
 * after a short read. Knows nothing of FlexSC.
 */
#include "bench/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	MAX_EVENTS = 256
};

static void accept_all(int set, int listener)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET };
	int fd;

	while ((fd = accept4(listener, NULL, NULL,
			     SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		event.data.fd = fd;
		epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
	}
}

static void echo(int fd)
{
	char buf[SERVER_BUFFER];
	ssize_t n;

	do {
		n = read(fd, buf, sizeof(buf));
		if (n <= 0)
			break;
		if (write(fd, buf, (size_t)n) < 0)
			break;
	} while (n == sizeof(buf));
	if (n == 0 || (n < 0 && errno != EAGAIN))
		close(fd);
}

void server_epoll(int listener)
{
	struct epoll_event events[MAX_EVENTS];
	int set = epoll_create1(EPOLL_CLOEXEC);

	fcntl(listener, F_SETFL, O_NONBLOCK);
	events[0].events = EPOLLIN;
	events[0].data.fd = listener;
	if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, listener, &events[0]))
		return;
	for (;;) {
		int nr = epoll_wait(set, events, MAX_EVENTS, -1);

		for (int i = 0; i < nr; i++) {
			if (events[i].data.fd == listener)
				accept_all(set, listener);
			else
				echo(events[i].data.fd);
		}
	}
}
