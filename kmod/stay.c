// SPDX-License-Identifier: GPL-2.0-only
/* Registrations that stay: see stay.h, which says why this is right. */
#include "stay.h"

#include "arm.h"

#include <linux/net.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <net/sock.h>

/* What a call that has a stay waits for. The rest it is not woken by. */
#define EVENTS                                                         \
	(EPOLLIN | EPOLLPRI | EPOLLRDNORM | EPOLLRDBAND | EPOLLRDHUP | \
	 EPOLLERR | EPOLLHUP | EPOLLNVAL)
/* So many old ones are looked at by who makes one. */
#define LOOKS 4

struct fxk_stay {
	wait_queue_entry_t entry;
	struct sock *sk; /* I: with a reference */
	const struct socket_wq *wq; /* I: its socket's, compared only */
	struct fxk_ctx *ctx; /* I */
	struct fxk_call *call; /* L: NULL: unclaimed */
	struct fxk_stay *next; /* R: of those that are to be freed */
	struct rcu_head rcu;
};

static int on_wake(wait_queue_entry_t *entry, unsigned int mode, int sync,
		   void *key)
{
	struct fxk_stay *stay = container_of(entry, struct fxk_stay, entry);
	__poll_t events = key_to_poll(key);
	struct fxk_ctx *ctx = stay->ctx;
	bool ready = false;
	unsigned long flags;

	if (events && !(events & EVENTS))
		return 0;
	spin_lock_irqsave(&ctx->lock, flags);
	if (stay->call)
		ready = fxk_woken(stay->call);
	spin_unlock_irqrestore(&ctx->lock, flags);
	if (ready)
		fxk_tell_runner(ctx, false);
	return 0;
}

struct socket *fxk_stay_socket(const struct fxk_call *call,
			       const struct file *file)
{
	struct socket *sock;
	struct sock *sk;

	if (call->events & ~EVENTS || !S_ISSOCK(file_inode(file)->i_mode))
		return NULL;
	sock = file->private_data;
	sk = sock->sk;
	if (!sk || sk->sk_type != SOCK_STREAM ||
	    rcu_access_pointer(sk->sk_wq) != &sock->wq)
		return NULL;
	switch (sk->sk_family) {
	case AF_INET:
	case AF_INET6:
		return sk->sk_protocol == IPPROTO_TCP ? sock : NULL;
	case AF_UNIX:
		return sock;
	default:
		return NULL;
	}
}

/* Places ------------------------------------------------------------------- */

/* As fxk_seat_of(); it comes to be. NULL: no memory, or beyond what can be. */
static struct fxk_seat *make_seat(struct fxk_ctx *ctx, unsigned int fd)
{
	struct fxk_seat *seat = fxk_seat_of(ctx, fd), *page;

	if (likely(seat) || fd >= FXK_STAY_FDS)
		return seat;
	page = kcalloc(FXK_SEATS, sizeof(*page), GFP_KERNEL_ACCOUNT);
	if (page && cmpxchg(&ctx->seats[fd / FXK_SEATS], NULL, page))
		kfree(page);
	return fxk_seat_of(ctx, fd);
}

/* Under ctx->lock: what is unclaimed there leaves its place, for @list. */
static void take(struct fxk_seat *seat, struct fxk_stay **list)
{
	struct fxk_stay *stay = seat->stay;

	if (!stay || stay->call)
		return;
	seat->stay = NULL;
	stay->next = *list;
	*list = stay;
}

/* Off a queue that is still there; see stay.h. */
static void unhook(struct fxk_stay *stay)
{
	struct socket_wq *wq;

	rcu_read_lock();
	wq = rcu_dereference(stay->sk->sk_wq);
	if (wq && !WARN_ON_ONCE(wq != stay->wq))
		remove_wait_queue(&wq->wait, &stay->entry);
	rcu_read_unlock();
}

static void free_list(struct fxk_stay *list)
{
	struct fxk_stay *stay;

	while ((stay = list)) {
		list = stay->next;
		unhook(stay);
		sock_put(stay->sk);
		kfree_rcu(stay, rcu);
	}
}

/* Under ctx->lock: some of those whose socket was closed. */
static void take_closed(struct fxk_ctx *ctx, struct fxk_stay **list)
{
	for (int i = 0; i < LOOKS; i++) {
		u32 fd = ctx->seats_hand++ % FXK_STAY_FDS;
		struct fxk_seat *page = ctx->seats[fd / FXK_SEATS];

		if (!page) {
			ctx->seats_hand = round_up(fd + 1, FXK_SEATS);
			continue;
		}
		page += fd % FXK_SEATS;
		if (page->stay && !rcu_access_pointer(page->stay->sk->sk_wq))
			take(page, list);
	}
}

/* Calls -------------------------------------------------------------------- */

static struct fxk_stay *new_stay(struct fxk_call *call, struct socket *sock)
{
	struct fxk_stay *stay = kmalloc(sizeof(*stay), GFP_KERNEL_ACCOUNT);

	if (!stay)
		return NULL;
	init_waitqueue_func_entry(&stay->entry, on_wake);
	INIT_LIST_HEAD(&stay->entry.entry);
	sock_hold(sock->sk);
	stay->sk = sock->sk;
	stay->wq = &sock->wq;
	stay->ctx = call->ctx;
	stay->call = call;
	return stay;
}

/* What is there is another socket's, or in use: that may stay. */
static bool settle(struct fxk_call *call, struct fxk_seat *seat,
		   struct fxk_stay *stay)
{
	struct fxk_ctx *ctx = call->ctx;
	struct fxk_stay *list = NULL;
	bool mine;

	spin_lock_irq(&ctx->lock);
	if (!seat->stay || seat->stay->sk != stay->sk)
		take(seat, &list);
	mine = !seat->stay && !ctx->dead;
	if (mine) {
		seat->stay = stay;
		call->stay = stay;
		take_closed(ctx, &list);
	}
	spin_unlock_irq(&ctx->lock);
	free_list(list);
	return mine;
}

void fxk_stay_begin(struct fxk_call *call, struct socket *sock)
{
	struct fxk_seat *seat = fxk_seat_of(call->ctx, call->fd);
	struct fxk_stay *stay;

	if (!seat || READ_ONCE(seat->waited) != sock->sk)
		return;
	stay = new_stay(call, sock);
	if (!stay)
		return;
	if (!settle(call, seat, stay)) {
		sock_put(stay->sk);
		kfree(stay);
		return;
	}
	add_wait_queue(&sock->wq.wait, &stay->entry);
	/* Order: before the poll; pairs with wq_has_sleeper(). */
	smp_mb();
}

void fxk_stay_claim(struct fxk_call *call, const struct socket *sock)
{
	struct fxk_seat *seat = fxk_seat_of(call->ctx, call->fd);
	struct fxk_stay *stay = seat ? seat->stay : NULL;

	if (!stay || stay->sk != sock->sk || stay->call)
		return;
	stay->call = call;
	call->stay = stay;
}

void fxk_stay_leave(struct fxk_call *call)
{
	call->stay->call = NULL;
	call->stay = NULL;
}

void fxk_stay_note(struct fxk_call *call, const struct socket *sock, bool waits)
{
	struct fxk_seat *seat = make_seat(call->ctx, call->fd);

	if (seat)
		WRITE_ONCE(seat->waited, waits ? sock->sk : NULL);
}

/* The end ------------------------------------------------------------------ */

void fxk_stay_drop(struct fxk_ctx *ctx, unsigned int fd)
{
	struct fxk_seat *seat = fxk_seat_of(ctx, fd);
	struct fxk_stay *list = NULL;

	if (!seat || !READ_ONCE(seat->waited))
		return;
	spin_lock_irq(&ctx->lock);
	WRITE_ONCE(seat->waited, NULL);
	take(seat, &list);
	spin_unlock_irq(&ctx->lock);
	free_list(list);
}

void fxk_stays_drop(struct fxk_ctx *ctx)
{
	for (u32 page = 0; page < FXK_SEAT_PAGES; page++) {
		struct fxk_seat *seat = smp_load_acquire(&ctx->seats[page]);
		struct fxk_stay *list = NULL;

		if (!seat)
			continue;
		spin_lock_irq(&ctx->lock);
		for (u32 i = 0; i < FXK_SEATS; i++)
			take(&seat[i], &list);
		spin_unlock_irq(&ctx->lock);
		free_list(list);
		cond_resched();
	}
}

void fxk_stays_free(struct fxk_ctx *ctx)
{
	fxk_stays_drop(ctx);
	for (u32 page = 0; page < FXK_SEAT_PAGES; page++)
		kfree(ctx->seats[page]);
}
