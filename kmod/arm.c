// SPDX-License-Identifier: GPL-2.0-only
/*
 * Arming. A wake-up comes under the lock of the file's wait queue, perhaps
 * from an interrupt: it moves the call to ctx->ready and tells a runner. Once
 * the call is there and ctx->lock is released, its memory is somebody else's;
 * that of the set lives until the end of an RCU section, and a wake-up is one.
 */
#include "arm.h"

#include "cancel.h"
#include "core.h"
#include "ctx.h"
#include "ring.h"
#include "stats.h"
#include "stay.h"
#include "trace.h"

#include <linux/fdtable.h>
#include <linux/hash.h>
#include <linux/net.h>

/* Of poll tables. */
struct arming {
	poll_table table;
	struct fxk_call *call;
	u32 nr;
};

static struct hlist_head *bucket(struct fxk_ctx *ctx, int fd)
{
	return &ctx->armed[(u32)fd % FXK_FD_HASH];
}

static void list_armed(struct fxk_call *call)
{
	struct fxk_ctx *ctx = call->ctx;

	hlist_add_head(&call->fd_link, bucket(ctx, call->fd));
	WRITE_ONCE(fxk_header(ctx)->nr_armed, ++ctx->nr_armed);
}

void fxk_unlist(struct fxk_call *call)
{
	struct fxk_ctx *ctx = call->ctx;

	if (call->stay)
		fxk_stay_leave(call);
	hlist_del_init(&call->fd_link);
	WRITE_ONCE(fxk_header(ctx)->nr_armed, --ctx->nr_armed);
}

void fxk_make_ready(struct fxk_ctx *ctx, struct fxk_call *call)
{
	call->state = FXK_READY;
	list_add_tail(&call->link, &ctx->ready);
	/* Who polls is told, by fxk_tell_runner() or core.c's stuck(). */
	if (!READ_ONCE(ctx->core_awake))
		WRITE_ONCE(fxk_header(ctx)->run_wanted, 1);
}

void fxk_tell_runner(struct fxk_ctx *ctx, bool nested)
{
	if (READ_ONCE(ctx->core_awake)) {
		fxk_core_kick(ctx);
		return;
	}
	/*
	 * Order: as in fxk_tell(). Who told of the first one told of this, too:
	 * nobody sleeps before it was seen.
	 */
	if (xchg(&ctx->event, 1) || !waitqueue_active(&ctx->owner_wq))
		return;
	if (nested)
		irq_work_queue(&ctx->tell);
	else
		wake_up_poll(&ctx->owner_wq, EPOLLIN | EPOLLRDNORM);
}

/* Off its queue, whose lock is held. Order: pairs with leave(). */
static void unhook(struct fxk_wait *wait)
{
	list_del_init(&wait->entry.entry);
	smp_store_release(&wait->head, NULL);
}

bool fxk_woken(struct fxk_call *call)
{
	if (call->state != FXK_ARMED) {
		call->woken = true;
		return false;
	}
	fxk_unlist(call);
	fxk_make_ready(call->ctx, call);
	return true;
}

static int on_wake(wait_queue_entry_t *entry, unsigned int mode, int sync,
		   void *key)
{
	struct fxk_wait *wait = container_of(entry, struct fxk_wait, entry);
	struct fxk_call *call = wait->call;
	struct fxk_ctx *ctx = call->ctx;
	__poll_t events = key_to_poll(key);
	bool nested = call->nested, ready;
	unsigned long flags;

	if (events && !(events & (call->events | POLLFREE)))
		return 0;
	spin_lock_irqsave(&ctx->lock, flags);
	ready = fxk_woken(call);
	/* Or the queue itself goes away. */
	if (ready || events & POLLFREE)
		unhook(wait);
	spin_unlock_irqrestore(&ctx->lock, flags);
	if (ready)
		fxk_tell_runner(ctx, nested);
	return 0;
}

static void hook(struct file *file, wait_queue_head_t *head, poll_table *table)
{
	struct arming *a = container_of(table, struct arming, table);
	struct fxk_wait *wait;

	if (a->nr++ >= ARRAY_SIZE(a->call->waits))
		return;
	wait = &a->call->waits[a->nr - 1];
	init_waitqueue_func_entry(&wait->entry, on_wake);
	INIT_LIST_HEAD(&wait->entry.entry);
	wait->call = a->call;
	wait->head = head;
	add_wait_queue(head, &wait->entry);
}

/*
 * A queue that is not the file's own may go away under us: then it says so by
 * POLLFREE, and its memory stays for an RCU section.
 */
static void leave(struct fxk_wait *wait)
{
	struct wait_queue_head *head;

	rcu_read_lock();
	head = smp_load_acquire(&wait->head);
	if (head) {
		spin_lock_irq(&head->lock);
		list_del_init(&wait->entry.entry);
		wait->head = NULL;
		spin_unlock_irq(&head->lock);
	}
	rcu_read_unlock();
}

void fxk_disarm(struct fxk_call *call)
{
	for (int i = 0; i < ARRAY_SIZE(call->waits); i++)
		if (smp_load_acquire(&call->waits[i].head))
			leave(&call->waits[i]);
}

/*
 * Wake-ups of an epoll set can be caused by those of our own wait queue, if
 * the device is in the set. Other files with such a name do no harm.
 */
static bool may_nest(const struct file *file)
{
	return !strcmp(file->f_path.dentry->d_iname, "[eventpoll]");
}

static void prepare(struct fxk_call *call, struct file *file,
		    struct socket *sock)
{
	spin_lock_irq(&call->ctx->lock);
	call->state = FXK_HELD;
	call->woken = false;
	if (sock)
		fxk_stay_claim(call, sock);
	spin_unlock_irq(&call->ctx->lock);
	if (sock && !call->stay)
		fxk_stay_begin(call, sock);
	call->nested = !sock && may_nest(file);
	if (!call->file)
		call->file = get_file(file);
}

bool fxk_is_open(const struct fxk_call *call)
{
	bool same;

	rcu_read_lock();
	same = files_lookup_fd_raw(current->files, call->fd) == call->file;
	rcu_read_unlock();
	return same;
}

/*
 * Under ctx->lock. Return: false: its descriptor is not there any more, and it
 * is to end. Order: who closes looks at what is armed behind it.
 */
static bool enlist(struct fxk_call *call)
{
	call->state = FXK_ARMED;
	list_armed(call);
	smp_mb();
	if (call->ctx->flags & FLEXSC_REG_KEEP_FILES || fxk_is_open(call))
		return true;
	fxk_unlist(call);
	call->state = FXK_HELD;
	call->cancelled = true;
	return false;
}

/* Is it ready? If not, it will be told: by its stay, or by what this hangs up. */
static bool poll(struct arming *a, struct file *file)
{
	init_poll_funcptr(&a->table, a->call->stay ? NULL : hook);
	a->table._key = a->call->events;
	return vfs_poll(file, &a->table) & a->call->events;
}

/* Return: false: it is not to wait after all. */
static bool enlist_unready(struct fxk_call *call, bool ready)
{
	struct fxk_ctx *ctx = call->ctx;

	spin_lock_irq(&ctx->lock);
	ready = ready || call->woken || call->cancelled || ctx->dead ||
		!enlist(call);
	if (ready && call->stay)
		fxk_stay_leave(call);
	spin_unlock_irq(&ctx->lock);
	return !ready;
}

enum fxk_arm fxk_arm(struct fxk_runner *r, struct fxk_call *call,
		     struct file *file)
{
	struct socket *sock = fxk_stay_socket(call, file);
	struct fxk_ctx *ctx = r->ctx;
	struct arming a = { .call = call };
	u32 index = call->index;
	bool ready, stays;

	trace_flexsc_arm(ctx, index, call->fd);
	prepare(call, file, sock);
	ready = poll(&a, file);
	if (a.nr > ARRAY_SIZE(call->waits)) {
		fxk_disarm(call);
		return ready ? FXK_ARM_READY : FXK_ARM_THREAD;
	}
	stays = call->stay;
	if (sock && fxk_waited(ctx, call->fd, sock->sk) == ready)
		fxk_stay_note(call, sock, !ready);
	if ((ready && !stays) || !enlist_unready(call, ready)) {
		fxk_disarm(call);
		return FXK_ARM_READY;
	}
	fxk_count(ctx, armed);
	/* It may have been cancelled before it could be found. */
	if (unlikely(fxk_cancel_wanted(ctx, index)))
		fxk_cancel(ctx, index);
	return FXK_ARM_GONE;
}

void fxk_put_back(struct fxk_call *call)
{
	struct fxk_ctx *ctx = call->ctx;

	spin_lock_irq(&ctx->lock);
	fxk_make_ready(ctx, call);
	spin_unlock_irq(&ctx->lock);
	fxk_tell_runner(ctx, false);
}
