/* SPDX-License-Identifier: MIT */
/*
 * System calls of tasks: posted on the page set of the queue that the task is
 * on, awaited by parking, cancelled by asking the holder of that queue. The
 * protocol between the two is in sched/request.h.
 */
#include "sched/park.h"
#include "sched/request.h"

#include "base/clock.h"
#include "engine/quiet.h"

#include <errno.h>
#include <flexsc/observe.h>

unsigned fx_reap(struct fx_carrier *carrier)
{
	struct fx_owner *owner = &carrier->queue->owner;
	struct fx_done done;
	unsigned nr = 0;

	for (; nr < 256 && fx_owner_reap(owner, &done); nr++) {
		struct fx_task *task = (struct fx_task *)(uintptr_t)done.cookie;
		fx_ticket ticket = fx_request_complete(task->request, done.ret);

		if (fx_likely(ticket))
			fx_wake_inside(carrier, task, ticket, FX_WOKEN_VALUE);
	}
	if (nr) {
		fx_count_add(owner->counters, completed, nr);
		fx_count_add(owner->counters, batch_calls, nr);
		fx_count(owner->counters, batches);
	}
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
		fx_probe1(cancel, index);
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

/* It was over at once: others, and the engine, get their turn now and then. */
static inline void over(struct fx_carrier *carrier, struct fx_task *me)
{
	fx_count(carrier->queue->owner.counters, completed);
	if (fx_unlikely(++carrier->calls >= FX_CALLS_A_ROUND)) {
		carrier->round = FX_ROUND;
		carrier = fx_away(carrier, me, FX_AFTER_YIELD);
	}
	fx_leave(carrier);
}

/*
 * A call that storage may hold up is made as the task's own code: the watchdog
 * can give what is ready here to another carrier meanwhile.
 */
static void make_outside(struct fx_carrier *carrier, struct fx_task *me,
			 struct flexsc_entry *call)
{
	struct fx_engine *engine = carrier->queue->owner.engine;
	bool timed = engine->outside == FX_OUTSIDE_TIMED;
	uint64_t ns = 0;

	fx_leave(carrier);
	if (timed)
		ns = fx_now_ns();
	call->ret = fx_call_raw(call);
	if (timed)
		ns = fx_now_ns() - ns;
	carrier = fx_enter(me);
	if (!carrier)
		return;
	engine = carrier->queue->owner.engine;
	engine->ops->made(engine, call, ns);
	fx_probe2(done, me, call->ret);
	over(carrier, me);
}

/* @first: others may still go before it. */
static inline enum fx_begun begin(struct fx_queue *queue,
				  struct flexsc_entry *call, bool first)
{
	uint32_t nr_others = first ? fx_ready_count(&queue->ready) : 0;

	return fx_owner_begin(&queue->owner, call, nr_others,
			      nr_others >= FX_OUTPUTS_LEAST &&
				      fx_output_gathers(queue));
}

/* It was over at once. */
static inline __attribute__((always_inline)) void
end(struct fx_carrier *carrier, struct fx_task *me,
    const struct flexsc_entry *call)
{
	struct fx_queue *queue = carrier->queue;

	fx_probe2(done, me, call->ret);
	fx_call_count(queue, call->nr);
	fx_count(queue->owner.counters, at_once);
	over(carrier, me);
}

/* Return: the carrier, inside: it is to be waited for; NULL: it is over. */
static struct fx_carrier *post(struct fx_carrier *carrier, struct fx_task *me,
			       struct flexsc_entry *call)
{
	struct fx_queue *queue = carrier->queue;

	while (!queue->owner.engine->outside) {
		if (fx_owner_take(&queue->owner, call, (uint64_t)(uintptr_t)me,
				  &me->request->index) == FX_POST_TAKEN) {
			fx_call_count(queue, call->nr);
			fx_count(&queue->count, calls_parked);
			fx_store_relaxed(&queue->waited, 1u);
			return carrier;
		}
		/* Others have to finish first; the task may move meanwhile. */
		carrier->round = FX_ROUND;
		carrier = fx_away(carrier, me, FX_AFTER_YIELD);
		queue = carrier->queue;
		if (begin(queue, call, false) == FX_BEGUN_DONE) {
			end(carrier, me, call);
			return NULL;
		}
	}
	fx_call_count(queue, call->nr);
	fx_count(queue->owner.counters, at_once);
	make_outside(carrier, me, call);
	return NULL;
}

/* It was posted. Leaves. */
static int64_t await(struct fx_carrier *carrier, struct fx_task *me,
		     struct flexsc_entry *call, const struct fx_wait *wait,
		     enum fx_reason *reason)
{
	struct fx_request *request = me->request;
	struct fx_queue *queue = carrier->queue;
	uint64_t ticket = fx_task_arm(me);
	enum fx_reason why;

	fx_store_relaxed(&request->word, ticket);
	fx_store_relaxed(&me->on, (uintptr_t)call | FLEXSC_ON_CALL);
	why = fx_park_inside(carrier, me, wait->where, wait->deadline,
			     wait->mask);
	if (fx_likely(why == FX_WOKEN_VALUE))
		return request->ret;

	request->second = fx_task_arm(me);
	if (!fx_request_give_up(request, ticket)) {
		fx_task_disarm(me);
		return request->ret;
	}
	*reason = why;
	ask_cancel(queue, request);
	fx_store_relaxed(&me->on, (uintptr_t)call | FLEXSC_ON_CALL);
	fx_park(me, wait->where, NULL, 0);
	return request->ret;
}

unsigned fx_call_begin(struct fx_task *me, struct flexsc_entry *call)
{
	struct fx_carrier *carrier = fx_enter(me);
	enum fx_begun begun;

	if (fx_unlikely(!carrier)) {
		call->ret = call_at_home(call);
		return FX_BEGUN_DONE;
	}
	fx_probe3(post, call->nr, me, call->args[0]);
	begun = begin(carrier->queue, call, true);
	if (begun == FX_BEGUN_LATER) {
		fx_count(&carrier->queue->count, yields);
		carrier = fx_away(carrier, me, FX_AFTER_YIELD);
		begun = begin(carrier->queue, call, false);
	}
	if (fx_likely(begun == FX_BEGUN_DONE))
		end(carrier, me, call);
	return begun;
}

static int64_t rest(struct fx_task *me, struct flexsc_entry *call,
		    unsigned begun, const struct fx_wait *wait,
		    enum fx_reason *reason)
{
	struct fx_carrier *carrier = me->carrier;

	*reason = (enum fx_reason)0;
	if (begun == FX_BEGUN_TOGETHER) {
		if (!wait->deadline &&
		    fx_output(&carrier, me, call, wait->where)) {
			fx_probe2(done, me, call->ret);
			return call->ret;
		}
		if (!carrier)
			return call_at_home(call);
		if (begin(carrier->queue, call, false) == FX_BEGUN_DONE) {
			end(carrier, me, call);
			return call->ret;
		}
	}
	carrier = post(carrier, me, call);
	return carrier ? await(carrier, me, call, wait, reason) : call->ret;
}

int64_t fx_call_rest(struct fx_task *me, struct flexsc_entry *call,
		     unsigned begun, const struct fx_wait *wait,
		     enum fx_reason *reason)
{
	struct fx_request request = { .task = me };
	int64_t ret;

	me->request = &request;
	ret = rest(me, call, begun, wait, reason);
	me->request = NULL;
	return ret;
}

static int64_t call_posted(struct fx_task *me, struct flexsc_entry *call,
			   const struct fx_wait *wait, enum fx_reason *reason)
{
	unsigned begun = fx_call_begin(me, call);

	return begun ? fx_call_rest(me, call, begun, wait, reason) : call->ret;
}

/* A close ends by itself: it has no deadline. */
static int64_t close_posted(struct fx_task *me, struct flexsc_entry *call)
{
	static const struct fx_wait wait = { .where = "close" };
	enum fx_reason why;

	return me ? call_posted(me, call, &wait, &why) : call_at_home(call);
}

int64_t fx_call(struct fx_task *me, struct flexsc_entry *call,
		const char *where, const struct fx_deadline *deadline,
		uint32_t mask, enum fx_reason *reason)
{
	struct fx_wait wait = { where, deadline, mask };
	enum fx_reason why = (enum fx_reason)0;
	int64_t ret;

	if (fx_owner_desc(call->nr)->flags & FX_CALL_CLOSES)
		ret = fx_call_closing(me, call, close_posted);
	else
		ret = call_posted(me, call, &wait, &why);
	if (reason)
		*reason = why;
	return ret;
}
