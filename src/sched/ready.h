/* SPDX-License-Identifier: MIT */
/*
 * Tasks that can run: a ring that its holder fills and everybody empties, and
 * an inbox for those who do not hold it. No locks.
 *
 *  - ring: FIFO. The holder alone pushes, with plain stores; the holder pops
 *    and others steal by compare-and-swap on the head. What does not fit waits
 *    in a list of the holder's.
 *  - inbox: a stack that anybody pushes on, signal handlers too, and whose
 *    whole content is taken at once, in the order in which it came.
 *
 * A task is in one of them at most, put there by who has woken it. One that
 * comes from its own kernel thread (sched/home.h) is posted shortly before its
 * context is saved; who takes the inbox puts back what is not `lent` yet.
 *
 * Who sleeps announces it, fences, and looks at the rings of all once more
 * (fx_ready_any). The other side looks for sleepers after taking a task while
 * others are left: taking has fenced. Until then a pushed task has at least
 * its holder to run it, so a sleeper is woken late, but no task is lost; the
 * watchdog's tick bounds how late. For the inbox, fx_ready_post() fences.
 */
#ifndef FX_SCHED_READY_H
#define FX_SCHED_READY_H

#include "sched/task.h"

#ifdef FX_MODEL
#define FX_READY_RING 4
#else
#define FX_READY_RING 256
#endif

/* Key: H holder; A anybody, atomically. */
struct fx_ready {
	uint64_t head; /* A */
	struct fx_task *inbox; /* A */
	uint64_t tail
		__attribute__((aligned(FX_CACHE_LINE))); /* H; A to read */
	struct fx_task *over_first, *over_last; /* H: what did not fit */
	struct fx_task *ring[FX_READY_RING]; /* H; A to read */
};

/* Slow halves. */
void fx_ready_overflow(struct fx_ready *ready, struct fx_task *task);
void fx_ready_refill(struct fx_ready *ready);

/* Context: holder. */
static inline void fx_ready_push(struct fx_ready *ready, struct fx_task *task)
{
	uint64_t tail = fx_load_relaxed(&ready->tail);

	if (fx_unlikely(ready->over_first ||
			tail - fx_load_acquire(&ready->head) >=
				FX_READY_RING)) {
		fx_ready_overflow(ready, task);
		return;
	}
	fx_store_relaxed(&ready->ring[tail % FX_READY_RING], task);
	fx_store_release(&ready->tail, tail + 1);
}

/**
 * fx_ready_pop - the next task
 * @left: whether there are others behind it
 * @alone: nobody steals from this ring, now or later
 *
 * Context: holder. Order: fences if there was one, unless alone.
 * Return: NULL if there is none; look at the inbox then.
 */
static inline struct fx_task *fx_ready_pop(struct fx_ready *ready, bool *left,
					   bool alone)
{
	uint64_t tail, head;

	if (fx_unlikely(ready->over_first))
		fx_ready_refill(ready);
	tail = fx_load_relaxed(&ready->tail);
	head = fx_load_acquire(&ready->head);
	while (head != tail) {
		struct fx_task *task =
			fx_load_relaxed(&ready->ring[head % FX_READY_RING]);

		if (alone) {
			fx_store_relaxed(&ready->head, head + 1);
			return task;
		}
		if (fx_cas(&ready->head, &head, head + 1)) {
			fx_fence_after_cas();
			*left = head + 1 != tail;
			return task;
		}
	}
	return NULL;
}

/**
 * fx_ready_post - put a task in the inbox
 *
 * Context: anybody who has woken it. Order: fences.
 */
static inline void fx_ready_post(struct fx_ready *ready, struct fx_task *task)
{
	struct fx_task *first = fx_load_relaxed(&ready->inbox);

	do
		fx_store_relaxed(&task->next, first);
	while (!fx_cas(&ready->inbox, &first, task));
	fx_fence_after_cas();
}

/**
 * fx_ready_receive - take the inbox of @from over into the ring of @ready
 *
 * Context: holder of @ready.
 * Return: how many; those that are not lent yet are put back.
 */
unsigned fx_ready_receive(struct fx_ready *ready, struct fx_ready *from);

/**
 * fx_ready_steal - take half of another ring, or its inbox
 *
 * Context: holder of @ready, whose ring is empty.
 * Return: one of them, the others are in the ring; NULL if there were none.
 */
struct fx_task *fx_ready_steal(struct fx_ready *ready, struct fx_ready *from);

/* How many are in the ring. Context: holder. */
static inline uint32_t fx_ready_count(struct fx_ready *ready)
{
	return (uint32_t)(fx_load_relaxed(&ready->tail) -
			  fx_load_relaxed(&ready->head));
}

/* Is there anything for anybody? */
static inline bool fx_ready_any(struct fx_ready *ready)
{
	return fx_load_acquire(&ready->head) != fx_load_acquire(&ready->tail) ||
	       fx_load_acquire(&ready->inbox);
}

#endif /* FX_SCHED_READY_H */
