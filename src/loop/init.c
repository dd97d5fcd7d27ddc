/* SPDX-License-Identifier: MIT */
/* Making, choosing, draining and freeing loops. */
#include "loop/seen.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

__thread struct flexsc_loop *fx_loop_current
	__attribute__((tls_model("initial-exec")));

static struct flexsc_loop no_loop = { .mode = FX_LOOP_NONE };
__thread struct flexsc_loop *fx_loop_posting
	__attribute__((tls_model("initial-exec"))) = &no_loop;

static const char *wanted_engine(const struct flexsc_options *options)
{
	const char *name = options ? options->engine : NULL;

	if (!name)
		name = secure_getenv("FLEXSC_ENGINE");
	return name && *name ? name : "auto";
}

/* Fields that an older caller does not know are left at their default. */
static void take_options(struct flexsc_loop *loop,
			 const struct flexsc_options *given)
{
	struct flexsc_options o = { .size = sizeof(o) };

	if (given)
		memcpy(&o, given,
		       given->size < sizeof(o) ? given->size : sizeof(o));
	strncpy(loop->engine_name, wanted_engine(given ? &o : NULL),
		sizeof(loop->engine_name) - 1);
	loop->options = (struct fx_owner_options){
		.engine = loop->engine_name,
		.max_entries = o.max_entries ? o.max_entries :
					       FLEXSC_MAX_ENTRIES,
		.max_threads = o.max_threads,
		.spin_ns = o.spin_ns ? o.spin_ns : FX_NEVER,
	};
}

int flexsc_loop_new(struct flexsc_loop **out,
		    const struct flexsc_options *options)
{
	int saved = errno, bad;
	struct flexsc_loop *loop;

	if (options && !options->size)
		return -EINVAL; /* forgotten: all options would be ignored */
	/* Entries are cache lines, and so are parts of the owner. */
	loop = aligned_alloc(FX_CACHE_LINE,
			     (sizeof(*loop) + FX_CACHE_LINE - 1) /
				     FX_CACHE_LINE * FX_CACHE_LINE);
	errno = saved;
	if (!loop)
		return -ENOMEM;
	memset(loop, 0, sizeof(*loop));
	loop->outer_fd = loop->timer_fd = loop->nudge_fd = -1;
	take_options(loop, options);
	bad = fx_owner_init(&loop->owner, &loop->options);
	errno = saved;
	if (bad) {
		free(loop);
		return bad;
	}
	fx_loop_register(loop);
	flexsc_loop_use(loop);
	*out = loop;
	return 0;
}

void flexsc_loop_use(struct flexsc_loop *loop)
{
	fx_loop_current = loop;
	fx_loop_posting = loop ? loop : &no_loop;
	if (loop)
		loop->thread = pthread_self();
}

struct flexsc_loop *flexsc_loop_current(void)
{
	return fx_loop_current;
}

int flexsc_loop_free(struct flexsc_loop *loop)
{
	int saved = errno;

	if (loop->running || fx_loop_outstanding(loop) ||
	    fx_load_acquire(&loop->sent))
		return -EBUSY;
	fx_loop_unregister(loop);
	if (fx_loop_current == loop)
		flexsc_loop_use(NULL);
	fx_loop_embed_fini(loop);
	fx_loop_seen_fini(loop);
	if (!(loop->mode & FX_LOOP_BROKEN))
		fx_owner_fini(&loop->owner);
	fx_timers_fini(&loop->timers);
	free(loop);
	errno = saved;
	return 0;
}

static void cancel_posted(struct flexsc_loop *loop)
{
	struct fx_engine *engine = loop->owner.engine;

	/* Asked of one that is free or complete, it does nothing. */
	for (uint32_t i = 0; i < loop->owner.set.nr_entries; i++)
		engine->ops->cancel(engine, i);
	while (loop->queued.first)
		flexsc_cancel(loop->queued.first);
	while (!fx_timers_empty(&loop->timers)) {
		struct flexsc_event *ev = loop->timers.heap[0].ev;

		if (FX_EVENT_STATE(ev) == FX_EVENT_TIMER)
			flexsc_cancel(ev);
		else
			fx_timers_remove(&loop->timers, ev);
	}
}

int flexsc_loop_shutdown(struct flexsc_loop *loop)
{
	if (loop->running)
		return -EBUSY;
	cancel_posted(loop);
	while (fx_loop_outstanding(loop) || fx_load_acquire(&loop->sent)) {
		size_t before = fx_loop_outstanding(loop);
		int nr = flexsc_loop_poll(loop, FX_NS_PER_MS);

		/* Not for each batch: but when handlers posted more, or wait. */
		if (nr <= 0 || fx_loop_outstanding(loop) + (size_t)nr > before)
			cancel_posted(loop);
	}
	return 0;
}

const char *flexsc_loop_engine(const struct flexsc_loop *loop)
{
	return loop->mode & FX_LOOP_BROKEN ? "none" :
					     loop->owner.engine->ops->name;
}

const char *flexsc_loop_engine_reason(const struct flexsc_loop *loop)
{
	return loop->owner.reason;
}

int flexsc_init(void)
{
	struct flexsc_loop *loop;

	return fx_loop_current ? -EBUSY : flexsc_loop_new(&loop, NULL);
}

int flexsc_main_loop(void)
{
	return fx_loop_current ? flexsc_loop_run(fx_loop_current) : -EINVAL;
}

int flexsc_fini(void)
{
	return fx_loop_current ? flexsc_loop_free(fx_loop_current) : -EINVAL;
}

const char *flexsc_version(void)
{
	return FLEXSC_VERSION;
}

const char *flexsc_call_name(unsigned int nr)
{
	return fx_owner_desc(nr)->name;
}
