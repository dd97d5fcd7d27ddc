/* SPDX-License-Identifier: MIT */
/*
 * The client of the server benchmarks: many connections, each with one message
 * under way. Plain epoll; it only has to be the same for all servers. How long
 * answers are, it learns from the first one of each kind.
 */
#include "bench/server.h"

#include "bench/latency.h"
#include "bench/machine.h"
#include "bench/mark.h"

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

/**
 * struct connection - by number, in the order of their making
 * @left:  bytes of the answer; 0: no message is under way
 * @begin: when the message was sent, or was due
 * @due:   messages that could not be sent in time, the next one included
 * @turn:  rounds of the schedule that this one has gone through
 * @next:  of the messages
 */
struct connection {
	int fd;
	unsigned int due, next;
	size_t left;
	uint64_t begin, turn;
};

struct client {
	const struct client_job *job;
	struct connection *all;
	size_t answer_sizes[CLIENT_KINDS];
	uint64_t nr_answers, start_ns, nr_due;
	struct latency latency;
	char buf[ANSWER_MAX];
};

static int connect_one(const struct client_job *job)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(job->server.port),
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

static int ask(struct client *c, struct connection *to, uint64_t begin)
{
	const struct client_message *m = &c->job->messages[to->next];

	to->left = c->answer_sizes[m->kind];
	to->begin = begin;
	to->next = to->next + 1 < c->job->nr_messages ? to->next + 1 : 0;
	return write(to->fd, m->text, m->size) < 0 ? -errno : 0;
}

/* An answer is over when nothing more comes for a while. */
static int learn_size(struct client *c, unsigned int number)
{
	struct connection first = { .fd = connect_one(c->job), .next = number };
	struct pollfd p = { .fd = first.fd, .events = POLLIN };
	size_t size = 0;
	int bad;

	if (first.fd < 0)
		return first.fd;
	bad = ask(c, &first, 0);
	while (!bad && poll(&p, 1, size ? PROBE_MS : 5000) == 1) {
		ssize_t n = read(p.fd, c->buf, sizeof(c->buf));

		if (n <= 0)
			bad = -EPROTO;
		else
			size += (size_t)n;
	}
	close(p.fd);
	c->answer_sizes[c->job->messages[number].kind] = size;
	return bad ? bad : size ? 0 : -ETIMEDOUT;
}

static int learn_sizes(struct client *c)
{
	int bad = 0;

	for (unsigned int i = 0; i < c->job->nr_messages && !bad; i++)
		if (!c->answer_sizes[c->job->messages[i].kind])
			bad = learn_size(c, i);
	return bad;
}

static int connect_all(struct client *c, int set)
{
	for (unsigned int i = 0; i < c->job->nr_connections; i++) {
		struct epoll_event event = { .events = EPOLLIN | EPOLLET,
					     .data.u32 = i };
		int fd = connect_one(c->job), bad;

		if (fd < 0)
			return fd;
		c->all[i].fd = fd;
		c->all[i].next = i % c->job->nr_messages;
		if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
			return -errno;
		/* All take part at first, whatever the rate. */
		bad = ask(c, &c->all[i], now_ns());
		if (bad)
			return bad;
	}
	return 0;
}

/* When the next message of a connection is due, by the rate. */
static uint64_t due_ns(const struct client *c, const struct connection *of)
{
	double number = (double)of->turn * c->job->nr_connections +
			(double)(of - c->all);

	return c->start_ns + (uint64_t)(number * 1e9 / c->job->rate);
}

static int ask_due(struct client *c, struct connection *to)
{
	uint64_t begin = due_ns(c, to);

	to->due--;
	to->turn++;
	return ask(c, to, begin);
}

/* Some of an answer; after the last of it, the next message. */
static int answered(struct client *c, struct connection *from)
{
	ssize_t n = read(from->fd, c->buf, sizeof(c->buf));
	uint64_t now;

	if (n <= 0 || (size_t)n > from->left)
		return n < 0 ? -errno : -EPROTO;
	from->left -= (size_t)n;
	if (from->left)
		return 0;
	now = now_ns();
	c->nr_answers++;
	latency_add(&c->latency, now > from->begin ? now - from->begin : 0);
	if (c->job->rate <= 0)
		return ask(c, from, now);
	return from->due ? ask_due(c, from) : 0;
}

/* What has become due: sent where nothing is under way, else noted. */
static int send_due(struct client *c)
{
	uint64_t now = now_ns();
	unsigned int nr = c->job->nr_connections;

	while (c->start_ns +
		       (uint64_t)((double)c->nr_due * 1e9 / c->job->rate) <=
	       now) {
		struct connection *to = &c->all[c->nr_due++ % nr];
		int bad;

		to->due++;
		bad = to->left ? 0 : ask_due(c, to);
		if (bad)
			return bad;
	}
	return 0;
}

/* Warm: every connection has been accepted and served, some more than once. */
static bool phase_over(const struct client *c, int phase, uint64_t end)
{
	uint64_t now = now_ns();

	return now >= end &&
	       (phase || c->nr_answers >= 2ull * c->job->nr_connections ||
		now >= end + WARM_MAX_NS);
}

static int tell(struct client *c)
{
	struct client_says says = {
		.nr_answers = c->nr_answers,
		.ns = now_ns(),
		.p50_us = latency_us(&c->latency, 0.5),
		.p99_us = latency_us(&c->latency, 0.99),
	};

	if (c->job->server.pid &&
	    !server_clocks(&c->job->server, &says.cpu_ns, &says.app_ns))
		return -ESRCH;
	memset(&c->latency, 0, sizeof(c->latency));
	return write(c->job->report, &says, sizeof(says)) < 0 ? -errno : 0;
}

static int run_phases(struct client *c, int set)
{
	const struct client_job *job = c->job;
	struct epoll_event events[MAX_EVENTS];
	uint64_t end = now_ns() + job->warm_ns;

	c->start_ns = now_ns();
	for (int phase = 0; phase < 2;) {
		int nr = epoll_wait(set, events, MAX_EVENTS,
				    job->rate > 0 ? 0 : 100);
		int bad = 0;

		for (int i = 0; i < nr && !bad; i++)
			bad = answered(c, &c->all[events[i].data.u32]);
		if (!bad && job->rate > 0)
			bad = send_due(c);
		if (!bad && phase_over(c, phase, end)) {
			bad = tell(c);
			if (phase++)
				mark_end();
			else
				mark_begin();
			end = now_ns() + job->measure_ns;
		}
		if (bad)
			return bad;
	}
	return 0;
}

int client_run(const struct client_job *job)
{
	static struct client c;
	int set = epoll_create1(EPOLL_CLOEXEC), bad;

	c.job = job;
	c.all = calloc(job->nr_connections, sizeof(*c.all));
	bad = set < 0 ? -errno : !c.all ? -ENOMEM : learn_sizes(&c);
	if (!bad)
		bad = connect_all(&c, set);
	if (!bad)
		bad = run_phases(&c, set);
	free(c.all);
	return bad;
}
