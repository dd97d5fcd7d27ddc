/* SPDX-License-Identifier: MIT */
/*
 * Connections and listeners by completions; see io.h. Everything here runs in
 * the thread of the connection's loop, but for what the server's own threads
 * do with a connection that was lent to them (conn_watch).
 */
#include <memcached.h>

#include "ports/memcached/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern pthread_mutex_t conn_lock;
extern volatile bool allow_new_conns;

/* A posted call on an O_NONBLOCK descriptor does not wait. */
static void set_nonblocking(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

static bool uses_tls(const conn *c)
{
#ifdef TLS
	return c->ssl_enabled;
#else
	return false;
#endif
}

void mc_attach(conn *c)
{
	struct event *ev = &c->event;
	struct mc_io *io = ev->io;

	ev->kind = MC_READY;
	if (c->state == conn_listening)
		ev->kind = MC_LISTENER;
	else if (!IS_UDP(c->transport) && !uses_tls(c))
		ev->kind = MC_STREAM;
	if (ev->kind != MC_READY)
		set_nonblocking(c->sfd, false);
	if (io && io->stream) { /* of a connection before this one */
		io->stream->at = io->stream->nr = 0;
		io->stream->target = NULL;
		io->stream->has_got = io->stream->filled = false;
		io->stream->sent = false;
	}
}

/* Reading ------------------------------------------------------------------ */

static void received(struct flexsc_event *op)
{
	struct mc_io *io = op->data;
	struct mc_stream *s = io->stream;

	if (mc_left(io))
		return;
	if (op->ret > 0 && !s->target) {
		s->at = 0;
		s->nr = (size_t)op->ret;
		s->filled = s->nr == MC_INPUT_SIZE;
	} else {
		s->got = op->ret;
		s->has_got = true;
	}
	mc_fire(io, EV_READ);
}

static ssize_t result(int64_t ret)
{
	if (ret >= 0)
		return ret;
	errno = (int)-ret;
	return -1;
}

/* What is there of it; after a full buffer, the rest that may be there. */
static ssize_t take_input(conn *c, struct mc_stream *s, void *buf, size_t count)
{
	size_t nr = s->nr < count ? s->nr : count;
	ssize_t more = 0;

	memcpy(buf, s->input + s->at, nr);
	s->at += nr;
	s->nr -= nr;
	if (!s->nr && s->filled && nr < count)
		more = recv(c->sfd, (char *)buf + nr, count - nr, MSG_DONTWAIT);
	s->filled &= s->nr > 0;
	return (ssize_t)nr + (more > 0 ? more : 0);
}

ssize_t mc_read(conn *c, void *buf, size_t count)
{
	struct mc_io *io = c->event.io;
	struct mc_stream *s = io ? io->stream : NULL;

	if (!s || c->event.lent)
		return recv(c->sfd, buf, count, MSG_DONTWAIT);
	if (s->nr)
		return take_input(c, s, buf, count);
	if (s->has_got) {
		s->has_got = false;
		s->target = NULL;
		return result(s->got);
	}
	/* Memory that is there when the next input comes; see mc_arm_stream(). */
	s->target = buf;
	s->target_size = count;
	return result(-EAGAIN);
}

/* Writing ------------------------------------------------------------------ */

static void sent(struct flexsc_event *op)
{
	struct mc_io *io = op->data;

	if (mc_left(io))
		return;
	io->stream->sent = true;
	mc_fire(io, EV_WRITE);
}

static bool copy(struct mc_stream *s, const struct msghdr *msg)
{
	if (msg->msg_iovlen > s->nr_iovs) {
		struct iovec *more = malloc(msg->msg_iovlen * sizeof(*more));

		if (!more)
			return false;
		if (s->iovs != s->few)
			free(s->iovs);
		s->iovs = more;
		s->nr_iovs = msg->msg_iovlen;
	}
	memcpy(s->iovs, msg->msg_iov, msg->msg_iovlen * sizeof(*s->iovs));
	s->msg = (struct msghdr){ .msg_iov = s->iovs,
				  .msg_iovlen = msg->msg_iovlen };
	return true;
}

/*
 * Small pieces leave as one, from where input would go, none of which is
 * there or under way: one buffer is the way that is short for the library and
 * for the kernel. Returns how much it is, 0: too much.
 */
static size_t gather(const struct mc_io *io, const struct msghdr *msg)
{
	struct mc_stream *s = io->stream;
	size_t size = 0;

	if (s->nr || msg->msg_iovlen > MC_FEW_IOVS || flexsc_pending(&io->in))
		return 0;
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		const struct iovec *v = &msg->msg_iov[i];

		if (v->iov_len > MC_SMALL_SIZE - size)
			return 0;
		memcpy(s->input + size, v->iov_base, v->iov_len);
		size += v->iov_len;
	}
	return size;
}

ssize_t mc_sendmsg(conn *c, struct msghdr *msg, int flags)
{
	struct mc_io *io = c->event.io;
	struct mc_stream *s = io ? io->stream : NULL;
	size_t size;
	int bad;

	if (!s || c->event.lent)
		return sendmsg(c->sfd, msg, flags | MSG_DONTWAIT);
	if (s->sent) {
		s->sent = false;
		return result(io->out.ret);
	}
	if (flexsc_pending(&io->out))
		return result(-EAGAIN);
	io->out.handler = sent;
	flags |= MSG_NOSIGNAL;
	size = gather(io, msg);
	if (size)
		bad = flexsc_send(&io->out, c->sfd, s->input, size, flags);
	else if (copy(s, msg))
		bad = flexsc_sendmsg(&io->out, c->sfd, &s->msg, flags);
	else
		bad = -ENOMEM;
	if (bad)
		return result(bad);
	if (flexsc_take(&io->out))
		return result(io->out.ret);
	return result(-EAGAIN);
}

/* Waiting ------------------------------------------------------------------ */

static bool make_stream(struct mc_io *io)
{
	struct mc_stream *s = io->stream;

	if (s)
		return true;
	s = malloc(sizeof(*s));
	if (!s)
		return false;
	memset(s, 0, offsetof(struct mc_stream, input));
	s->iovs = s->few;
	s->nr_iovs = MC_FEW_IOVS;
	io->stream = s;
	return true;
}

/* For a value that is read the server's own memory stays where it is. */
static void arm_input(struct event *ev, struct mc_io *io)
{
	struct mc_stream *s = io->stream;
	const conn *c = ev->ev_arg;

	if (c->state != conn_nread && c->state != conn_swallow)
		s->target = NULL;
	io->in.handler = received;
	if (s->target)
		flexsc_recv(&io->in, ev->ev_fd, s->target, s->target_size, 0);
	else
		flexsc_recv(&io->in, ev->ev_fd, s->input, MC_INPUT_SIZE, 0);
}

void mc_arm_stream(struct event *ev)
{
	struct mc_io *io = ev->io;

	if (ev->lent) {
		ev->lent = false;
		set_nonblocking(ev->ev_fd, false);
	}
	if (!make_stream(io)) {
		shutdown(ev->ev_fd, SHUT_RDWR); /* that is what it will read */
		mc_kick(io);
		return;
	}
	if (ev->ev_events & EV_WRITE && !flexsc_pending(&io->out))
		mc_kick(io);
	if (!(ev->ev_events & EV_READ) || flexsc_pending(&io->in))
		return;
	if (io->stream->nr || io->stream->has_got)
		mc_kick(io);
	else
		arm_input(ev, io);
}

void mc_lend(struct event *ev)
{
	const conn *c = ev->ev_arg;

	if (c->state != conn_watch)
		return;
	ev->lent = true;
	set_nonblocking(ev->ev_fd, true);
}

/* Accepting ---------------------------------------------------------------- */

static void accepted(struct flexsc_event *op)
{
	struct mc_io *io = op->data;
	struct mc_listener *l = io->listener;

	if (io->leaving) {
		if (op->ret >= 0)
			close((int)op->ret);
		mc_left(io);
		return;
	}
	/*
	 * Switched off and on again meanwhile? Or made while one before it,
	 * which the server may have turned away since, had the last descriptor?
	 */
	if (op->ret == -ECANCELED ||
	    (op->ret == -EMFILE &&
	     l->posted_at[op - l->accepts] != l->nr_got)) {
		if (io->ev->added && !io->ev->ev_base->exits)
			mc_arm_listener(io->ev);
		return;
	}
	l->nr_got += op->ret >= 0;
	if (op->ret >= 0)
		l->accepted[l->nr_accepted++] = (int)op->ret;
	else if (io->ev->added)
		l->error = (int)op->ret;
	mc_fire(io, EV_READ);
}

int mc_accept(conn *c)
{
	struct mc_listener *l = c->event.io->listener;
	int fd = l->error ? l->error : -EAGAIN;

	if (!l->nr_accepted) {
		l->error = 0;
		return (int)result(fd);
	}
	fd = l->accepted[0];
	memmove(l->accepted, l->accepted + 1,
		(size_t)--l->nr_accepted * sizeof(fd));
	return fd;
}

void mc_arm_listener(struct event *ev)
{
	struct mc_io *io = ev->io;
	struct mc_listener *l = io->listener;
	int free_places;

	if (!(ev->ev_events & EV_READ))
		return;
	if (!l) {
		l = io->listener = calloc(1, sizeof(*l));
		if (!l)
			return;
		/* OpenSSL reads and writes by itself. */
		l->flags = uses_tls(ev->ev_arg) ? SOCK_NONBLOCK : 0;
	}
	if (l->nr_accepted)
		mc_kick(io);
	free_places = MC_NR_ACCEPTS - l->nr_accepted;
	for (int i = 0; i < MC_NR_ACCEPTS; i++)
		free_places -= flexsc_pending(&l->accepts[i]);
	for (int i = 0; i < MC_NR_ACCEPTS && free_places > 0; i++) {
		struct flexsc_event *op = &l->accepts[i];

		if (flexsc_pending(op))
			continue;
		l->posted_at[i] = l->nr_got;
		op->handler = accepted;
		op->data = io;
		flexsc_accept4(op, ev->ev_fd, NULL, NULL, l->flags);
		free_places--;
	}
}

/* Going -------------------------------------------------------------------- */

/*
 * At once, not by a posted call: who waits for a free descriptor is told right
 * after. Here, for those whose calls had to end first.
 */
void mc_shut(int fd)
{
	if (flexsc_loop_current())
		flexsc_forget(fd);
	close(fd);
	pthread_mutex_lock(&conn_lock);
	allow_new_conns = true;
	pthread_mutex_unlock(&conn_lock);
}

void mc_close(conn *c)
{
	struct event *ev = &c->event;

	mc_leave(ev);
	if (!ev->leaving) {
		mc_shut(c->sfd);
		return;
	}
	ev->leaving->close_fd = c->sfd;
	ev->leaving = NULL;
}
