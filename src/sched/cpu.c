/* SPDX-License-Identifier: MIT */
/*
 * CPU time of tasks. The kernel counts it for carriers, so somebody has to look
 * at a carrier's clock at each switch: from the first time on that anybody
 * asks for a task's, since a look costs more than a switch.
 */
#include "sched/carrier.h"

#include "base/clock.h"
#include "base/thread.h"

static uint64_t carrier_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * FX_NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

void fx_cpu_switch(struct fx_carrier *carrier, struct fx_task *me)
{
	uint64_t now = carrier_clock_ns();

	if (me && carrier->cpu_mark_ns)
		fx_store_relaxed(&me->cpu_ns,
				 me->cpu_ns + now - carrier->cpu_mark_ns);
	fx_store_relaxed(&carrier->cpu_mark_ns, now);
}

void fx_task_count_cpu(void)
{
	fx_store_relaxed(&fx_sched.count_cpu, 1u);
}

/* What another task has used since its last switch, if it is running. */
static uint64_t running_ns(struct fx_task *task)
{
	struct fx_carrier *carrier = fx_load_acquire(&task->carrier);
	uint64_t mark, now;

	if (!carrier || fx_task_state(fx_load_relaxed(&task->state)) !=
				FX_TASK_RUNNING)
		return 0;
	mark = fx_load_acquire(&carrier->cpu_mark_ns);
	now = fx_thread_cpu_ns(fx_load_relaxed(&carrier->tid));
	if (!mark || now < mark || fx_load_acquire(&task->carrier) != carrier ||
	    fx_load_relaxed(&carrier->cpu_mark_ns) != mark)
		return 0;
	return now - mark;
}

uint64_t fx_task_cpu_ns(struct fx_task *task)
{
	struct fx_carrier *carrier;
	uint64_t before;

	if (task == fx_task_self) {
		carrier = fx_enter(task);
		if (carrier) {
			fx_cpu_switch(carrier, task);
			fx_leave(carrier);
		}
		return task->cpu_ns;
	}
	before = fx_load_relaxed(&task->cpu_ns);
	return before + running_ns(task);
}
