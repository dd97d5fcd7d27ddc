/* SPDX-License-Identifier: MIT */
/*
 * System calls of tasks: posted on the page set of the queue that the task is
 * on, awaited by parking, cancelled by asking the holder of that queue. The
 * protocol between the two is in sched/request.h.
 */
#include "sched/park.h"
#include "sched/request.h"

#include <errno.h>

unsigned fx_reap(struct fx_carrier *carrier)
{
	struct fx_owner *owner = &carrier->queue->owner;
	struct fx_done done;
	unsigned nr = 0;

	for (; nr < 256 && fx_owner_reap(owner, &done); nr++) {
		struct fx_request *request =
			(struct fx_request *)(uintptr_t)done.cookie;
		struct fx_task *task = request->task;
		fx_ticket ticket = fx_request_complete(request, done.ret);

		if (fx_likely(ticket))
			fx_wake_inside(carrier, task, ticket, FX_WOKEN_VALUE);
	}
	if (nr)
		fx_count_add(owner->counters, completed, nr);
	return nr;
}

void fx_cancel_asked(struct fx_carrier *carrier)
{
	struct fx_queue *queue = carrier->queue;
	struct fx_engine *engine = queue->owner.engine;
	struct fx_request *request, *next;

	request = fx_exchange(&queue->cancels, (struct fx_request *)NULL);
	for (; request; request = next) {
		struct fx_task *task = request->task;
		uint32_t index = request->index;
		fx_ticket ticket;

		next = request->next;
		ticket = fx_request_notice(request);
		if (ticket) {
			fx_wake_inside(carrier, task, ticket, FX_WOKEN_VALUE);
			continue;
		}
		engine->ops->cancel(engine, index);
		fx_count(&queue->count, cancels);
	}
}

static void ask_cancel(struct fx_queue *queue, struct fx_request *request)
{
	struct fx_request *first = fx_load_relaxed(&queue->cancels);

	do
		request->next = first;
	while (!fx_cas(&queue->cancels, &first, request));
	fx_fence_after_cas();
	fx_rouse(queue);
}

static int64_t call_at_home(const struct flexsc_entry *call)
{
	const __u64 *a = call->args;

	return fx_arch_syscall(call->nr, (long)a[0], (long)a[1], (long)a[2],
			       (long)a[3], (long)a[4], (long)a[5]);
}

/* Others go first if that may spare the call its wait. */
static struct fx_carrier *let_others(struct fx_carrier *carrier,
				     struct fx_task *me,
				     const struct flexsc_entry *call)
{
	struct fx_queue *queue = carrier->queue;
	struct fx_engine *engine = queue->owner.engine;

	if (!engine->ops->later ||
	    !engine->ops->later(engine, call, fx_ready_count(&queue->ready)))
		return carrier;
	fx_count(&queue->count, yields);
	return fx_away(carrier, me, FX_AFTER_YIELD);
}

/* Return: the carrier, inside; NULL: call->ret is the result. */
static struct fx_carrier *post(struct fx_carrier *carrier, struct fx_task *me,
			       struct flexsc_entry *call,
			       struct fx_request *request)
{
	for (;;) {
		struct fx_queue *queue = carrier->queue;

		fx_count(&queue->count, calls);
		switch (fx_owner_post(&queue->owner, call,
				      (uint64_t)(uintptr_t)request,
				      &request->index)) {
		case FX_POST_TAKEN:
			fx_count(&queue->count, calls_parked);
			fx_store_relaxed(&queue->waited, 1u);
			return carrier;
		case FX_POST_DONE:
			if (fx_unlikely(++carrier->calls >= FX_CALLS_A_ROUND)) {
				carrier->round = FX_ROUND;
				carrier = fx_away(carrier, me, FX_AFTER_YIELD);
			}
			fx_leave(carrier);
			return NULL;
		case FX_POST_FULL:
			break;
		}
		/* Others have to finish first; the task may move meanwhile. */
		carrier->round = FX_ROUND;
		carrier = fx_away(carrier, me, FX_AFTER_YIELD);
	}
}

static int64_t call_posted(struct fx_task *me, struct flexsc_entry *call,
			   const char *where,
			   const struct fx_deadline *deadline, uint32_t mask,
			   enum fx_reason *reason)
{
	struct fx_request request = { .task = me };
	struct fx_carrier *carrier = fx_enter(me);
	struct fx_queue *queue;
	enum fx_reason why;
	uint64_t ticket;

	if (reason)
		*reason = (enum fx_reason)0;
	if (!carrier)
		return call_at_home(call);
	if (!deadline && fx_output(&carrier, me, call, where))
		return call->ret;
	if (!carrier)
		return call_at_home(call);
	carrier = let_others(carrier, me, call);
	carrier = post(carrier, me, call, &request);
	if (!carrier)
		return call->ret;
	queue = carrier->queue;
	ticket = fx_task_arm(me);
	fx_store_relaxed(&request.word, ticket);
	why = fx_park_inside(carrier, me, where, deadline, mask);
	if (fx_likely(why == FX_WOKEN_VALUE))
		return request.ret;

	request.second = fx_task_arm(me);
	if (!fx_request_give_up(&request, ticket)) {
		fx_task_disarm(me);
		return request.ret;
	}
	if (reason)
		*reason = why;
	ask_cancel(queue, &request);
	fx_park(me, where, NULL, 0);
	return request.ret;
}

/* A close ends by itself: it has no deadline. */
static int64_t close_posted(struct fx_task *me, struct flexsc_entry *call)
{
	return me ? call_posted(me, call, "close", NULL, 0, NULL) :
		    call_at_home(call);
}

int64_t fx_call(struct fx_task *me, struct flexsc_entry *call,
		const char *where, const struct fx_deadline *deadline,
		uint32_t mask, enum fx_reason *reason)
{
	if (fx_unlikely(fx_owner_desc(call->nr)->flags & FX_CALL_CLOSES)) {
		if (reason)
			*reason = (enum fx_reason)0;
		return fx_call_closing(me, call, close_posted);
	}
	return call_posted(me, call, where, deadline, mask, reason);
}
