/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Registrations that stay. A call that waits hangs an entry on the wait queue
 * of its file and takes it off when it goes on. Of a socket that is waited for
 * again and again, as a server's is, one entry stays between the calls, as
 * that of an epoll set does.
 *
 * What it is of. A stay belongs to a set, a number of a descriptor and a
 * struct sock, which it holds a reference to, so that no other can have its
 * address: it is the right one if the file that a call has looked up is of
 * that struct sock. It does not hold the file: a plain close(2) is the last
 * one, and does at once what it always does.
 *
 * Who uses it. At most one call: stay->call, under ctx->lock, from
 * fxk_stay_claim() on, until the call leaves the lists of the armed (or never came
 * there). A second call that waits for the same descriptor at the same time
 * has entries of its own. Who has claimed it holds the file (by a look-up, or,
 * once it is armed, by call->file): so the socket is there all the time.
 *
 * No wake-up is lost. The entry is on the queue before the call polls, and
 * whoever makes the socket ready does so before it wakes: its on_wake() either
 * comes before the claim, and then the poll behind it sees what it was for,
 * since both are under ctx->lock; or it finds the call, and notes that it was
 * woken, or makes it ready. A new entry is hung up before the poll with a full
 * barrier between, which pairs with that of wq_has_sleeper().
 *
 * How it ends. Its memory is freed by who finds it unclaimed and takes it from
 * its place, under ctx->lock: who closes the descriptor by a posted call, who
 * finds another socket there, who makes another stay (and looks at a few old
 * ones), the end of the mapping (exec, exit), the last close of the device.
 * By then the socket may be gone, and with it the wait queue that the entry is
 * on. sock_orphan() comes first, and takes sk->sk_wq away; the queue's memory
 * is freed an RCU section later. So: sk_wq is still there, in an RCU section:
 * the entry is taken off under the queue's lock, and nobody is in on_wake() any
 * more. It is not: nobody can come any more, who did was in an RCU section
 * (all wake-ups by sk_wq are), and the stay, like the set, is freed behind it.
 * The entry is left on a list that nobody will look at again.
 *
 * (tests/model/stay.c runs this under every schedule.)
 *
 * Where: TCP and AF_UNIX stream sockets, whose wait queue is that of sk_wq for
 * life, and which do not wake by POLLFREE; descriptors below FXK_STAY_FDS. One
 * for each number at most. Of a socket that was closed by a plain close(2) the
 * struct sock (not its buffers, nor its port) stays until the number is waited
 * for again, or some more other stays were made.
 */
#ifndef FXK_STAY_H
#define FXK_STAY_H

#include "fxk.h"

#include <linux/nospec.h>

struct sock;
struct socket;

/* Descriptors that have a seat: so many to a page of them. */
#define FXK_SEATS 256u
#define FXK_STAY_FDS (FXK_SEATS * FXK_SEAT_PAGES)

/* Of a number of a descriptor. */
struct fxk_seat {
	struct fxk_stay *stay; /* L: NULL: none */
	const struct sock *waited; /* W: compared only: it waited last time */
};

/* NULL: nobody ever waited for it. Context: any; it stays where it is. */
static inline struct fxk_seat *fxk_seat_of(const struct fxk_ctx *ctx,
					   unsigned int fd)
{
	struct fxk_seat *page;

	if (unlikely(fd >= FXK_STAY_FDS))
		return NULL;
	fd = array_index_nospec(fd, FXK_STAY_FDS);
	page = smp_load_acquire(&ctx->seats[fd / FXK_SEATS]);
	return page ? &page[fd % FXK_SEATS] : NULL;
}

/* Did a call that waited for this descriptor find nothing, the last time? */
static inline bool fxk_waited(const struct fxk_ctx *ctx, unsigned int fd,
			      const struct sock *sk)
{
	const struct fxk_seat *seat = fxk_seat_of(ctx, fd);

	return seat && READ_ONCE(seat->waited) == sk;
}

/*
 * The socket that @call is about to wait for, if its kind can have stays; else
 * NULL. @call: away, fd and events are set. @file: its descriptor's, held.
 */
struct socket *fxk_stay_socket(const struct fxk_call *call,
			       const struct file *file);

/*
 * Under ctx->lock: the call has the stay of its descriptor, by call->stay, if
 * there is one and it is free. Order: call->woken was cleared before, and the
 * call polls behind this.
 */
void fxk_stay_claim(struct fxk_call *call, const struct socket *sock);

/* It did not get one: make one, if it is worth it. Context: process. */
void fxk_stay_begin(struct fxk_call *call, struct socket *sock);

/* Under ctx->lock: it does not need it any more. */
void fxk_stay_leave(struct fxk_call *call);

/* Did the poll find nothing? Context: process; the call is held. */
void fxk_stay_note(struct fxk_call *call, const struct socket *sock,
		   bool waits);

/* A descriptor is about to be closed. Context: process. */
void fxk_stay_drop(struct fxk_ctx *ctx, unsigned int fd);

/* All that nobody has claimed. Context: process; the set is dead. */
void fxk_stays_drop(struct fxk_ctx *ctx);

/* Nobody uses the set any more. */
void fxk_stays_free(struct fxk_ctx *ctx);

#endif /* FXK_STAY_H */
