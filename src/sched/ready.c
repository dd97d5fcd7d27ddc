/* SPDX-License-Identifier: MIT */
/* The ring's rare ways: overflow, the inbox, stealing. See sched/ready.h. */
#include "sched/ready.h"

void fx_ready_overflow(struct fx_ready *ready, struct fx_task *task)
{
	fx_store_relaxed(&task->next, (struct fx_task *)NULL);
	if (ready->over_first)
		fx_store_relaxed(&ready->over_last->next, task);
	else
		ready->over_first = task;
	ready->over_last = task;
}

/* Not before half of the ring is free: each look at the head may miss. */
void fx_ready_refill(struct fx_ready *ready)
{
	uint64_t tail = fx_load_relaxed(&ready->tail);
	uint64_t used = tail - fx_load_acquire(&ready->head);

	if (used > FX_READY_RING / 2)
		return;
	for (; used < FX_READY_RING && ready->over_first; used++, tail++) {
		struct fx_task *task = ready->over_first;

		ready->over_first = fx_load_relaxed(&task->next);
		fx_store_relaxed(&ready->ring[tail % FX_READY_RING], task);
	}
	fx_store_release(&ready->tail, tail);
}

unsigned fx_ready_receive(struct fx_ready *ready, struct fx_ready *from)
{
	struct fx_task *last, *first = NULL, *next;
	unsigned nr = 0;

	if (!fx_load_relaxed(&from->inbox))
		return 0;
	last = fx_exchange(&from->inbox, (struct fx_task *)NULL);
	for (; last; last = next) {
		next = fx_load_relaxed(&last->next);
		fx_store_relaxed(&last->next, first);
		first = last;
	}
	for (; first; first = next) {
		next = fx_load_relaxed(&first->next);
		if (fx_unlikely(!fx_load_acquire(&first->lender.lent))) {
			fx_ready_post(from, first);
			continue;
		}
		fx_ready_push(ready, first);
		nr++;
	}
	return nr;
}

struct fx_task *fx_ready_steal(struct fx_ready *ready, struct fx_ready *from)
{
	uint64_t head = fx_load_acquire(&from->head), nr;
	uint64_t tail = fx_load_relaxed(&ready->tail);
	bool left;

	for (;;) {
		nr = fx_load_acquire(&from->tail) - head;
		nr -= nr / 2;
		if (nr == 0)
			break;
		/* A head read long ago: what is read now is not kept. */
		if (nr > FX_READY_RING / 2)
			nr = FX_READY_RING / 2;
		for (uint64_t i = 0; i < nr; i++) {
			struct fx_task **slot =
				&ready->ring[(tail + i) % FX_READY_RING];

			fx_store_relaxed(
				slot,
				fx_load_relaxed(&from->ring[(head + i) %
							    FX_READY_RING]));
		}
		if (fx_cas(&from->head, &head, head + nr)) {
			fx_store_release(&ready->tail, tail + nr);
			return fx_ready_pop(ready, &left, false);
		}
	}
	if (fx_ready_receive(ready, from))
		return fx_ready_pop(ready, &left, false);
	return NULL;
}
