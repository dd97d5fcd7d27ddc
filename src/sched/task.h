/* SPDX-License-Identifier: MIT */
/*
 * A task: what the scheduler knows of a user thread. And the protocol of
 * parking and waking, which is in the task's state word alone.
 *
 * One parking has a ticket: a number that no other parking of the task has.
 * The task arms, which gives the ticket, hands it to whoever may wake it (a
 * wait list, a timer, a posted call), and parks. Each of them tries; exactly
 * one wins and gives the reason; the others are told that they lost, whenever
 * they come, because the ticket is spent.
 *
 *	          arm            publish
 *	RUNNING --------> ARMED ---------> PARKED
 *	   ^                |   \             |  \ move_home
 *	   |           wake |    \ at home    |   v
 *	   |                v     `---------> | HOME
 *	   `------------- WOKEN <-------------'---'
 *	        take              wake
 *
 *  - A wake before the parking is latched: ARMED goes to WOKEN, and whoever
 *    should publish the task finds it woken and makes it ready instead.
 *  - Publishing comes after the switch, on the stack of who runs next: a task
 *    that is PARKED has its context saved. Only who moves PARKED to WOKEN puts
 *    it in a run queue, so it is in one queue once.
 *  - HOME is parked too, but on the task's own kernel thread, which waits on
 *    the low half of the word; who moves HOME to WOKEN wakes that futex.
 *
 * A late waker may hold a task whose thread has ended. Hence the ownership
 * rule: memory of tasks is never given back, only used for other tasks, and
 * the number of the ticket goes on counting.
 *
 * (flexsc-osdi10.txt, 4.2.)
 */
#ifndef FX_SCHED_TASK_H
#define FX_SCHED_TASK_H

#include "arch/arch.h"
#include "base/atomic.h"
#include "base/types.h"

struct fx_carrier;
struct fx_queue;
struct fx_timers_heap;

/* Bits 0-7 of the word: state; 8-15: reason; the rest: number. */
enum fx_task_state {
	FX_TASK_RUNNING,
	FX_TASK_ARMED,
	FX_TASK_PARKED,
	FX_TASK_HOME,
	FX_TASK_WOKEN,
};

/* Why a parking ended. */
enum fx_reason {
	FX_WOKEN_VALUE = 1, /* what was waited for */
	FX_WOKEN_TIMEOUT,
	FX_WOKEN_SIGNAL, /* by fx_interrupt(): a handler is to run */
	FX_WOKEN_CANCEL, /* by fx_interrupt(): the thread is to end */
};

/* What may be asked of a task at any time, and what a parking listens to. */
#define FX_PENDING_SIGNAL (1u << FX_WOKEN_SIGNAL)
#define FX_PENDING_CANCEL (1u << FX_WOKEN_CANCEL)
/* Ends a parking as SIGNAL does: the task is wanted at home. */
#define FX_PENDING_HOME (1u << 5)

typedef uint64_t fx_ticket;

#define FX_TICKET_ONE (1ull << 16)
#define FX_TICKET_MASK (~0xffffull)

/*
 * Key: T the task itself; R whoever runs it or has taken it up; W whoever has
 * woken it and not yet handed it on; H the holder of the queue named; A
 * anybody, atomically.
 */
struct fx_task {
	struct fx_arch_context context; /* R; tls is constant */
	uint64_t state; /* A: see above */
	uint32_t mask; /* T: pending bits that end the parking */
	uint32_t pending; /* A: what was asked */
	struct fx_carrier *carrier; /* R: NULL at home */
	struct fx_queue *queue; /* R; A to read: where it ran last */
	struct fx_task *next; /* W: inbox or overflow of a queue */

	/* Its own kernel thread, while lent to carriers; see sched/home.h. */
	struct fx_arch_lender lender;
	char *parking_stack; /* constant: its upper end */

	struct fx_request *request; /* T; H to read: of the call it waits for */
	struct fx_timers_heap *heap; /* T: where its timer may be, or NULL */
	uint32_t timer_at; /* A: a hint; see sched/timer.c */

	/* For observers. T writes before it parks. */
	const char *where; /* A: what it waits for */
	uint64_t on; /* A: the object, or the posted call; <flexsc/observe.h> */
	uint32_t since_ms; /* A: coarse clock */
	uint64_t cpu_ns; /* R; A to read: on carriers, see sched/cpu.c */
	void *user; /* the layer above's */
} __attribute__((aligned(FX_CACHE_LINE)));

static inline enum fx_task_state fx_task_state(uint64_t word)
{
	return (enum fx_task_state)(word & 0xff);
}

static inline enum fx_reason fx_task_reason(uint64_t word)
{
	return (enum fx_reason)(word >> 8 & 0xff);
}

/**
 * fx_task_arm - begin a parking
 *
 * Context: the task. No system call, nothing locked.
 * Return: the ticket. It ends by fx_park(), or fx_task_disarm().
 */
static inline fx_ticket fx_task_arm(struct fx_task *task)
{
	fx_ticket ticket = (fx_load_relaxed(&task->state) & FX_TICKET_MASK) +
			   FX_TICKET_ONE;

	fx_store_release(&task->state, ticket | FX_TASK_ARMED);
	return ticket;
}

/* The reason of a parking that has ended; the task runs. Context: the task. */
static inline enum fx_reason fx_task_take(struct fx_task *task)
{
	uint64_t word = fx_load_acquire(&task->state);

	/* Until the next park says what it listens to, and waits for. */
	fx_store_relaxed(&task->mask, 0u);
	fx_store_relaxed(&task->on, (uint64_t)0);
	fx_store_relaxed(&task->state,
			 (word & FX_TICKET_MASK) | FX_TASK_RUNNING);
	return fx_task_reason(word);
}

/**
 * fx_task_disarm - do not park after all
 *
 * Context: the task.
 * Return: 0, or the reason if somebody has woken it: then that wake is used up
 * and what it brought is the task's.
 */
static inline enum fx_reason fx_task_disarm(struct fx_task *task)
{
	uint64_t word = fx_load_relaxed(&task->state);

	if (fx_task_state(word) == FX_TASK_ARMED &&
	    fx_cas(&task->state, &word,
		   (word & FX_TICKET_MASK) | FX_TASK_RUNNING))
		return (enum fx_reason)0;
	return fx_task_take(task);
}

static inline bool fx_task_woken(const struct fx_task *task)
{
	return fx_task_state(fx_load_acquire(&task->state)) == FX_TASK_WOKEN;
}

/**
 * fx_task_publish - the task's context is saved: let it be woken
 * @as: FX_TASK_PARKED, or FX_TASK_HOME by its own kernel thread
 *
 * Order: release; pairs with the waker's compare-and-swap, and a full fence
 * on x86: what was asked (`pending`) before is seen after it.
 * Return: false if it was woken meanwhile: the caller makes it ready.
 */
static inline bool fx_task_publish(struct fx_task *task, enum fx_task_state as)
{
	uint64_t word = fx_load_relaxed(&task->state);

	if (fx_task_state(word) != FX_TASK_ARMED ||
	    !fx_cas(&task->state, &word, (word & FX_TICKET_MASK) | as))
		return false;
	fx_fence_after_cas();
	return true;
}

enum fx_wake {
	FX_WAKE_LOST, /* not this parking, or another one was faster */
	FX_WAKE_LATCHED, /* it has not parked yet, and will not */
	FX_WAKE_READY, /* the caller puts it in a run queue */
	FX_WAKE_HOME, /* the caller wakes its own kernel thread */
};

/* One try; @word is what the state was. */
static inline bool fx_task_try_wake(struct fx_task *task, uint64_t *word,
				    enum fx_reason reason, enum fx_wake *result)
{
	uint64_t woken = (*word & FX_TICKET_MASK) | (uint64_t)reason << 8 |
			 FX_TASK_WOKEN;

	switch (fx_task_state(*word)) {
	case FX_TASK_ARMED:
		*result = FX_WAKE_LATCHED;
		break;
	case FX_TASK_PARKED:
		*result = FX_WAKE_READY;
		break;
	case FX_TASK_HOME:
		*result = FX_WAKE_HOME;
		break;
	default:
		*result = FX_WAKE_LOST;
		return true;
	}
	return fx_cas(&task->state, word, woken);
}

/**
 * fx_task_wake - end the parking that has this ticket
 *
 * Context: any thread, signal handlers too; any number of them.
 * Order: what the winner did before is seen by the task after its parking.
 */
static inline enum fx_wake fx_task_wake(struct fx_task *task, fx_ticket ticket,
					enum fx_reason reason)
{
	uint64_t word = fx_load_acquire(&task->state);
	enum fx_wake result = FX_WAKE_LOST;

	while ((word & FX_TICKET_MASK) == ticket)
		if (fx_task_try_wake(task, &word, reason, &result))
			return result;
	return FX_WAKE_LOST;
}

/**
 * fx_task_interrupt - end whatever parking the task is in, if it listens
 *
 * `pending` has been set before; a task that is about to park is published
 * first, and then looks at `pending`, so one of the two sees the other.
 */
static inline enum fx_wake fx_task_interrupt(struct fx_task *task)
{
	uint64_t word = fx_load_acquire(&task->state);
	enum fx_wake result = FX_WAKE_LOST;
	uint32_t asked;

	do {
		asked = fx_load_relaxed(&task->pending) &
			fx_load_relaxed(&task->mask);
		if (!asked)
			return FX_WAKE_LOST;
		/* The mask is that of this parking, or the swap fails. */
	} while (!fx_task_try_wake(task, &word,
				   asked & FX_PENDING_CANCEL ? FX_WOKEN_CANCEL :
							       FX_WOKEN_SIGNAL,
				   &result));
	return result;
}

/* Set @bits of `pending`. Order: full fence. */
static inline void fx_task_ask(struct fx_task *task, uint32_t bits)
{
	uint32_t old = fx_load_relaxed(&task->pending);

	while (!fx_cas(&task->pending, &old, old | bits))
		;
	fx_fence_after_cas();
}

/* Clear some; return those of @bits that were set. Context: the task. */
static inline uint32_t fx_task_asked(struct fx_task *task, uint32_t bits)
{
	uint32_t old = fx_load_relaxed(&task->pending);

	if (fx_likely(!(old & bits)))
		return 0;
	while (!fx_cas(&task->pending, &old, old & ~bits))
		;
	return old & bits;
}

/**
 * fx_task_move_home - let a parked task wait on its own kernel thread
 *
 * Return: true if the caller is to hand it over (fx_home_give()); false if it
 * is not parked: it can do so itself.
 */
static inline bool fx_task_move_home(struct fx_task *task)
{
	uint64_t word = fx_load_acquire(&task->state);

	return fx_task_state(word) == FX_TASK_PARKED &&
	       fx_cas(&task->state, &word,
		      (word & FX_TICKET_MASK) | FX_TASK_HOME);
}

#endif /* FX_SCHED_TASK_H */
