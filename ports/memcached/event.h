/* SPDX-License-Identifier: MIT */
/*
 * What memcached uses of libevent, on libflexsc: under the same names, so that
 * its files stay as they are. One base is one loop, of the thread that runs it.
 *
 * An event of a connection is driven by completions (see connection.h); others
 * (UDP, TLS, the pipes between threads) by flexsc_ready(), timers by
 * flexsc_timer(). Events are level-triggered, as libevent's are. They are armed
 * when all handlers of a round have run, so deleting and adding costs nothing.
 *
 * Ownership. Calls in flight name memory of struct mc_io, never of the event
 * or its connection. Closing a connection, or deleting an event that is none of
 * one, cancels its calls in flight and leaves them to the struct mc_io, which
 * goes when the last one is over and closes the descriptor then; so a number is
 * not used again while a call is in flight on it. A connection has no send in
 * flight when it closes, nor a receive into an item: the server closes those
 * that wait for a command, or from their own callback.
 *
 * Threads. Before its loop runs, a base belongs to the thread that made it;
 * then to the one that runs it. Zeroed memory is an event that was not added.
 */
#ifndef MC_EVENT_H
#define MC_EVENT_H

#include <stdarg.h> /* this and the next but one: memcached counts on them */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/types.h>

#define LIBEVENT_VERSION_NUMBER 0x02010c00

#define EV_TIMEOUT 0x01
#define EV_READ 0x02
#define EV_WRITE 0x04
#define EV_PERSIST 0x10

#define EVLOOP_ONCE 0x01
#define EVENT_BASE_FLAG_NOLOCK 0x01

typedef int evutil_socket_t;
typedef void (*event_callback_fn)(evutil_socket_t fd, short what, void *arg);

struct event_base;
struct event_config;
struct mc_io;

enum mc_kind {
	MC_READY,
	MC_STREAM,
	MC_LISTENER
};

struct event {
	struct event_base *ev_base;
	evutil_socket_t ev_fd;
	short ev_events;
	event_callback_fn ev_callback;
	void *ev_arg;
	/* private */
	uint8_t kind; /* enum mc_kind */
	bool added, queued, lent;
	struct timeval after;
	struct event *next, **link; /* in its base's list of what to arm */
	struct mc_io *io;
	struct mc_io *leaving; /* the one before, until its calls are over */
};

const char *event_get_version(void);
struct event_base *event_init(void);
struct event_config *event_config_new(void);
int event_config_set_flag(struct event_config *config, int flag);
void event_config_free(struct event_config *config);
struct event_base *
event_base_new_with_config(const struct event_config *config);
void event_base_free(struct event_base *base);

/* Where the loop cannot be made it says why on stderr and returns -1. */
int event_base_loop(struct event_base *base, int flags);
/* By the base's own thread; its calls in flight are over when the loop ends. */
int event_base_loopexit(struct event_base *base, const struct timeval *after);

void event_set(struct event *ev, evutil_socket_t fd, short events,
	       event_callback_fn callback, void *arg);
int event_base_set(struct event_base *base, struct event *ev);
int event_add(struct event *ev, const struct timeval *after);
int event_del(struct event *ev);

#define evtimer_set(ev, callback, arg) event_set(ev, -1, 0, callback, arg)
#define evtimer_add(ev, after) event_add(ev, after)
#define evtimer_del(ev) event_del(ev)

/* What the patch calls for connections; see connection.h. */
struct conn;
struct msghdr;
void mc_attach(struct conn *c);
int mc_accept(struct conn *c);
void mc_close(struct conn *c);
ssize_t mc_read(struct conn *c, void *buf, size_t count);
ssize_t mc_sendmsg(struct conn *c, struct msghdr *msg, int flags);

#endif /* MC_EVENT_H */
