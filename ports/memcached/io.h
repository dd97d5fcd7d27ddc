/* SPDX-License-Identifier: MIT */
/*
 * What is in flight for an event, and what has arrived and was not taken yet.
 * It outlives the event's deletion; see event.h.
 *
 * Streams. One receive is in flight while the connection waits for input, into
 * `input`; of a value that is being read, straight into the item, whose memory
 * stays until the connection closes. What the server then "reads" is there. A
 * send is in flight while the server waits for being able to write; what it
 * then writes, which is the same once more, is done already.
 *
 * Listeners. Several accepts are in flight. A connection that comes while the
 * server does not accept waits in `accepted`.
 */
#ifndef MC_IO_H
#define MC_IO_H

#include "ports/memcached/event.h"

#include <flexsc.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#define MC_INPUT_SIZE 1600
#define MC_SMALL_SIZE 1024 /* of an answer that is put together */
#define MC_FEW_IOVS 16
#define MC_NR_ACCEPTS 4

struct event_base {
	struct flexsc_loop *loop; /* made by the thread that runs it */
	struct event *first, **last; /* to arm */
	bool exits;
};

struct mc_stream {
	size_t at, nr; /* what is in input, and was not taken */
	void *target; /* where the receive goes instead, or NULL */
	size_t target_size;
	int64_t got; /* result of a receive to target, and of an unusual one */
	bool has_got, filled;
	bool sent; /* out.ret is the result of a send, not yet taken */
	struct msghdr msg;
	struct iovec *iovs; /* few, or more */
	size_t nr_iovs;
	struct iovec few[MC_FEW_IOVS];
	char input[MC_INPUT_SIZE];
};

struct mc_listener {
	struct flexsc_event accepts[MC_NR_ACCEPTS];
	int accepted[MC_NR_ACCEPTS];
	int error; /* -errno of the last one, not yet told */
	int nr_accepted;
	uint32_t nr_got,
		posted_at[MC_NR_ACCEPTS]; /* connections; how many then */
	int flags; /* of accept4(2) */
};

struct mc_io {
	struct event *ev; /* not NULL: that it once was of, if it is leaving */
	bool leaving;
	int close_fd; /* when it has left; -1: none */
	struct flexsc_event in, out; /* or the timer, in in */
	struct flexsc_event kick; /* what is there already */
	struct mc_stream *stream;
	struct mc_listener *listener;
};

/* The event's callback runs if it waits for @what. */
void mc_fire(struct mc_io *io, short what);
/* As above, in the loop's next round. */
void mc_kick(struct mc_io *io);
/* A call of it is over: true if that was the last one of one that leaves. */
bool mc_left(struct mc_io *io);
/* Post what the event waits for. */
void mc_arm_stream(struct event *ev);
void mc_arm_listener(struct event *ev);
/* Nobody waits for it any more: what is in flight ends by itself. */
void mc_leave(struct event *ev);
/* A server's own thread is to have the connection (conn_watch)? */
void mc_lend(struct event *ev);
/* Close a connection's descriptor, on which nothing is in flight. */
void mc_shut(int fd);
/* Its memory, and the descriptor. */
void mc_io_free(struct mc_io *io);

#endif /* MC_IO_H */
