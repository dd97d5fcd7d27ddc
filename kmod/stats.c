// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters: of all sets, those that are gone and those there are. And the
 * place where the tracepoints are.
 */
#include "stats.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

#include <linux/mutex.h>
#include <linux/uaccess.h>

struct fxk_objects fxk_objects;

static DEFINE_MUTEX(sets_lock);
static LIST_HEAD(sets);
static struct flexsc_events gone;

static void add(struct flexsc_events *sum, struct fxk_ctx *ctx)
{
	struct fxk_events *e = &ctx->events;

	sum->runs += atomic64_read(&e->runs);
	sum->entries += atomic64_read(&e->entries);
	sum->completed += atomic64_read(&e->completed);
	sum->armed += atomic64_read(&e->armed);
	sum->queued += atomic64_read(&e->queued);
	sum->interrupted += atomic64_read(&e->interrupted);
	sum->cancelled += atomic64_read(&e->cancelled);
	sum->refused += atomic64_read(&e->refused);
	sum->dropped += atomic64_read(&e->dropped);
	sum->handed_over += atomic64_read(&e->handed_over);
}

void fxk_stats_add(struct fxk_ctx *ctx)
{
	mutex_lock(&sets_lock);
	list_add(&ctx->link, &sets);
	atomic64_inc(&fxk_objects.sets);
	mutex_unlock(&sets_lock);
}

void fxk_stats_drop(struct fxk_ctx *ctx)
{
	mutex_lock(&sets_lock);
	add(&gone, ctx);
	list_del(&ctx->link);
	atomic64_dec(&fxk_objects.sets);
	mutex_unlock(&sets_lock);
}

long fxk_stats_read(struct fxk_ctx *ctx, struct flexsc_stats __user *to)
{
	struct flexsc_stats stats = { 0 };
	struct fxk_ctx *each;

	mutex_lock(&sets_lock);
	stats.sets = atomic64_read(&fxk_objects.sets);
	stats.calls = atomic64_read(&fxk_objects.calls);
	stats.threads = atomic64_read(&fxk_objects.threads);
	stats.pages = atomic64_read(&fxk_objects.pages);
	if (ctx)
		add(&stats.set, ctx);
	stats.all = gone;
	list_for_each_entry(each, &sets, link) add(&stats.all, each);
	mutex_unlock(&sets_lock);
	return copy_to_user(to, &stats, sizeof(stats)) ? -EFAULT : 0;
}
