/* SPDX-License-Identifier: MIT */
/*
 * Accepting connections, several for each notice, and making nginx's
 * connections of them. Listening sockets that are not for streams (UDP, QUIC)
 * keep nginx's handlers, and only their readiness comes from here.
 */
#include "ports/nginx/ngx_flexsc.h"

#include <sys/socket.h>

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

static void accepted(ngx_event_t *ev, int fd, const ngx_sockaddr_t *sa,
		     socklen_t size)
{
	ngx_connection_t *c, *listener = ev->data;
	ngx_listening_t *ls = listener->listening;

#if (NGX_STAT_STUB)
	(void)ngx_atomic_fetch_add(ngx_stat_accepted, 1);
#endif
	ngx_accept_disabled = (ngx_int_t)(ngx_cycle->connection_n / 8) -
			      (ngx_int_t)ngx_cycle->free_connection_n;
	c = ngx_get_connection(fd, ev->log);
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
	if (ev->deferred_accept) {
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
			ngx_flexsc_unwatch(ls[i].connection->read);
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

static void accept_some(ngx_event_t *ev)
{
	struct ngx_flexsc_conf *conf =
		ngx_event_get_conf(ngx_cycle->conf_ctx, ngx_flexsc_module);
	ngx_connection_t *listener = ev->data;
	bool more = true;

	if (ev->timedout) {
		ev->timedout = 0;
		if (ngx_enable_accept_events((ngx_cycle_t *)ngx_cycle) !=
		    NGX_OK)
			return;
	}
	ev->ready = 0;
	for (ngx_int_t i = 0; i < conf->nr_accepts && more; i++) {
		ngx_sockaddr_t sa;
		socklen_t size = sizeof(sa);
		int fd = accept4(listener->fd, &sa.sockaddr, &size,
				 SOCK_NONBLOCK);

		if (fd >= 0)
			accepted(ev, fd, &sa, ngx_min(size, sizeof(sa)));
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

ngx_int_t ngx_flexsc_listen(ngx_event_t *ev)
{
	if (ev->handler == ngx_event_accept)
		ev->handler = accept_some;
	else if (ev->handler == ngx_event_recvmsg)
		ev->handler = receive_some;
	return ngx_flexsc_watch(ev, false);
}
