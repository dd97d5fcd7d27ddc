/* SPDX-License-Identifier: MIT */
/*
 * Operations: waits for readiness on behalf of nginx's events, and the list of
 * what is over. Which calls are made of readiness is not decided here.
 */
#include "ports/nginx/ngx_flexsc.h"

#include <poll.h>

static struct ngx_flexsc_op *free_ops;
static struct ngx_flexsc_op *done_first, **done_last = &done_first;
static ngx_uint_t post_events;

struct ngx_flexsc_op *ngx_flexsc_op_new(void)
{
	struct ngx_flexsc_op *op = free_ops;

	if (!op)
		return ngx_calloc(sizeof(*op), ngx_cycle->log);
	free_ops = op->next;
	return op;
}

void ngx_flexsc_op_free(struct ngx_flexsc_op *op)
{
	op->next = free_ops;
	free_ops = op;
}

void ngx_flexsc_op_done(struct flexsc_event *call)
{
	struct ngx_flexsc_op *op = call->data;

	op->next = NULL;
	*done_last = op;
	done_last = &op->next;
}

ngx_uint_t ngx_flexsc_ops_waiting(void)
{
	return done_first != NULL;
}

void ngx_flexsc_ops_run(ngx_uint_t post)
{
	struct ngx_flexsc_op *op, *first = done_first;

	post_events = post;
	/* What they add is for the next time. */
	done_first = NULL;
	done_last = &done_first;
	while ((op = first)) {
		first = op->next;
		op->over(op);
	}
}

/* Its descriptor is ready, or whoever waited has gone. */
static void watched(struct ngx_flexsc_op *op)
{
	ngx_event_t *ev = op->owner;
	int64_t ret = op->call.ret;

	ngx_flexsc_op_free(op);
	if (!ev)
		return;
	/* For want of memory: not again, so nginx ends the connection. */
	ev->error |= ret < 0;
	ngx_flexsc_deliver(ev);
}

void ngx_flexsc_deliver(ngx_event_t *ev)
{
	ev->index = NGX_INVALID_INDEX;
	ev->ready = 1;
	ev->available = -1;
	if (!ev->accept) {
		ev->active = 0;
		ev->oneshot = 0;
	}
	if (!post_events) {
		ev->handler(ev);
		return;
	}
	ngx_post_event(ev, ev->accept ? &ngx_posted_accept_events :
					&ngx_posted_events);
}

ngx_int_t ngx_flexsc_watch(ngx_event_t *ev, bool next)
{
	struct ngx_flexsc_op *op = ev->error ? NULL : ngx_flexsc_op_new();
	ngx_connection_t *c = ev->data;
	unsigned int events = ev->write ? POLLOUT : POLLIN | POLLRDHUP;
	int bad;

	if (!op)
		return NGX_ERROR;
	op->call.handler = ngx_flexsc_op_done;
	op->call.data = op;
	op->over = watched;
	op->owner = ev;
	bad = flexsc_ready(&op->call, c->fd,
			   events | (next ? FLEXSC_READY_NEXT : 0));
	if (bad) {
		ngx_log_error(NGX_LOG_ALERT, ev->log, -bad,
			      "flexsc_ready() failed");
		ngx_flexsc_op_free(op);
		return NGX_ERROR;
	}
	ev->index = (ngx_uint_t)op;
	ev->active = 1;
	ev->oneshot = !ev->accept;
	return NGX_OK;
}

void ngx_flexsc_unwatch(ngx_event_t *ev)
{
	struct ngx_flexsc_op *op = (struct ngx_flexsc_op *)ev->index;

	if (ev->active && ev->index != NGX_INVALID_INDEX) {
		op->owner = NULL;
		/* Over already: then it is on the list, and is freed there. */
		if (flexsc_pending(&op->call))
			ngx_flexsc_cancel(op);
	}
	ev->index = NGX_INVALID_INDEX;
	ev->active = 0;
	ev->oneshot = 0;
}
