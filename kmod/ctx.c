// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device: registration, requests, poll(2), the end. What a request does
 * is elsewhere.
 */
#include "ctx.h"

#include "call.h"
#include "cancel.h"
#include "core.h"
#include "giveback.h"
#include "limit.h"
#include "monitor.h"
#include "ring.h"
#include "run.h"
#include "stats.h"
#include "stay.h"
#include "thread.h"
#include "watch.h"

#include <linux/cred.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

/* The same as src/page/map.c has it. */
static void lay_out(struct fxk_ctx *ctx)
{
	u32 size = FLEXSC_RING_MIN, slots = size;

	ctx->nr_segments = 1;
	while (size < 2 * ctx->max_entries) {
		size *= 2;
		slots += size;
		ctx->nr_segments++;
	}
	ctx->sq_page = 1;
	ctx->cq_page = ctx->sq_page + DIV_ROUND_UP(slots * 4, PAGE_SIZE);
	ctx->entries_page = ctx->cq_page + DIV_ROUND_UP(slots * 8, PAGE_SIZE);
	ctx->nr_pages =
		ctx->entries_page + ctx->max_entries / FLEXSC_PAGE_ENTRIES;
}

static void fill_header(struct fxk_ctx *ctx)
{
	struct flexsc_set *set = fxk_header(ctx);

	set->magic = FLEXSC_MAGIC;
	set->version = FLEXSC_ABI_VERSION;
	set->max_entries = ctx->max_entries;
	set->sq_offset = ctx->sq_page * PAGE_SIZE;
	set->cq_offset = ctx->cq_page * PAGE_SIZE;
	set->entries_offset = ctx->entries_page * PAGE_SIZE;
	memset(set->sq_start, 0xff, sizeof(set->sq_start));
	memset(set->cq_start, 0xff, sizeof(set->cq_start));
	set->sq_start[0] = set->cq_start[0] = 0;
}

static void wake_owner(struct irq_work *work)
{
	struct fxk_ctx *ctx = container_of(work, struct fxk_ctx, tell);

	wake_up_poll(&ctx->owner_wq, EPOLLIN | EPOLLRDNORM);
}

static void set_up(struct fxk_ctx *ctx)
{
	spin_lock_init(&ctx->lock);
	INIT_LIST_HEAD(&ctx->ready);
	INIT_LIST_HEAD(&ctx->queue);
	INIT_HLIST_HEAD(&ctx->runners);
	init_waitqueue_head(&ctx->owner_wq);
	init_waitqueue_head(&ctx->thread_wq);
	init_irq_work(&ctx->tell, wake_owner);
	fxk_core_init(ctx);
	fxk_watch_init(ctx);
	mmgrab(current->mm);
	ctx->mm = current->mm;
	ctx->cred = get_current_cred();
}

static void free_memory(struct fxk_ctx *ctx)
{
	if (ctx->pages)
		fxk_pages_free(ctx);
	kvfree(ctx->pages);
	if (ctx->own)
		fxk_spare_free(ctx->own);
	kfree(ctx->own);
	fxk_inflight_free(ctx);
	/* A wake-up that has just lost its call may still look at it. */
	kvfree_rcu(ctx, rcu);
}

/* Of no task yet. */
static struct fxk_runner *new_own(struct fxk_ctx *ctx)
{
	struct fxk_runner *r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);

	if (r)
		fxk_runner_init(r, ctx);
	return r;
}

static struct fxk_ctx *new_ctx(const struct flexsc_register *want, int *bad)
{
	struct fxk_ctx *ctx = kvzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);

	*bad = -ENOMEM;
	if (!ctx)
		return NULL;
	ctx->flags = want->flags;
	ctx->max_entries = ctx->limit = want->max_entries;
	ctx->max_threads = want->max_threads;
	lay_out(ctx);
	ctx->pages = kvcalloc(ctx->nr_pages, sizeof(*ctx->pages),
			      GFP_KERNEL_ACCOUNT);
	ctx->own = new_own(ctx);
	if (!ctx->own || !ctx->pages || fxk_inflight_init(ctx) ||
	    !fxk_page_get(ctx, 0, GFP_KERNEL_ACCOUNT))
		goto free;
	ctx->user = fxk_user_get(bad);
	if (!ctx->user)
		goto free;
	fill_header(ctx);
	set_up(ctx);
	return ctx;
free:
	free_memory(ctx);
	return NULL;
}

static void free_ctx(struct fxk_ctx *ctx)
{
	fxk_ctx_die(ctx);
	fxk_stays_free(ctx);
	fxk_watch_fini(ctx);
	fxk_core_fini(ctx);
	irq_work_sync(&ctx->tell);
	fxk_user_put(ctx->user);
	put_cred(ctx->cred);
	mmdrop(ctx->mm);
	free_memory(ctx);
}

static int check_register(struct flexsc_register *want)
{
	if (want->version != FLEXSC_ABI_VERSION)
		return -EPROTONOSUPPORT;
	if (want->flags & ~FLEXSC_REG_KEEP_FILES || want->reserved[0] ||
	    want->reserved[1] || want->reserved[2])
		return -EINVAL;
	if (want->max_entries > fxk_max_entries())
		want->max_entries = fxk_max_entries();
	if (want->max_entries < FLEXSC_PAGE_ENTRIES)
		want->max_entries = FLEXSC_PAGE_ENTRIES;
	want->max_entries = roundup_pow_of_two(want->max_entries);
	want->max_threads = min(want->max_threads, fxk_max_threads());
	return fxk_watched() ? -EACCES : 0;
}

static long do_register(struct file *file,
			struct flexsc_register __user *argument)
{
	struct flexsc_register want;
	struct fxk_ctx *ctx;
	int bad;

	if (copy_from_user(&want, argument, sizeof(want)))
		return -EFAULT;
	bad = check_register(&want);
	if (bad == -EPROTONOSUPPORT) {
		want.version = FLEXSC_ABI_VERSION;
		return copy_to_user(argument, &want, sizeof(want)) ? -EFAULT :
								     bad;
	}
	if (bad)
		return bad;
	ctx = new_ctx(&want, &bad);
	if (!ctx)
		return bad;
	want.map_size = (u64)ctx->nr_pages * PAGE_SIZE;
	if (copy_to_user(argument, &want, sizeof(want))) {
		bad = -EFAULT;
		goto free;
	}
	fxk_stats_add(ctx);
	if (!cmpxchg(&file->private_data, NULL, ctx))
		return 0;
	fxk_stats_drop(ctx);
	bad = -EBUSY;
free:
	free_ctx(ctx);
	return bad;
}

void fxk_ctx_stop(struct fxk_ctx *ctx)
{
	spin_lock_irq(&ctx->lock);
	ctx->stopped = true;
	WRITE_ONCE(ctx->limit, 0);
	spin_unlock_irq(&ctx->lock);
	wake_up_all(&ctx->thread_wq);
	wake_up_all(&ctx->core_wq);
	wake_up_all(&ctx->standby_wq);
	wake_up_interruptible_all(&ctx->owner_wq);
}

void fxk_ctx_die(struct fxk_ctx *ctx)
{
	spin_lock_irq(&ctx->lock);
	ctx->dead = true;
	spin_unlock_irq(&ctx->lock);
	fxk_ctx_stop(ctx);
	fxk_inflight_drop(ctx);
	fxk_stays_drop(ctx);
}

void fxk_tell(struct fxk_ctx *ctx)
{
	WRITE_ONCE(ctx->event, 1);
	/* Order: pairs with who goes to sleep in RUN, or polls the device. */
	smp_mb();
	if (waitqueue_active(&ctx->owner_wq))
		wake_up_poll(&ctx->owner_wq, EPOLLIN | EPOLLRDNORM);
}

static void fxk_wake(struct fxk_ctx *ctx)
{
	WRITE_ONCE(ctx->wake, 1);
	fxk_tell(ctx);
}

static long do_stop(struct fxk_ctx *ctx, struct flexsc_stop __user *argument)
{
	fxk_ctx_stop(ctx);
	return argument ? fxk_give_back(ctx, argument) : 0;
}

static long do_wait(struct fxk_ctx *ctx, struct flexsc_wait __user *argument)
{
	struct flexsc_wait want;

	if (copy_from_user(&want, argument, sizeof(want)))
		return -EFAULT;
	if (want.flags & ~FLEXSC_WAIT_POLL || want.reserved)
		return -EINVAL;
	return fxk_wait(ctx, &want);
}

static long request(struct fxk_ctx *ctx, unsigned int what, unsigned long arg)
{
	long bad = fxk_monitor_enter(ctx);

	if (unlikely(bad && (bad != -EACCES || what == FLEXSC_IOC_RUN ||
			     what == FLEXSC_IOC_WAIT)))
		return bad;
	switch (what) {
	case FLEXSC_IOC_RUN:
		return fxk_run(ctx, arg);
	case FLEXSC_IOC_WAIT:
		return do_wait(ctx, (void __user *)arg);
	case FLEXSC_IOC_CANCEL:
		return fxk_cancel(ctx, arg);
	case FLEXSC_IOC_CLOSING:
		return fxk_closing(ctx, arg);
	case FLEXSC_IOC_WAKE:
		fxk_wake(ctx);
		return 0;
	case FLEXSC_IOC_KICK:
		if (arg)
			fxk_core_dismiss(ctx);
		else
			fxk_core_kick(ctx);
		return 0;
	case FLEXSC_IOC_STOP:
		return do_stop(ctx, (void __user *)arg);
	default:
		return -ENOTTY;
	}
}

static long fxk_ioctl(struct file *file, unsigned int what, unsigned long arg)
{
	struct fxk_ctx *ctx = smp_load_acquire(&file->private_data);
	long ret;

	if (unlikely(what == FLEXSC_IOC_REGISTER))
		return do_register(file, (void __user *)arg);
	if (unlikely(what == FLEXSC_IOC_STATS))
		return fxk_stats_read(ctx, (void __user *)arg);
	if (unlikely(!ctx))
		return -ENXIO;
	/* A posted close may be of this very file. */
	get_file(file);
	ret = request(ctx, what, arg);
	fput(file);
	return ret;
}

/* The same as WAKE, for who can write to an eventfd. */
static ssize_t fxk_write(struct file *file, const char __user *from,
			 size_t size, loff_t *at)
{
	struct fxk_ctx *ctx = smp_load_acquire(&file->private_data);

	if (!ctx)
		return -ENXIO;
	if (current->mm != ctx->mm)
		return -EPERM;
	fxk_wake(ctx);
	return size;
}

/* As of an eventfd that does not block: what was told of is seen. */
static ssize_t fxk_read(struct file *file, char __user *to, size_t size,
			loff_t *at)
{
	struct fxk_ctx *ctx = smp_load_acquire(&file->private_data);
	u64 one = 1;

	if (!ctx)
		return -ENXIO;
	if (current->mm != ctx->mm)
		return -EPERM;
	if (size < sizeof(one))
		return -EINVAL;
	WRITE_ONCE(ctx->wake, 0);
	if (!xchg(&ctx->event, 0))
		return -EAGAIN;
	return copy_to_user(to, &one, sizeof(one)) ? -EFAULT : sizeof(one);
}

static __poll_t fxk_poll(struct file *file, poll_table *table)
{
	struct fxk_ctx *ctx = smp_load_acquire(&file->private_data);

	if (!ctx || current->mm != ctx->mm)
		return EPOLLERR;
	poll_wait(file, &ctx->owner_wq, table);
	smp_mb();
	return READ_ONCE(ctx->event) ? EPOLLIN | EPOLLRDNORM : 0;
}

/* RUN; no security module asks about it each time. */
static loff_t fxk_llseek(struct file *file, loff_t timeout_ns, int whence)
{
	struct fxk_ctx *ctx = smp_load_acquire(&file->private_data);
	long ret;

	if (unlikely(!ctx))
		return -ENXIO;
	if (unlikely(whence != SEEK_SET))
		return -EINVAL;
	ret = fxk_monitor_enter(ctx);
	if (unlikely(ret))
		return ret;
	get_file(file);
	ret = fxk_run(ctx, timeout_ns);
	fput(file);
	return ret;
}

static int fxk_release(struct inode *inode, struct file *file)
{
	struct fxk_ctx *ctx = file->private_data;

	if (ctx) {
		fxk_ctx_die(ctx);
		fxk_stats_drop(ctx);
		free_ctx(ctx);
	}
	return 0;
}

/* The misc device leaves its own pointer there. */
static int fxk_open(struct inode *inode, struct file *file)
{
	file->private_data = NULL;
	return 0;
}

const struct file_operations fxk_fops = {
	.owner = THIS_MODULE,
	.open = fxk_open,
	.llseek = fxk_llseek,
	.release = fxk_release,
	.read = fxk_read,
	.write = fxk_write,
	.mmap = fxk_map,
	.poll = fxk_poll,
	.unlocked_ioctl = fxk_ioctl,
};
