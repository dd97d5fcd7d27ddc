/* SPDX-License-Identifier: MIT */
/* The heap of deadlines; see sched/timer.h. Memory only grows, by doubling. */
#include "sched/timer.h"

#include "base/pages.h"

#include <errno.h>

#define CHILDREN 4
#define FIRST_BYTES 4096

/* Spent: the task has begun another parking since. */
static bool spent(const struct fx_deadline_entry *entry)
{
	return (fx_load_relaxed(&entry->task->state) & FX_TICKET_MASK) !=
	       entry->ticket;
}

/*
 * The task may go on elsewhere at any time: its note of the place is a hint
 * that fx_deadlines_remove() checks.
 */
static void place(struct fx_timers_heap *h, uint32_t at,
		  struct fx_deadline_entry entry)
{
	h->entry[at] = entry;
	if (!spent(&entry))
		fx_store_relaxed(&entry.task->timer_at, at);
}

static void sift_up(struct fx_timers_heap *h, uint32_t at,
		    struct fx_deadline_entry entry)
{
	while (at > 0) {
		uint32_t parent = (at - 1) / CHILDREN;

		if (h->entry[parent].at_ns <= entry.at_ns)
			break;
		place(h, at, h->entry[parent]);
		at = parent;
	}
	place(h, at, entry);
}

static uint32_t least_child(const struct fx_timers_heap *h, uint32_t at)
{
	uint32_t first = at * CHILDREN + 1, least = first;

	for (uint32_t c = first + 1; c < first + CHILDREN && c < h->nr; c++)
		if (h->entry[c].at_ns < h->entry[least].at_ns)
			least = c;
	return least;
}

static void sift_down(struct fx_timers_heap *h, uint32_t at,
		      struct fx_deadline_entry entry)
{
	for (;;) {
		uint32_t child = least_child(h, at);

		if (child >= h->nr || h->entry[child].at_ns >= entry.at_ns)
			break;
		place(h, at, h->entry[child]);
		at = child;
	}
	place(h, at, entry);
}

static void remove_at(struct fx_timers_heap *h, uint32_t at)
{
	struct fx_deadline_entry last = h->entry[--h->nr];

	if (at == h->nr)
		return;
	if (at > 0 && last.at_ns < h->entry[(at - 1) / CHILDREN].at_ns)
		sift_up(h, at, last);
	else
		sift_down(h, at, last);
}

/* Drop what is spent, in one pass; what is left is a heap again after it. */
static void sweep(struct fx_timers_heap *h)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < h->nr; i++)
		if (!spent(&h->entry[i]))
			h->entry[nr++] = h->entry[i];
	h->nr = 0;
	for (uint32_t i = 0; i < nr; i++)
		sift_up(h, h->nr++, h->entry[i]);
}

void fx_deadlines_fini(struct fx_timers_heap *heap)
{
	fx_pages_free(heap->entry, heap->size_bytes);
}

static int make_room(struct fx_timers_heap *h)
{
	struct fx_deadline_entry *entry;
	size_t size = h->size_bytes ? h->size_bytes * 2 : FIRST_BYTES;

	if (h->nr)
		sweep(h);
	if (h->nr <= h->room / 2 && h->room)
		return 0;
	entry = fx_pages_resize(h->entry, h->size_bytes, size);
	if (!entry)
		return h->nr < h->room ? 0 : -ENOMEM;
	h->entry = entry;
	h->size_bytes = size;
	h->room = (uint32_t)(size / sizeof(*entry));
	return 0;
}

int fx_deadlines_add(struct fx_timers_heap *h, struct fx_task *task,
		     fx_ticket ticket, uint64_t at_ns)
{
	if (h->nr == h->room && make_room(h))
		return -ENOMEM;
	task->heap = h;
	sift_up(h, h->nr++,
		(struct fx_deadline_entry){
			.at_ns = at_ns, .task = task, .ticket = ticket });
	return 0;
}

void fx_deadlines_remove(struct fx_timers_heap *h, struct fx_task *task)
{
	uint32_t at = fx_load_relaxed(&task->timer_at);

	task->heap = NULL;
	if (at < h->nr && h->entry[at].task == task && !spent(&h->entry[at]))
		remove_at(h, at);
}

bool fx_deadlines_pop(struct fx_timers_heap *h, uint64_t now_ns,
		      struct fx_deadline_entry *entry)
{
	if (h->nr == 0 || h->entry[0].at_ns > now_ns)
		return false;
	*entry = h->entry[0];
	remove_at(h, 0);
	return true;
}
