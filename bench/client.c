/* SPDX-License-Identifier: MIT */
/*
 * The client of benchmark `server`: many connections, each with one message
 * under way. Plain epoll; it only has to be the same for all servers. How long
 * an answer is, it learns from the first one.
 */
#include "bench/server.h"

#include "bench/machine.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define WARM_MAX_NS 5000000000ull

enum {
	MAX_EVENTS = 256,
	ANSWER_MAX = 65536,
	PROBE_MS = 20
};

struct client {
	const struct client_job *job;
	size_t *left; /* of the answer, by descriptor */
	size_t answer_size;
	uint64_t nr_answers;
	char buf[ANSWER_MAX];
};

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

static int ask(struct client *c, int fd)
{
	const struct client_job *job = c->job;

	c->left[fd] = c->answer_size;
	return write(fd, job->message, job->message_size) < 0 ? -errno : 0;
}

/* An answer is over when nothing more comes for a while. */
static int learn_size(struct client *c)
{
	int fd = connect_one(c->job), bad;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (fd < 0)
		return fd;
	bad = ask(c, fd);
	while (!bad && poll(&p, 1, c->answer_size ? PROBE_MS : 5000) == 1) {
		ssize_t n = read(fd, c->buf, sizeof(c->buf));

		if (n <= 0)
			bad = -EPROTO;
		else
			c->answer_size += (size_t)n;
	}
	close(fd);
	return bad ? bad : c->answer_size ? 0 : -ETIMEDOUT;
}

static int connect_all(struct client *c, int set)
{
	for (unsigned int i = 0; i < c->job->nr_connections; i++) {
		int fd = connect_one(c->job), bad;
		struct epoll_event event = { .events = EPOLLIN | EPOLLET,
					     .data.fd = fd };

		if (fd < 0)
			return fd;
		if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
			return -errno;
		bad = ask(c, fd);
		if (bad)
			return bad;
	}
	return 0;
}

/* Some of an answer; after the last of it, the next message. */
static int answered(struct client *c, int fd)
{
	ssize_t n = read(fd, c->buf, sizeof(c->buf));

	if (n <= 0 || (size_t)n > c->left[fd])
		return n < 0 ? -errno : -EPROTO;
	c->left[fd] -= (size_t)n;
	if (c->left[fd])
		return 0;
	c->nr_answers++;
	return ask(c, fd);
}

/* Warm: every connection has been accepted and served, some more than once. */
static bool phase_over(const struct client *c, int phase, uint64_t end)
{
	uint64_t now = now_ns();

	return now >= end &&
	       (phase || c->nr_answers >= 2ull * c->job->nr_connections ||
		now >= end + WARM_MAX_NS);
}

static int run_phases(struct client *c, int set)
{
	const struct client_job *job = c->job;
	struct epoll_event events[MAX_EVENTS];
	uint64_t end = now_ns() + job->warm_ns;

	for (int phase = 0; phase < 2;) {
		int nr = epoll_wait(set, events, MAX_EVENTS, 100);

		for (int i = 0; i < nr; i++) {
			int bad = answered(c, events[i].data.fd);

			if (bad)
				return bad;
		}
		if (!phase_over(c, phase, end))
			continue;
		if (write(job->report, &c->nr_answers, sizeof(c->nr_answers)) <
		    0)
			return -errno;
		phase++;
		end = now_ns() + job->measure_ns;
	}
	return 0;
}

int client_run(const struct client_job *job)
{
	static struct client c;
	int set = epoll_create1(EPOLL_CLOEXEC), bad;

	c.job = job;
	/* Descriptors are given out from below. */
	c.left = calloc(job->nr_connections + 1024ul, sizeof(*c.left));
	bad = set < 0 ? -errno : !c.left ? -ENOMEM : learn_size(&c);
	if (!bad)
		bad = connect_all(&c, set);
	if (!bad)
		bad = run_phases(&c, set);
	free(c.left);
	return bad;
}
