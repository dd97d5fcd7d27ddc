/* SPDX-License-Identifier: MIT */
/*
 * fork. Calls in flight belong to the parent. In the child each loop of the
 * forking thread is made anew, empty: its events are idle again, their
 * handlers are not called. Loops of other threads have no thread any more and
 * are left alone.
 */
#include "loop/loop.h"

#include "page/trace.h"

#include <errno.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct flexsc_loop *loops;

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void forget_list(struct fx_event_list *list)
{
	struct flexsc_event *ev;

	while ((ev = fx_event_list_pop(list)))
		ev->state_ = FX_EVENT_IDLE;
}

static void forget_events(struct flexsc_loop *loop)
{
	struct fx_set *set = &loop->owner.set;

	while (loop->timers.nr) {
		struct flexsc_event *ev = loop->timers.heap[0].ev;

		fx_timers_remove(&loop->timers, ev);
		ev->state_ = FX_EVENT_IDLE;
	}
	for (uint32_t i = 0; i < set->nr_entries; i++) {
		struct flexsc_event *ev =
			(struct flexsc_event *)(uintptr_t)set->cookies[i];

		if (ev)
			ev->state_ = FX_EVENT_IDLE;
	}
	forget_list(&loop->ready);
	forget_list(&loop->queued);
	for (struct flexsc_event *ev = loop->sent; ev; ev = ev->next_)
		ev->state_ = FX_EVENT_IDLE;
	loop->sent = NULL;
	loop->interrupted = 0;
	loop->waiting = 0;
}

static void rebuild(struct flexsc_loop *loop)
{
	bool embedded = loop->outer_fd >= 0;

	if (loop->mode & FX_LOOP_BROKEN)
		return;
	forget_events(loop);
	fx_loop_embed_fini(loop);
	fx_owner_abandon(&loop->owner);
	if (fx_owner_init(&loop->owner, &loop->options)) {
		loop->mode = FX_LOOP_BROKEN;
		loop->broken = true;
	}
	if (embedded && !(loop->mode & FX_LOOP_BROKEN))
		flexsc_loop_fd(loop);
}

static void after_fork_in_child(void)
{
	int saved = errno;

	fx_barrier_after_fork();
	fx_trace_after_fork();
	for (struct flexsc_loop *loop = loops; loop; loop = loop->next)
		if (pthread_equal(loop->thread, pthread_self()))
			rebuild(loop);
	pthread_mutex_init(&lock, NULL);
	errno = saved;
}

void fx_loop_register(struct flexsc_loop *loop)
{
	static bool hooked;

	pthread_mutex_lock(&lock);
	if (!hooked)
		hooked = pthread_atfork(before_fork, after_fork_in_parent,
					after_fork_in_child) == 0;
	loop->next = loops;
	loops = loop;
	pthread_mutex_unlock(&lock);
}

void fx_loop_unregister(struct flexsc_loop *loop)
{
	pthread_mutex_lock(&lock);
	for (struct flexsc_loop **p = &loops; *p; p = &(*p)->next) {
		if (*p == loop) {
			*p = loop->next;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}
