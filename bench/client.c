/* SPDX-License-Identifier: MIT */
/*
 * The client of benchmark `server`: many connections, each with one message
 * under way. Plain epoll; it only has to be the same for all servers.
 */
#include "bench/server.h"

#include "bench/machine.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	MAX_EVENTS = 256
};

static const char message[SERVER_MESSAGE] = "hello";

static int connect_one(const struct client_job *job)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(job->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct linger no_wait = { .l_onoff = 1 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0)
		return -errno;
	/* A reset at the end: thousands of TIME_WAIT would use up the ports. */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &no_wait, sizeof(no_wait));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		int bad = -errno;

		close(fd);
		return bad;
	}
	return fd;
}

static int connect_all(const struct client_job *job, int set)
{
	for (unsigned int i = 0; i < job->nr_connections; i++) {
		int fd = connect_one(job);
		struct epoll_event event = { .events = EPOLLIN | EPOLLET,
					     .data.fd = fd };

		if (fd < 0)
			return fd;
		if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) ||
		    write(fd, message, sizeof(message)) < 0)
			return -errno;
	}
	return 0;
}

/* One answer, and the next message. Loopback never splits 64 bytes. */
static int answered(int fd)
{
	char buf[SERVER_BUFFER];

	if (read(fd, buf, sizeof(buf)) != SERVER_MESSAGE)
		return -EPROTO;
	return write(fd, message, sizeof(message)) < 0 ? -errno : 0;
}

int client_run(const struct client_job *job)
{
	struct epoll_event events[MAX_EVENTS];
	int set = epoll_create1(EPOLL_CLOEXEC), bad;
	uint64_t end, nr_answers = 0;

	bad = set < 0 ? -errno : connect_all(job, set);
	if (bad)
		return bad;
	end = now_ns() + job->warm_ns;
	for (int phase = 0; phase < 2;) {
		int nr = epoll_wait(set, events, MAX_EVENTS, 100);

		for (int i = 0; i < nr; i++) {
			bad = answered(events[i].data.fd);
			if (bad)
				return bad;
		}
		nr_answers += (uint64_t)(nr > 0 ? nr : 0);
		if (now_ns() < end)
			continue;
		if (write(job->report, &nr_answers, sizeof(nr_answers)) < 0)
			return -errno;
		phase++;
		end = now_ns() + job->measure_ns;
	}
	return 0;
}
