/* SPDX-License-Identifier: MIT */
/*
 * Deadlines of parkings: a heap with four children a node. An entry is a task
 * and a ticket, by value: one whose ticket is spent does nothing, so a task
 * that went on elsewhere leaves its entry behind, and it is swept out before
 * the heap would have to grow. A task knows where its entry is, so that the
 * usual case, ended before its time on the same queue, takes it out at once.
 *
 * One heap for CLOCK_MONOTONIC, one for CLOCK_REALTIME; the clock of the
 * latter may be set while a carrier sleeps, so it sleeps FX_REALTIME_LOOK_NS at
 * most while that heap is not empty.
 *
 * Context: all by the holder of the queue.
 */
#ifndef FX_SCHED_TIMER_H
#define FX_SCHED_TIMER_H

#include "sched/task.h"

#define FX_REALTIME_LOOK_NS (500 * FX_NS_PER_MS)

struct fx_deadline_entry {
	uint64_t at_ns;
	struct fx_task *task;
	fx_ticket ticket;
};

struct fx_timers_heap {
	struct fx_deadline_entry *entry;
	uint32_t nr, room;
	size_t size_bytes; /* of the memory */
};

void fx_deadlines_fini(struct fx_timers_heap *heap);

/* Return: 0 or -ENOMEM. One entry a task at a time. */
int fx_deadlines_add(struct fx_timers_heap *heap, struct fx_task *task,
		     fx_ticket ticket, uint64_t at_ns);

/* The entry of the task's last parking, if it is still in @heap. */
void fx_deadlines_remove(struct fx_timers_heap *heap, struct fx_task *task);

/* The next entry due at @now_ns, taken out; false if there is none. */
bool fx_deadlines_pop(struct fx_timers_heap *heap, uint64_t now_ns,
		      struct fx_deadline_entry *entry);

static inline uint64_t fx_deadlines_next(const struct fx_timers_heap *heap)
{
	return heap->nr ? heap->entry[0].at_ns : UINT64_MAX;
}

#endif /* FX_SCHED_TIMER_H */
