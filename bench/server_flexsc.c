/* SPDX-License-Identifier: MIT */
/*
 * The echo server on libflexsc. Where a syscall thread works on another core
 * the answer and the next read are posted as a chain, so that each request
 * costs the application one completion; elsewhere as two calls, of which the
 * first usually ends at once. Two buffers take turns, so that an answer is
 * not overwritten while it is being sent.
 */
#include "bench/loops.h"
#include "bench/server.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct conn {
	struct flexsc_event was_read;
	int fd;
	unsigned int turn;
	char buf[2][SERVER_BUFFER];
};

static int the_listener;
static bool chains;
static struct flexsc_event accepted;

static void was_read(struct flexsc_event *ev)
{
	struct conn *c = ev->data;
	char *answer = c->buf[c->turn];

	if (ev->ret <= 0) {
		flexsc_close(NULL, c->fd);
		free(c);
		return;
	}
	c->turn ^= 1;
	if (chains)
		flexsc_chain_begin();
	flexsc_write(NULL, c->fd, answer, (size_t)ev->ret);
	flexsc_read(&c->was_read, c->fd, c->buf[c->turn], SERVER_BUFFER);
	if (chains)
		flexsc_chain_end();
}

static void start_accept(void)
{
	flexsc_accept4(&accepted, the_listener, NULL, NULL, SOCK_CLOEXEC);
}

static void was_accepted(struct flexsc_event *ev)
{
	struct conn *c = ev->ret >= 0 ? calloc(1, sizeof(*c)) : NULL;

	if (c) {
		c->fd = (int)ev->ret;
		c->was_read.handler = was_read;
		c->was_read.data = c;
		flexsc_read(&c->was_read, c->fd, c->buf[0], SERVER_BUFFER);
	}
	start_accept();
}

void server_flexsc(int listener, const char *engine)
{
	struct flexsc_loop *loop;

	if (loop_open(&loop, engine))
		return;
	chains = strcmp(engine, "uthread") == 0;
	the_listener = listener;
	accepted.handler = was_accepted;
	start_accept();
	flexsc_loop_run(loop);
}
