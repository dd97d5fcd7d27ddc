/* SPDX-License-Identifier: MIT */
/* Bases and events; see event.h. */
#include "ports/memcached/io.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void event_base_free(struct event_base *base)
{
	base->exits = true;
	if (base->loop && !flexsc_loop_shutdown(base->loop))
		flexsc_loop_free(base->loop);
	free(base);
}

/* The list of what to arm ------------------------------------------------- */

static void queue(struct event *ev)
{
	struct event_base *base = ev->ev_base;

	if (ev->queued)
		return;
	ev->queued = true;
	ev->next = NULL;
	ev->link = base->last;
	*base->last = ev;
	base->last = &ev->next;
}

static void unqueue(struct event *ev)
{
	if (!ev->queued)
		return;
	ev->queued = false;
	*ev->link = ev->next;
	if (ev->next)
		ev->next->link = ev->link;
	else
		ev->ev_base->last = ev->link;
}

/* Calls in flight --------------------------------------------------------- */

static bool is_flying(const struct mc_io *io)
{
	bool flying = flexsc_pending(&io->in) || flexsc_pending(&io->out) ||
		      flexsc_pending(&io->kick);

	for (int i = 0; io->listener && i < MC_NR_ACCEPTS; i++)
		flying |= flexsc_pending(&io->listener->accepts[i]);
	return flying;
}

static void cancel(struct mc_io *io)
{
	flexsc_cancel(&io->in);
	flexsc_cancel(&io->out);
	for (int i = 0; io->listener && i < MC_NR_ACCEPTS; i++)
		flexsc_cancel(&io->listener->accepts[i]);
}

void mc_io_free(struct mc_io *io)
{
	if (io->close_fd >= 0)
		mc_shut(io->close_fd);
	if (io->stream && io->stream->iovs != io->stream->few)
		free(io->stream->iovs);
	free(io->stream);
	free(io->listener);
	free(io);
}

bool mc_left(struct mc_io *io)
{
	if (!io->leaving)
		return false;
	if (!is_flying(io)) {
		if (io->ev->leaving == io)
			io->ev->leaving = NULL;
		mc_io_free(io);
	}
	return true;
}

void mc_fire(struct mc_io *io, short what)
{
	struct event *ev = io->ev;

	if (!ev->added || !(ev->ev_events & what || what == EV_TIMEOUT) ||
	    ev->ev_base->exits)
		return;
	if (ev->ev_events & EV_PERSIST)
		queue(ev);
	else
		ev->added = false;
	ev->ev_callback(ev->ev_fd, what, ev->ev_arg);
}

static void is_readable(struct flexsc_event *op)
{
	struct mc_io *io = op->data;

	if (!mc_left(io))
		mc_fire(io, EV_READ);
}

static void is_writable(struct flexsc_event *op)
{
	struct mc_io *io = op->data;

	if (!mc_left(io))
		mc_fire(io, EV_WRITE);
}

static void is_time(struct flexsc_event *op)
{
	struct mc_io *io = op->data;

	if (!mc_left(io) && op->ret == 0)
		mc_fire(io, EV_TIMEOUT);
}

/* What it waits for is there already. */
static void kicked(struct flexsc_event *op)
{
	struct mc_io *io = op->data;

	if (!mc_left(io))
		mc_fire(io, io->ev->ev_events & (EV_READ | EV_WRITE));
}

void mc_kick(struct mc_io *io)
{
	io->kick.handler = kicked;
	io->kick.data = io;
	if (!flexsc_pending(&io->kick))
		flexsc_loop_send(flexsc_loop_current(), &io->kick);
}

static struct mc_io *io_of(struct event *ev)
{
	if (!ev->io) {
		ev->io = calloc(1, sizeof(*ev->io));
		if (!ev->io)
			return NULL;
		ev->io->ev = ev;
		ev->io->close_fd = -1;
		ev->io->in.data = ev->io->out.data = ev->io;
	}
	return ev->io;
}

static void arm_readiness(struct event *ev)
{
	struct mc_io *io = ev->io;

	io->in.handler = is_readable;
	io->out.handler = is_writable;
	if (ev->ev_events & EV_READ && !flexsc_pending(&io->in))
		flexsc_ready(&io->in, ev->ev_fd, POLLIN);
	if (ev->ev_events & EV_WRITE && !flexsc_pending(&io->out))
		flexsc_ready(&io->out, ev->ev_fd, POLLOUT);
}

static void arm_timer(struct event *ev)
{
	ev->io->in.handler = is_time;
	if (!flexsc_pending(&ev->io->in))
		flexsc_timer(&ev->io->in,
			     (uint64_t)ev->after.tv_sec * 1000000000 +
				     (uint64_t)ev->after.tv_usec * 1000);
}

static void arm(struct event *ev)
{
	if (!io_of(ev)) {
		fprintf(stderr, "no memory to wait for descriptor %d\n",
			ev->ev_fd);
		return;
	}
	if (ev->ev_fd < 0)
		arm_timer(ev);
	else if (ev->kind == MC_STREAM)
		mc_arm_stream(ev);
	else if (ev->kind == MC_LISTENER)
		mc_arm_listener(ev);
	else
		arm_readiness(ev);
}

/* As libevent's ----------------------------------------------------------- */

static bool make_loop(struct event_base *base)
{
	int bad = flexsc_loop_new(&base->loop, NULL);

	if (bad)
		fprintf(stderr,
			"libflexsc: no loop: %s (FLEXSC_ENGINE names the "
			"engine; a loop needs a few descriptors)\n",
			strerror(-bad));
	return !bad;
}

int event_base_loop(struct event_base *base, int flags)
{
	if (!base->loop && !make_loop(base))
		return -1;
	do {
		struct event *ev;

		while ((ev = base->first)) {
			unqueue(ev);
			arm(ev);
		}
		if (flexsc_loop_poll(base->loop, -1) == -ENOMEM)
			return -1;
	} while (!base->exits && !(flags & EVLOOP_ONCE));
	if (base->exits)
		flexsc_loop_shutdown(base->loop);
	return 0;
}

int event_base_loopexit(struct event_base *base, const struct timeval *after)
{
	(void)after; /* nobody gives one */
	base->exits = true;
	return 0;
}

void event_set(struct event *ev, evutil_socket_t fd, short events,
	       event_callback_fn callback, void *arg)
{
	ev->ev_fd = fd;
	ev->ev_events = events;
	ev->ev_callback = callback;
	ev->ev_arg = arg;
}

int event_base_set(struct event_base *base, struct event *ev)
{
	ev->ev_base = base;
	return 0;
}

int event_add(struct event *ev, const struct timeval *after)
{
	if (!io_of(ev))
		return -1;
	if (after)
		ev->after = *after;
	ev->added = true;
	queue(ev);
	return 0;
}

void mc_leave(struct event *ev)
{
	struct mc_io *io = ev->io;

	if (!io || !is_flying(io))
		return;
	cancel(io);
	io->leaving = true;
	ev->leaving = io;
	ev->io = NULL;
}

/* What a listener's calls bring all the same is kept. */
static void rest(struct mc_io *io)
{
	cancel(io);
	if (io->listener)
		io->listener->error = 0;
}

int event_del(struct event *ev)
{
	struct mc_io *io = ev->io;

	if (!ev->added)
		return 0;
	ev->added = false;
	unqueue(ev);
	if (ev->kind == MC_STREAM)
		mc_lend(ev);
	else if (ev->kind == MC_LISTENER && io)
		rest(io);
	else
		mc_leave(ev);
	return 0;
}
