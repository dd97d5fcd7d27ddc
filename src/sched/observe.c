/* SPDX-License-Identifier: MIT */
/* Where queues, carriers and tasks are, for <flexsc/observe.h>. */
#include "sched/carrier.h"

#include <flexsc/observe.h>

/* Of FlexSC's own making: what the header says of a record must be so. */
_Static_assert((int)FX_TASK_RUNNING == (int)FLEXSC_THREAD_RUNNING &&
		       (int)FX_TASK_ARMED == (int)FLEXSC_THREAD_PARKING &&
		       (int)FX_TASK_PARKED == (int)FLEXSC_THREAD_PARKED &&
		       (int)FX_TASK_HOME == (int)FLEXSC_THREAD_PARKED_AT_HOME &&
		       (int)FX_TASK_WOKEN == (int)FLEXSC_THREAD_READY,
	       "states are told by number");

extern const char fx_arch_parked[], fx_arch_lend_end[];

static void tell_tasks(struct flexsc_thread_layout *layout)
{
	layout->state = offsetof(struct fx_task, state);
	layout->carrier = offsetof(struct fx_task, carrier);
	layout->where = offsetof(struct fx_task, where);
	layout->since_ms = offsetof(struct fx_task, since_ms);
	layout->on = offsetof(struct fx_task, on);
	layout->cpu_ns = offsetof(struct fx_task, cpu_ns);
	layout->sp = offsetof(struct fx_task, context.sp);
	layout->tls = offsetof(struct fx_task, context.tls);
}

static void tell_queues(struct flexsc_queue_layout *layout)
{
	layout->cpu = offsetof(struct fx_queue, cpu);
	layout->sleeping = offsetof(struct fx_queue, sleeping);
	layout->rests = offsetof(struct fx_queue, rests);
	layout->holder = offsetof(struct fx_queue, holder);
	layout->head = offsetof(struct fx_queue, ready.head);
	layout->tail = offsetof(struct fx_queue, ready.tail);
	layout->counters = offsetof(struct fx_queue, owner.counters);
	layout->counts = offsetof(struct fx_queue, count);
}

static void tell_carriers(struct flexsc_carrier_layout *layout)
{
	layout->next = offsetof(struct fx_carrier, all);
	layout->tid = offsetof(struct fx_carrier, tid);
	layout->queue = offsetof(struct fx_carrier, queue);
	layout->switches = offsetof(struct fx_carrier, switches);
	layout->lost = offsetof(struct fx_carrier, claim.word);
}

void fx_sched_observe(struct flexsc_process *process)
{
	static const char names[] = FX_QUEUE_COUNTERS(FX_COUNTER_NAME);

	_Static_assert(sizeof(names) <= sizeof(process->queue_count_names),
		       "they fit");
	__builtin_memcpy(process->queue_count_names, names, sizeof(names));
	process->queues = (uintptr_t)fx_sched.queue;
	process->nr_queues = fx_sched.nr_queues;
	process->carriers = (uintptr_t)&fx_sched.carriers;
	process->parked_pc = (uintptr_t)fx_arch_parked;
	process->lend_begin = (uintptr_t)fx_arch_lend;
	process->lend_end = (uintptr_t)fx_arch_lend_end;
	tell_tasks(&process->thread);
	tell_queues(&process->queue);
	tell_carriers(&process->carrier);
}
