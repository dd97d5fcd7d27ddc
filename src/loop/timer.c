/* SPDX-License-Identifier: MIT */
/* The heap of timers; memory only grows, by doubling. */
#include "loop/timer.h"

#include <errno.h>
#include <stdlib.h>

#define CHILDREN 4

static void place(struct fx_timers *t, uint32_t at, struct fx_timer timer)
{
	t->heap[at] = timer;
	timer.ev->timer_ = at + 1;
}

static void sift_up(struct fx_timers *t, uint32_t at, struct fx_timer timer)
{
	while (at > 0) {
		uint32_t parent = (at - 1) / CHILDREN;

		if (t->heap[parent].deadline_ns <= timer.deadline_ns)
			break;
		place(t, at, t->heap[parent]);
		at = parent;
	}
	place(t, at, timer);
}

static uint32_t least_child(const struct fx_timers *t, uint32_t at)
{
	uint32_t first = at * CHILDREN + 1, least = first;

	for (uint32_t c = first + 1; c < first + CHILDREN && c < t->nr; c++)
		if (t->heap[c].deadline_ns < t->heap[least].deadline_ns)
			least = c;
	return least;
}

static void sift_down(struct fx_timers *t, uint32_t at, struct fx_timer timer)
{
	for (;;) {
		uint32_t child = least_child(t, at);

		if (child >= t->nr ||
		    t->heap[child].deadline_ns >= timer.deadline_ns)
			break;
		place(t, at, t->heap[child]);
		at = child;
	}
	place(t, at, timer);
}

void fx_timers_fini(struct fx_timers *timers)
{
	free(timers->heap);
}

int fx_timers_add(struct fx_timers *t, struct flexsc_event *ev,
		  uint64_t deadline_ns)
{
	if (t->nr == t->room) {
		uint32_t room = t->room ? t->room * 2 : 64;
		struct fx_timer *heap =
			reallocarray(t->heap, room, sizeof(*heap));

		if (!heap)
			return -ENOMEM;
		t->heap = heap;
		t->room = room;
	}
	sift_up(t, t->nr++,
		(struct fx_timer){ .deadline_ns = deadline_ns, .ev = ev });
	return 0;
}

void fx_timers_remove(struct fx_timers *t, struct flexsc_event *ev)
{
	uint32_t at = ev->timer_ - 1;
	struct fx_timer last;

	ev->timer_ = 0;
	last = t->heap[--t->nr];
	if (at == t->nr)
		return;
	if (at > 0 &&
	    last.deadline_ns < t->heap[(at - 1) / CHILDREN].deadline_ns)
		sift_up(t, at, last);
	else
		sift_down(t, at, last);
}

struct flexsc_event *fx_timers_pop(struct fx_timers *t, uint64_t now_ns)
{
	struct flexsc_event *ev;

	if (t->nr == 0 || t->heap[0].deadline_ns > now_ns)
		return NULL;
	ev = t->heap[0].ev;
	fx_timers_remove(t, ev);
	return ev;
}
