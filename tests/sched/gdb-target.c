/* SPDX-License-Identifier: MIT */
/* A task parks with known functions on its stack; for tests/sched/gdb.sh. */
#include "threads.h"

#include <unistd.h>

static fx_ticket ticket;
struct fx_task *parked_task;

static __attribute__((noinline)) void parks_here(struct fx_task *me)
{
	fx_ticket mine = fx_task_arm(me);

	__atomic_store_n(&ticket, mine, __ATOMIC_RELEASE);
	fx_park(me, "gdb", NULL, 0);
	__asm__ volatile("" ::: "memory"); /* no tail call */
}

static __attribute__((noinline)) void outer_function(struct thread *t)
{
	parks_here(&t->task);
	__asm__ volatile("" ::: "memory");
}

/* gdb stops here. */
static __attribute__((noinline, noclone)) void look_now(void)
{
	__asm__ volatile("" ::: "memory");
}

int main(void)
{
	struct thread *threads;

	scheduler(1);
	threads = threads_start(1, outer_function, NULL);
	parked_task = &threads[0].task;
	while (fx_task_state(fx_load_acquire(&parked_task->state)) !=
	       FX_TASK_PARKED)
		usleep(100);
	look_now();
	fx_wake(parked_task, __atomic_load_n(&ticket, __ATOMIC_ACQUIRE),
		FX_WOKEN_VALUE);
	threads_join(threads, 1);
	puts("went on");
	return 0;
}
