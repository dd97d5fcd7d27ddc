/* SPDX-License-Identifier: MIT */
/*
 * ngx_flexsc_module: nginx driven by libflexsc, as a dynamic module for the
 * unmodified program (libflexsc-atc11.txt, 5.2).
 *
 * The way of an event
 *
 *	nginx: add_event()      "tell me when this can be read"     module
 *	  v
 *	an operation is posted: struct ngx_flexsc_op                op
 *	  v
 *	process_events()        rounds of the loop; handlers only
 *	                        put operations on a list            module
 *	  v
 *	time is updated, then the list is gone through, and nginx's
 *	handlers are called: they read, write, post again           op
 *
 * So nginx never runs inside a round of the loop: its handlers see the present
 * time, may close what they like, and may run a round themselves where a call
 * has to be over before they go on.
 *
 * Which model of events. nginx is told that an event is gone once it has been
 * delivered, as of Solaris' event ports (NGX_USE_EVENTPORT_EVENT): one posted
 * operation is one notice. active: an operation is posted; when it is over,
 * active and oneshot are 0 and ready is 1, for its direction alone. nginx asks
 * again (ngx_handle_read_event()) when a try has found nothing, or less than it
 * had room for. That is what FLEXSC_READY_NEXT says, so asking again costs no
 * system call, and a descriptor is put into the engine's epoll set once.
 *
 * Who owns what
 *
 * - An operation belongs to this module from op_new() on, and to the library
 *   while it is posted. It points to the event; the event's index points back.
 *   Deleting the event cuts both, and asks that the operation be cancelled; it
 *   goes back to the free ones when it is over, whenever that is. Nothing of
 *   nginx's memory is known to the library during a wait for readiness: nginx
 *   may free buffers (it does so of a header that has not come) and connections.
 * - del_conn() comes before each close(2) of a connection: what is posted on the
 *   descriptor is cancelled, and its record forgotten (flexsc_forget()), before
 *   the number can be another file's.
 * - A file that is opened for a request (static) is the request's: its events,
 *   stat buffer and path are in the request's pool, which cannot go away
 *   meanwhile (main->blocked). The descriptor is closed by a posted call when
 *   the pool goes, or when its bytes were read. While it is being sent by a
 *   posted call, the pool's end waits for that (sendfile).
 *
 * Where readiness is enough. Whatever does not go through nginx's c->recv and
 * c->send: OpenSSL, which reads the socket itself; looks at a connection by
 * MSG_PEEK; the pipe between master and workers; upstream connections; UDP,
 * which keeps nginx's own handlers. Accepting and static files are calls.
 *
 * Signals interrupt the wait, and process_events() returns; nginx looks at its
 * flags then, as it does with its own modules.
 */
#ifndef PORTS_NGINX_NGX_FLEXSC_H
#define PORTS_NGINX_NGX_FLEXSC_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include <flexsc.h>
#include <stdbool.h>

/* What is posted, and what is to be done when it is over. */
struct ngx_flexsc_op {
	struct flexsc_event call;
	void (*over)(struct ngx_flexsc_op *op);
	void *owner; /* whose; NULL: nobody's any more */
	struct flexsc_event *first; /* of a chain that @call is the end of */
	struct ngx_flexsc_op *next; /* on the list it is on */
};

struct ngx_flexsc_conf {
	ngx_str_t engine;
	ngx_int_t nr_accepts; /* posted at once, or made for one notice */
};

extern ngx_module_t ngx_flexsc_module;
extern ngx_module_t ngx_http_flexsc_static_module;

/* Of this process; NULL: another event module is in use, or it has ended. */
extern struct flexsc_loop *ngx_flexsc_loop;

/*
 * So many more (or less) things are in flight that a worker which is to end
 * gracefully has to wait for; nginx itself looks at its timers.
 */
void ngx_flexsc_hold(int more);

/* op.c */
struct ngx_flexsc_op *ngx_flexsc_op_new(void);
void ngx_flexsc_op_free(struct ngx_flexsc_op *op);
/* The handler of each: @over is called once the round has ended. */
void ngx_flexsc_op_done(struct flexsc_event *call);
/* Call what is to be called. @post: nginx wants its events posted. */
void ngx_flexsc_ops_run(ngx_uint_t post);
ngx_uint_t ngx_flexsc_ops_waiting(void);

/**
 * ngx_flexsc_watch - deliver this event when its descriptor is ready
 * @next: it was found not to be, see FLEXSC_READY_NEXT
 *
 * Return: NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_flexsc_watch(ngx_event_t *ev, bool next);
void ngx_flexsc_unwatch(ngx_event_t *ev);

/* The descriptor of this event is ready. */
void ngx_flexsc_deliver(ngx_event_t *ev);

/* Of a connection: what is in flight, or here, beside waits for readiness. */
struct ngx_flexsc_io {
	struct ngx_flexsc_in *in;
	struct ngx_flexsc_out *out;
	struct ngx_flexsc_part *part;
	int file; /* has_file: the one that is the answer */
	bool has_file;
	bool keeps; /* the answer in the making may be copied */
};

/* io.c */
/* NULL: it has none. */
struct ngx_flexsc_io *ngx_flexsc_io(const ngx_connection_t *c);
/* The last chain was over when it had been posted: calls are made here. */
extern bool ngx_flexsc_at_once;
ssize_t ngx_flexsc_recv(ngx_connection_t *c, u_char *buf, size_t size);
ssize_t ngx_flexsc_recv_chain(ngx_connection_t *c, ngx_chain_t *chain,
			      off_t limit);
ssize_t ngx_flexsc_send(ngx_connection_t *c, u_char *buf, size_t size);
ngx_chain_t *ngx_flexsc_send_chain(ngx_connection_t *c, ngx_chain_t *chain,
				   off_t limit);
/* What is sent next belongs to an answer behind which the connection stays. */
void ngx_flexsc_keeps(ngx_connection_t *c, bool keeps);
/* Instead of watching: post a receive. Return: false if it must be watched. */
bool ngx_flexsc_receive(ngx_event_t *ev);
/* Bytes are on their way: the event is delivered when they are out. */
bool ngx_flexsc_sending(const ngx_event_t *ev);
void ngx_flexsc_cancel(struct ngx_flexsc_op *op);
/* Rounds of the loop until it is over; its handler has been called then. */
void ngx_flexsc_wait_over(struct flexsc_event *call);
/* The connection is about to be closed. */
void ngx_flexsc_io_end(ngx_connection_t *c);

/* sendfile.c */
/*
 * What can be sent of this, if part of it is the connection's file. Return: true
 * if it was, or is under way: @chain is what is left; false: the caller sends it.
 */
bool ngx_flexsc_send_file(struct ngx_flexsc_io *io, ngx_connection_t *c,
			  ngx_chain_t **chain, off_t limit);
/* What is sent from here on is an answer of this file. */
void ngx_flexsc_sends(ngx_connection_t *c, int fd);
bool ngx_flexsc_send_file_flies(const struct ngx_flexsc_io *io);
/* The file, or the connection, is about to be closed. */
void ngx_flexsc_send_file_end(struct ngx_flexsc_io *io);

/* accept.c */
/* A listening socket's event is to be delivered: from now on by us. */
ngx_int_t ngx_flexsc_listen(ngx_event_t *ev);
/* No more of them. What was accepted by then is served. */
void ngx_flexsc_unlisten(ngx_event_t *ev);

#endif /* PORTS_NGINX_NGX_FLEXSC_H */
