/* SPDX-License-Identifier: MIT */
/*
 * Receiving and sending by posted calls, where engines make calls elsewhere
 * (another processor, the kernel): there a read that is made on the worker's
 * thread costs it a crossing, and one that is posted does not.
 *
 * - The next request of a connection that waits for one is received into
 *   memory of ours, behind a wait for readiness, as one chain; nginx has freed
 *   its own buffer by then, and gets a copy when it reads. Only where nothing
 *   but c->recv can be next: what nginx calls "waiting for request", "closing
 *   request" (and keeping the connection) and "keepalive", without TLS.
 * - A small answer of static.c is copied and sent, and counts as sent at once,
 *   as it would in the socket's buffer. Only if the connection is kept: nothing
 *   but more requests can be next, no shutdown(2) behind our back.
 *
 * Other answers of static.c are sendfile.c's. At most one of each is in flight for
 * a connection. del_conn() ends them, and
 * waits until they are over: the number of the descriptor is free afterwards.
 */
#include "ports/nginx/ngx_flexsc.h"

#include <poll.h>
#include <sys/socket.h>

#define RECEIVE_SIZE 1024
#define SEND_SIZE 12288
#define PATIENCE_NS 1000000

/* Bytes on their way in, or here and not read yet. */
struct ngx_flexsc_in {
	struct ngx_flexsc_op got; /* first: the end of the chain */
	struct flexsc_event ready;
	struct ngx_flexsc_in *next; /* free */
	size_t pos, len;
	u_char bytes[RECEIVE_SIZE];
};

/* Bytes on their way out. */
struct ngx_flexsc_out {
	struct ngx_flexsc_op sent; /* first */
	struct ngx_flexsc_out *next; /* free */
	int fd; /* the connection's; its own if that was closed; -1: none */
	bool waits; /* for room; else it is sent */
	size_t pos, len;
	u_char bytes[SEND_SIZE];
};

static struct ngx_flexsc_io *ios; /* one for each connection of a cycle */
static ngx_connection_t *first_connection;
static ngx_uint_t nr_connections;
static struct ngx_flexsc_in *free_ins;
static struct ngx_flexsc_out *free_outs;

bool ngx_flexsc_at_once = true;

struct ngx_flexsc_io *ngx_flexsc_io(const ngx_connection_t *c)
{
	size_t n = (size_t)(c - first_connection);

	if (!ios && ngx_cycle->connections) {
		first_connection = ngx_cycle->connections;
		nr_connections = ngx_cycle->connection_n;
		ios = ngx_calloc(nr_connections * sizeof(*ios), ngx_cycle->log);
		n = (size_t)(c - first_connection);
	}
	/* Not of this cycle: one process alone, which was told to reload. */
	return ios && c >= first_connection && n < nr_connections ? &ios[n] :
								    NULL;
}

/* Receiving ---------------------------------------------------------------- */

static void in_free(struct ngx_flexsc_in *in)
{
	in->next = free_ins;
	free_ins = in;
}

static void in_post(struct ngx_flexsc_in *in, int fd)
{
	flexsc_chain_begin();
	flexsc_ready(&in->ready, fd, POLLIN | POLLRDHUP | FLEXSC_READY_NEXT);
	flexsc_recv(&in->got.call, fd, in->bytes, RECEIVE_SIZE, MSG_DONTWAIT);
	/* Not to be had: nginx looks for itself. */
	if (flexsc_chain_end()) {
		in->got.call.ret = -ENOMEM;
		ngx_flexsc_op_done(&in->got.call);
	}
}

static void received(struct ngx_flexsc_op *op)
{
	struct ngx_flexsc_in *in = (struct ngx_flexsc_in *)op;
	ngx_event_t *ev = op->owner;
	ngx_connection_t *c;

	if (!ev) {
		in_free(in);
		return;
	}
	c = ev->data;
	if (op->call.ret == -EAGAIN) { /* it was ready for nothing */
		in_post(in, c->fd);
		return;
	}
	if (op->call.ret > 0) {
		in->pos = 0;
		in->len = (size_t)op->call.ret;
		ngx_flexsc_io(c)->in = in;
	} else { /* the end, or an error: found again by a plain call */
		in_free(in);
	}
	ngx_flexsc_deliver(ev);
}

static bool only_receives(const ngx_connection_t *c)
{
	const char *doing = c->log->action;

	return !ngx_flexsc_at_once && c->recv == ngx_flexsc_recv && doing &&
#if (NGX_SSL)
	       !c->ssl &&
#endif
	       (strcmp(doing, "waiting for request") == 0 ||
		strcmp(doing, "closing request") == 0 ||
		strcmp(doing, "keepalive") == 0);
}

bool ngx_flexsc_receive(ngx_event_t *ev)
{
	ngx_connection_t *c = ev->data;
	struct ngx_flexsc_io *io;
	struct ngx_flexsc_in *in = free_ins;

	if (ev->write || ev->accept || ev->channel || !only_receives(c))
		return false;
	io = ngx_flexsc_io(c);
	if (!io || io->in)
		return false;
	if (in)
		free_ins = in->next;
	else
		in = ngx_calloc(sizeof(*in), ngx_cycle->log);
	if (!in)
		return false;
	in->got.call.handler = ngx_flexsc_op_done;
	in->got.call.data = &in->got;
	in->got.over = received;
	in->got.owner = ev;
	in->got.first = &in->ready;
	in_post(in, c->fd);
	ev->index = (ngx_uint_t)&in->got;
	ev->active = 1;
	ev->oneshot = 1;
	return true;
}

ssize_t ngx_flexsc_recv(ngx_connection_t *c, u_char *buf, size_t size)
{
	struct ngx_flexsc_io *io = ngx_flexsc_io(c);
	struct ngx_flexsc_in *in = io ? io->in : NULL;
	size_t n;

	if (!in)
		return ngx_os_io.recv(c, buf, size);
	n = ngx_min(size, in->len - in->pos);
	ngx_memcpy(buf, in->bytes + in->pos, n);
	in->pos += n;
	if (in->pos == in->len) {
		/* Less than there was room for: that was all. */
		c->read->ready = in->len == RECEIVE_SIZE;
		io->in = NULL;
		in_free(in);
	}
	return (ssize_t)n;
}

ssize_t ngx_flexsc_recv_chain(ngx_connection_t *c, ngx_chain_t *chain,
			      off_t limit)
{
	struct ngx_flexsc_io *io = ngx_flexsc_io(c);
	size_t size;

	if (!io || !io->in)
		return ngx_os_io.recv_chain(c, chain, limit);
	while (chain && chain->buf->last == chain->buf->end)
		chain = chain->next;
	if (!chain)
		return NGX_AGAIN;
	size = (size_t)(chain->buf->end - chain->buf->last);
	if (limit && (off_t)size > limit)
		size = (size_t)limit;
	return ngx_flexsc_recv(c, chain->buf->last, size);
}

/* Sending ------------------------------------------------------------------ */

static void out_free(struct ngx_flexsc_out *out)
{
	out->next = free_outs;
	free_outs = out;
}

static int out_post(struct ngx_flexsc_out *out)
{
	out->waits = false;
	return flexsc_send(&out->sent.call, out->fd, out->bytes + out->pos,
			   out->len - out->pos, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Go on with what is left. Return: false if it is over, or cannot be sent. */
static bool out_go_on(struct ngx_flexsc_out *out)
{
	int64_t ret = out->sent.call.ret;

	if (out->fd < 0)
		return false;
	if (out->waits)
		return out_post(out) == 0;
	if (ret == -EAGAIN) {
		out->waits = true;
		return flexsc_ready(&out->sent.call, out->fd,
				    POLLOUT | FLEXSC_READY_NEXT) == 0;
	}
	if (ret <= 0)
		return false;
	out->pos += (size_t)ret;
	return out->pos < out->len && out_post(out) == 0;
}

static void sent(struct ngx_flexsc_op *op)
{
	struct ngx_flexsc_out *out = (struct ngx_flexsc_out *)op;
	ngx_connection_t *c = op->owner;

	if (out_go_on(out))
		return;
	/* Over; that it failed is found when the next request is read. */
	if (!c)
		ngx_flexsc_hold(-1);
	if (!c && out->fd >= 0) {
		flexsc_forget(out->fd);
		ngx_close_socket(out->fd);
	}
	out_free(out);
	if (!c)
		return;
	ngx_flexsc_io(c)->out = NULL;
	if (c->write->active && c->write->index == NGX_INVALID_INDEX)
		ngx_flexsc_deliver(c->write);
}

void ngx_flexsc_keeps(ngx_connection_t *c, bool keeps)
{
	struct ngx_flexsc_io *io = ngx_flexsc_io(c);

	if (io)
		io->keeps = keeps && !ngx_flexsc_at_once;
}

/* All in memory, and not too much. Return: how much; 0: it is not. */
static size_t copy_chain(ngx_chain_t *chain, u_char *to)
{
	size_t size = 0;

	for (; chain; chain = chain->next) {
		ngx_buf_t *b = chain->buf;
		size_t n = (size_t)ngx_buf_size(b);

		if (ngx_buf_special(b))
			continue;
		if (!ngx_buf_in_memory(b) || n > SEND_SIZE - size)
			return 0;
		ngx_memcpy(to + size, b->pos, n);
		size += n;
	}
	return size;
}

static struct ngx_flexsc_out *out_new(ngx_connection_t *c, ngx_chain_t *chain)
{
	struct ngx_flexsc_out *out = free_outs;

	if (out)
		free_outs = out->next;
	else
		out = ngx_calloc(sizeof(*out), ngx_cycle->log);
	if (!out)
		return NULL;
	out->sent.call.handler = ngx_flexsc_op_done;
	out->sent.call.data = &out->sent;
	out->sent.over = sent;
	out->sent.owner = c;
	out->fd = c->fd;
	out->pos = 0;
	out->len = copy_chain(chain, out->bytes);
	if (!out->len || out_post(out)) {
		out_free(out);
		return NULL;
	}
	return out;
}

ngx_chain_t *ngx_flexsc_send_chain(ngx_connection_t *c, ngx_chain_t *chain,
				   off_t limit)
{
	struct ngx_flexsc_io *io = ngx_flexsc_io(c);

	if (!io || !c->write->ready)
		return ngx_os_io.send_chain(c, chain, limit);
	if (io->out) { /* first come, first sent */
		c->write->ready = 0;
		return chain;
	}
	if (ngx_flexsc_send_file(io, c, &chain, limit))
		return chain;
	if (!io->keeps)
		return ngx_os_io.send_chain(c, chain, limit);
	/* sendfile_max_chunk; a limit of rate is less. */
	io->out = limit && limit < SEND_SIZE ? NULL : out_new(c, chain);
	if (!io->out)
		return ngx_os_io.send_chain(c, chain, limit);
	c->sent += (off_t)io->out->len;
	return ngx_chain_update_sent(chain, (off_t)io->out->len);
}

ssize_t ngx_flexsc_send(ngx_connection_t *c, u_char *buf, size_t size)
{
	struct ngx_flexsc_io *io = ngx_flexsc_io(c);

	if (!io || !(io->out || io->part))
		return ngx_os_io.send(c, buf, size);
	c->write->ready = 0;
	return NGX_AGAIN;
}

bool ngx_flexsc_sending(const ngx_event_t *ev)
{
	const struct ngx_flexsc_io *io = ev->write ? ngx_flexsc_io(ev->data) :
						     NULL;

	return io && (io->out || ngx_flexsc_send_file_flies(io));
}

/* Ending ------------------------------------------------------------------- */

void ngx_flexsc_wait_over(struct flexsc_event *call)
{
	while (flexsc_pending(call) &&
	       flexsc_loop_poll(ngx_flexsc_loop, PATIENCE_NS) >= 0)
		;
}

void ngx_flexsc_cancel(struct ngx_flexsc_op *op)
{
	if (!op->first) {
		flexsc_cancel(&op->call);
		return;
	}
	/* It writes to memory, and takes bytes: only when it is over. */
	flexsc_cancel(op->first);
	flexsc_cancel(&op->call);
	ngx_flexsc_wait_over(&op->call);
}

/* The rest goes out by another number for the same connection. */
static void out_detach(struct ngx_flexsc_out *out)
{
	bool all;

	if (out->waits)
		flexsc_cancel(&out->sent.call);
	ngx_flexsc_wait_over(&out->sent.call);
	all = !out->waits && out->sent.call.ret != -EAGAIN &&
	      (out->sent.call.ret < 0 ||
	       out->pos + (size_t)out->sent.call.ret == out->len);
	out->fd = all ? -1 : dup(out->fd);
	out->sent.owner = NULL;
	ngx_flexsc_hold(1);
}

void ngx_flexsc_io_end(ngx_connection_t *c)
{
	struct ngx_flexsc_io *io = ngx_flexsc_io(c);

	if (!io)
		return;
	if (io->in)
		in_free(io->in);
	if (io->out)
		out_detach(io->out);
	ngx_flexsc_send_file_end(io);
	*io = (struct ngx_flexsc_io){ 0 };
}
