/* SPDX-License-Identifier: MIT */
/*
 * Accepting connections by posted calls, several at once, and making nginx's
 * connections of them. Its listening sockets have to be O_NONBLOCK; where an
 * engine's calls cannot wait on such (flexsc_ignore_nonblock()), their readiness
 * is waited for, and several are accepted for each notice. Those that are not
 * for streams (UDP, QUIC) keep nginx's handlers, and only readiness is from here.
 */
#include "ports/nginx/ngx_flexsc.h"

#include <sys/socket.h>

struct accept_op {
	struct ngx_flexsc_op op; /* first */
	bool flying; /* until @op.over was called */
	bool held; /* a worker that ends waits for it */
	struct listener *of;
	ngx_sockaddr_t sa;
	socklen_t size;
};

/* A listening socket whose accepts are posted. Kept for ever: they are few. */
struct listener {
	struct listener *next;
	ngx_event_t *ev;
	ngx_listening_t *ls;
	bool on; /* new ones are posted */
	ngx_int_t nr_ops;
	struct accept_op ops[];
};

static struct listener *listeners;

/* Accepted, and nobody's any more. */
static void drop(ngx_connection_t *c)
{
	ngx_socket_t fd = c->fd;

	ngx_free_connection(c);
	c->fd = (ngx_socket_t)-1;
	ngx_close_socket(fd);
	if (c->pool)
		ngx_destroy_pool(c->pool);
#if (NGX_STAT_STUB)
	(void)ngx_atomic_fetch_add(ngx_stat_active, -1);
#endif
}

/* Its peer's address, and in text where the server wants that. */
static bool name_peer(ngx_connection_t *c, ngx_listening_t *ls,
		      const ngx_sockaddr_t *sa, socklen_t size)
{
	c->sockaddr = ngx_palloc(c->pool, size);
	if (!c->sockaddr)
		return false;
	ngx_memcpy(c->sockaddr, sa, size);
	c->socklen = size;
	if (!ls->addr_ntop)
		return true;
	c->addr_text.data = ngx_pnalloc(c->pool, ls->addr_text_max_len);
	if (!c->addr_text.data)
		return false;
	c->addr_text.len = ngx_sock_ntop(c->sockaddr, size, c->addr_text.data,
					 ls->addr_text_max_len, 0);
	return c->addr_text.len != 0;
}

/* The parts of a connection that nginx wants an event module to fill. */
static bool equip(ngx_connection_t *c, ngx_listening_t *ls,
		  const ngx_sockaddr_t *sa, socklen_t size)
{
	ngx_log_t *log;

	c->pool = ngx_create_pool(ls->pool_size, &ls->log);
	if (!c->pool)
		return false;
	log = ngx_palloc(c->pool, sizeof(*log));
	if (!log)
		return false;
	*log = ls->log;
	c->log = c->pool->log = c->read->log = c->write->log = log;
	c->type = SOCK_STREAM;
	c->recv = ngx_recv;
	c->send = ngx_send;
	c->recv_chain = ngx_recv_chain;
	c->send_chain = ngx_send_chain;
	c->listening = ls;
	c->local_sockaddr = ls->sockaddr;
	c->local_socklen = ls->socklen;
	c->start_time = ngx_current_msec;
	c->number = ngx_atomic_fetch_add(ngx_connection_counter, 1);
	if (!name_peer(c, ls, sa, size))
		return false;
	if (c->sockaddr->sa_family == AF_UNIX) {
		c->tcp_nopush = NGX_TCP_NOPUSH_DISABLED;
		c->tcp_nodelay = NGX_TCP_NODELAY_DISABLED;
	}
	c->write->ready = 1;
	return true;
}

static void accepted(ngx_listening_t *ls, int fd, const ngx_sockaddr_t *sa,
		     socklen_t size)
{
	ngx_connection_t *c;

#if (NGX_STAT_STUB)
	(void)ngx_atomic_fetch_add(ngx_stat_accepted, 1);
#endif
	ngx_accept_disabled = (ngx_int_t)(ngx_cycle->connection_n / 8) -
			      (ngx_int_t)ngx_cycle->free_connection_n;
	c = ngx_get_connection(fd, &ls->log);
	if (!c) {
		ngx_close_socket(fd);
		return;
	}
#if (NGX_STAT_STUB)
	(void)ngx_atomic_fetch_add(ngx_stat_active, 1);
#endif
	if (!equip(c, ls, sa, size)) {
		drop(c);
		return;
	}
#if (NGX_STAT_STUB)
	(void)ngx_atomic_fetch_add(ngx_stat_handled, 1);
#endif
	/* The first bytes are there already (TCP_DEFER_ACCEPT). */
	if (ls->deferred_accept) {
		c->read->ready = 1;
		c->read->available = 1;
	}
	c->log->data = NULL;
	c->log->handler = NULL;
	ls->handler(c);
}

/* No descriptors are left: nginx's own way is to wait for a moment. */
static void pause_listening(ngx_event_t *ev)
{
	ngx_event_conf_t *conf =
		ngx_event_get_conf(ngx_cycle->conf_ctx, ngx_event_core_module);
	ngx_listening_t *ls = ngx_cycle->listening.elts;

	for (ngx_uint_t i = 0; i < ngx_cycle->listening.nelts; i++)
		if (ls[i].connection && ls[i].connection->read->active)
			ngx_flexsc_unlisten(ls[i].connection->read);
	if (!ngx_use_accept_mutex) {
		ngx_add_timer(ev, conf->accept_mutex_delay);
		return;
	}
	if (ngx_accept_mutex_held) {
		ngx_shmtx_unlock(&ngx_accept_mutex);
		ngx_accept_mutex_held = 0;
	}
	ngx_accept_disabled = 1;
}

/* Return: is there any use in going on? */
static bool refused(ngx_event_t *ev, ngx_err_t err)
{
	bool full = err == NGX_EMFILE || err == NGX_ENFILE;
	ngx_uint_t level = NGX_LOG_ALERT;

	if (full)
		level = NGX_LOG_CRIT;
	else if (err == NGX_ECONNABORTED)
		level = NGX_LOG_ERR;
	ngx_log_error(level, ev->log, err, "accept4() failed");
	if (full)
		pause_listening(ev);
	return err == NGX_ECONNABORTED;
}

/* A listening event is delivered once for each time it was watched. */
static void watch_again(ngx_event_t *ev, bool next)
{
	if (ev->active && ev->index == NGX_INVALID_INDEX &&
	    ngx_flexsc_watch(ev, next) != NGX_OK)
		pause_listening(ev);
}

/* The timer of pause_listening(). */
static bool paused_enough(ngx_event_t *ev)
{
	ev->timedout = 0;
	return ngx_enable_accept_events((ngx_cycle_t *)ngx_cycle) == NGX_OK;
}

static void accept_some(ngx_event_t *ev)
{
	struct ngx_flexsc_conf *conf =
		ngx_event_get_conf(ngx_cycle->conf_ctx, ngx_flexsc_module);
	ngx_connection_t *listener = ev->data;
	bool more = true;

	if (ev->timedout && !paused_enough(ev))
		return;
	ev->ready = 0;
	for (ngx_int_t i = 0; i < conf->nr_accepts && more; i++) {
		ngx_sockaddr_t sa;
		socklen_t size = sizeof(sa);
		int fd = accept4(listener->fd, &sa.sockaddr, &size,
				 SOCK_NONBLOCK);

		if (fd >= 0)
			accepted(listener->listening, fd, &sa,
				 ngx_min(size, sizeof(sa)));
		else if (ngx_errno == NGX_EAGAIN)
			more = false;
		else if (!refused(ev, ngx_errno))
			break;
	}
	watch_again(ev, !more);
}

static void receive_some(ngx_event_t *ev)
{
	ngx_event_recvmsg(ev);
	watch_again(ev, false);
}

/* Posted ------------------------------------------------------------------- */

static void accept_post(struct accept_op *a)
{
	struct listener *l = a->of;

	a->size = sizeof(a->sa);
	a->flying = !flexsc_accept4(&a->op.call, l->ls->fd, &a->sa.sockaddr,
				    &a->size, SOCK_NONBLOCK);
	if (a->flying)
		return;
	ngx_log_error(NGX_LOG_ALERT, &l->ls->log, 0, "accept4() not posted");
	pause_listening(l->ev);
}

/* One is over. It may have been faster than the request to end it. */
static void accept_over(struct ngx_flexsc_op *op)
{
	struct accept_op *a = (struct accept_op *)op;
	struct listener *l = a->of;
	int64_t ret = op->call.ret;

	a->flying = false;
	if (a->held)
		ngx_flexsc_hold(-1);
	a->held = false;
	if (ret >= 0)
		accepted(l->ls, (int)ret, &a->sa,
			 ngx_min(a->size, sizeof(a->sa)));
	else if (l->on && ret != -ECANCELED && ret != -EAGAIN)
		refused(l->ev, (ngx_err_t)-ret);
	/* The handlers of the connection may have switched it off. */
	if (l->on && !a->flying)
		accept_post(a);
}

static void listening(ngx_event_t *ev)
{
	if (ev->timedout)
		paused_enough(ev);
}

static struct listener *listener_of(const ngx_event_t *ev)
{
	struct listener *l = listeners;

	while (l && l->ev != ev)
		l = l->next;
	return l;
}

static struct listener *listener_new(ngx_event_t *ev)
{
	struct ngx_flexsc_conf *conf =
		ngx_event_get_conf(ngx_cycle->conf_ctx, ngx_flexsc_module);
	ngx_int_t nr = conf->nr_accepts;
	struct listener *l = ngx_calloc(
		sizeof(*l) + (size_t)nr * sizeof(l->ops[0]), ngx_cycle->log);

	if (!l)
		return NULL;
	l->ev = ev;
	l->nr_ops = nr;
	for (ngx_int_t i = 0; i < nr; i++) {
		l->ops[i].of = l;
		l->ops[i].op.call.handler = ngx_flexsc_op_done;
		l->ops[i].op.call.data = &l->ops[i].op;
		l->ops[i].op.over = accept_over;
	}
	l->next = listeners;
	listeners = l;
	return l;
}

/* Return: false if it cannot be done so. */
static bool listen_posted(ngx_event_t *ev)
{
	ngx_connection_t *c = ev->data;
	struct listener *l;

	if (flexsc_ignore_nonblock(c->fd))
		return false;
	l = listener_of(ev);
	if (!l)
		l = listener_new(ev);
	if (!l)
		return false;
	l->ls = c->listening;
	l->on = true;
	ev->index = NGX_INVALID_INDEX;
	ev->active = 1;
	for (ngx_int_t i = 0; i < l->nr_ops && l->on; i++)
		if (!l->ops[i].flying)
			accept_post(&l->ops[i]);
	return true;
}

void ngx_flexsc_unlisten(ngx_event_t *ev)
{
	struct listener *l = listener_of(ev);

	ngx_flexsc_unwatch(ev);
	if (!l || !l->on)
		return;
	l->on = false;
	for (ngx_int_t i = 0; i < l->nr_ops; i++)
		if (l->ops[i].flying)
			flexsc_cancel(&l->ops[i].op.call);
	/* The number may be another socket's right after this. */
	for (ngx_int_t i = 0; i < l->nr_ops; i++) {
		struct accept_op *a = &l->ops[i];

		if (!a->flying || a->held)
			continue;
		ngx_flexsc_wait_over(&a->op.call);
		a->held = a->op.call.ret >= 0;
		if (a->held)
			ngx_flexsc_hold(1);
	}
}

ngx_int_t ngx_flexsc_listen(ngx_event_t *ev)
{
	if (ev->handler == ngx_event_recvmsg)
		ev->handler = receive_some;
	else if (ev->handler != receive_some)
		ev->handler = listen_posted(ev) ? listening : accept_some;
	return ev->handler == listening ? NGX_OK : ngx_flexsc_watch(ev, false);
}
