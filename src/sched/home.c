/* SPDX-License-Identifier: MIT */
/*
 * A task's own kernel thread: lending the context, going home, being sent
 * home. A lent task is posted before its context is saved, so that nothing has
 * to run on the parking stack; who receives it waits for `lent`.
 */
#include "sched/carrier.h"

void fx_task_attach(struct fx_task *task, void *parking_stack)
{
	uint64_t word = fx_load_relaxed(&task->state);

	fx_arch_context_here(&task->context);
	task->parking_stack = parking_stack;
	task->carrier = NULL;
	task->heap = NULL;
	task->cpu_ns = 0;
	fx_store_relaxed(&task->mask, 0u);
	/* What was told of the one before has another number. */
	fx_store_relaxed(&task->state, (word & FX_TICKET_MASK) + FX_TICKET_ONE +
					       FX_TASK_RUNNING);
	fx_store_relaxed(&task->queue,
			 fx_sched.nr_queues ? fx_sched.queue[0] : NULL);
	fx_task_self = task;
}

void fx_task_detach(struct fx_task *task)
{
	FX_BUG_ON(task->carrier);
	fx_task_self = NULL;
}

void fx_task_lend(struct fx_task *me)
{
	struct fx_queue *queue;
	struct fx_carrier *carrier;
	uint32_t n;

	if (me->carrier)
		return;
	n = fx_fetch_add(&fx_sched.next_queue, 1u) % fx_sched.nr_queues;
	queue = fx_running_queue(fx_sched.queue[n]);
	fx_store_relaxed(&me->lender.lent, 0u);
	fx_store_relaxed(&me->queue, queue);
	fx_send_ready(queue, me);
	fx_arch_lend(&me->context, &me->lender, me->parking_stack);
	fx_arch_taken_up(me);
	carrier = me->carrier;
	if (carrier) {
		fx_finish(carrier);
		fx_leave(carrier);
	}
}

void fx_go_home(struct fx_task *me)
{
	struct fx_carrier *carrier = fx_enter(me);

	if (!carrier)
		return;
	fx_count(&carrier->queue->count, homes);
	fx_away(carrier, me, FX_AFTER_HOME);
}

bool fx_send_home(struct fx_task *task)
{
	if (!fx_task_move_home(task))
		return false;
	fx_give_home(task);
	return true;
}
