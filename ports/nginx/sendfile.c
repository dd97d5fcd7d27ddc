/* SPDX-License-Identifier: MIT */
/*
 * Sending what static.c has opened and does not read, by posted calls, where
 * engines make calls elsewhere: the header, copied, and then the file. nginx
 * takes it that nothing could be sent yet, and is told that the connection can
 * be written to when the calls are over; what they have sent is counted then.
 * So an answer is there, with its file, as long as something of it is in flight;
 * who ends it before (file_end() of static.c, del_conn()) waits for the calls.
 *
 * A call takes what there is room for, as nginx's own do: a slow client is one
 * that makes no room, which nginx notices (send_timeout).
 */
#include "ports/nginx/ngx_flexsc.h"

#include <sys/socket.h>

#define HEAD_SIZE 2048
#define FILE_MOST 0x7ffff000 /* the kernel's limit of a call */

struct ngx_flexsc_part {
	struct ngx_flexsc_op sent; /* first; its owner is the connection */
	struct ngx_flexsc_part *next; /* free */
	bool flying; /* until it was found to be over */
	size_t head; /* bytes that go before the file; 0: none, or no more */
	int fd;
	off_t offset;
	size_t size;
	off_t done; /* so much was sent, or */
	ngx_err_t error;
	u_char bytes[HEAD_SIZE];
};

static struct ngx_flexsc_part *free_parts;

static void part_free(struct ngx_flexsc_part *p)
{
	p->next = free_parts;
	free_parts = p;
}

static int part_post(struct ngx_flexsc_part *p, ngx_socket_t fd)
{
	if (p->head)
		return flexsc_send(&p->sent.call, fd, p->bytes, p->head,
				   MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE);
	return flexsc_sendfile(&p->sent.call, fd, p->fd, &p->offset, p->size);
}

/* Return: false if it is over. */
static bool part_go_on(struct ngx_flexsc_part *p, ngx_connection_t *c)
{
	int64_t ret = p->sent.call.ret;

	if (ret < 0) {
		p->error = (ngx_err_t)-ret;
		return false;
	}
	p->done += ret;
	if (!p->head || (size_t)ret < p->head)
		return false;
	p->head = 0;
	return part_post(p, c->fd) == 0;
}

static void part_over(struct ngx_flexsc_op *op)
{
	struct ngx_flexsc_part *p = (struct ngx_flexsc_part *)op;
	ngx_connection_t *c = op->owner;

	if (!c) {
		part_free(p);
		return;
	}
	if (part_go_on(p, c))
		return;
	p->flying = false;
	c->write->ready = 1;
	if (c->write->active && c->write->index == NGX_INVALID_INDEX)
		ngx_flexsc_deliver(c->write);
}

/* Memory first, and then of the file that is ours to send. */
static bool part_fill(struct ngx_flexsc_part *p, ngx_chain_t *chain, int fd,
		      off_t limit)
{
	off_t size;

	p->head = 0;
	for (; chain; chain = chain->next) {
		ngx_buf_t *b = chain->buf;
		size_t n = (size_t)ngx_buf_size(b);

		if (ngx_buf_special(b))
			continue;
		if (!ngx_buf_in_memory(b))
			break;
		if (n > HEAD_SIZE - p->head)
			return false;
		ngx_memcpy(p->bytes + p->head, b->pos, n);
		p->head += n;
	}
	if (!chain || !chain->buf->in_file || chain->buf->file->fd != fd)
		return false;
	size = ngx_min(ngx_buf_size(chain->buf), FILE_MOST);
	if (limit && size > limit - (off_t)p->head)
		size = limit - (off_t)p->head;
	if (size <= 0)
		return false;
	p->fd = fd;
	p->offset = chain->buf->file_pos;
	p->size = (size_t)size;
	return true;
}

static struct ngx_flexsc_part *part_new(ngx_connection_t *c, ngx_chain_t *chain,
					int fd, off_t limit)
{
	struct ngx_flexsc_part *p = free_parts;

	if (p)
		free_parts = p->next;
	else
		p = ngx_calloc(sizeof(*p), ngx_cycle->log);
	if (!p)
		return NULL;
	p->sent.call.handler = ngx_flexsc_op_done;
	p->sent.call.data = &p->sent;
	p->sent.over = part_over;
	p->sent.owner = c;
	p->done = 0;
	p->error = 0;
	p->flying = part_fill(p, chain, fd, limit) && !part_post(p, c->fd);
	if (p->flying)
		return p;
	part_free(p);
	return NULL;
}

/* It is over: as nginx's own would have it. */
static ngx_chain_t *part_take(struct ngx_flexsc_io *io, ngx_connection_t *c,
			      ngx_chain_t *chain)
{
	struct ngx_flexsc_part *p = io->part;

	io->part = NULL;
	if (!p->done && !p->error)
		p->error = EIO; /* the file is shorter than it was */
	if (!p->done && p->error != NGX_EAGAIN) {
		c->write->error = 1;
		ngx_connection_error(c, p->error, (char *)"sendfile() failed");
		chain = NGX_CHAIN_ERROR;
	} else {
		c->sent += p->done;
		chain = ngx_chain_update_sent(chain, p->done);
		c->write->ready = p->error != NGX_EAGAIN;
	}
	part_free(p);
	return chain;
}

bool ngx_flexsc_send_file(struct ngx_flexsc_io *io, ngx_connection_t *c,
			  ngx_chain_t **chain, off_t limit)
{
	if (io->part && io->part->flying) {
		c->write->ready = 0;
		return true;
	}
	if (io->part) {
		*chain = part_take(io, c, *chain);
		if (!*chain || *chain == NGX_CHAIN_ERROR || !c->write->ready)
			return true;
	}
	if (!io->has_file || ngx_flexsc_at_once ||
	    c->tcp_nopush == NGX_TCP_NOPUSH_UNSET)
		return false;
	io->part = part_new(c, *chain, io->file, limit);
	c->write->ready = !io->part;
	return io->part != NULL;
}

void ngx_flexsc_sends(ngx_connection_t *c, int fd)
{
	struct ngx_flexsc_io *io = ngx_flexsc_io(c);

	if (!io)
		return;
	io->file = fd;
	io->has_file = true;
}

bool ngx_flexsc_send_file_flies(const struct ngx_flexsc_io *io)
{
	return io->part && io->part->flying;
}

void ngx_flexsc_send_file_end(struct ngx_flexsc_io *io)
{
	struct ngx_flexsc_part *p = io->part;

	io->has_file = false;
	io->part = NULL;
	if (!p)
		return;
	if (!p->flying) {
		part_free(p);
		return;
	}
	/* Freed when its turn comes on the list of what is over. */
	p->sent.owner = NULL;
	if (flexsc_pending(&p->sent.call))
		flexsc_cancel(&p->sent.call);
	ngx_flexsc_wait_over(&p->sent.call);
}
