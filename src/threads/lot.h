/* SPDX-License-Identifier: MIT */
/*
 * Waiting by address: what POSIX objects that belong to one process wait on in
 * place of futexes. A waiter is queued under its bucket's lock if a check made
 * under that lock says so, and parks; whoever changes the object afterwards
 * takes waiters out under the same lock, and wakes them when it is released.
 *
 *	waiter                            waker
 *	------                            -----
 *	lock; check; arm; queue; unlock   change the object
 *	`release` (the mutex, say)        lock; dequeue; unlock
 *	park                              fx_wake() each; lost: the next one
 *
 * A waker that took a waiter out and lost (a time-out, a signal was faster)
 * takes the next: no wake is lost, none is doubled. A waiter that was not
 * woken by value takes itself out if it is still queued.
 *
 * Order: what was done before fx_lot_wake() is seen by who it woke, and by a
 * later check. Context: threads of this layer, carriers' or at home; wakers
 * also in signal handlers, since those do not run inside (threads/thread.h).
 */
#ifndef FX_THREADS_LOT_H
#define FX_THREADS_LOT_H

#include "threads/thread.h"

struct fx_lot_wait {
	const void *key; /* address that is waited on */
	const char *where; /* for observers */
	const struct fx_deadline *deadline; /* or NULL */
	bool cancel; /* a cancelation point */
	uint32_t tag; /* what fx_lot_wake() may ask for */

	/* Under the lock: wait? May change the object. */
	bool (*check)(void *arg);
	/* After queueing, before parking; or NULL. Must not park. */
	void (*release)(void *arg);
	/* In its place: told who runs next; see fx_park_last(). */
	void (*last)(void *arg, struct fx_task *next);
	void *arg;
};

/**
 * fx_lot_wait - wait until woken
 *
 * Handlers of signals have not run yet when this returns FX_WOKEN_SIGNAL:
 * the caller is inside (fx_thread_enter()) and leaves.
 *
 * Return: FX_WOKEN_VALUE, or what ended it; 0 if the check said no.
 */
enum fx_reason fx_lot_wait(struct fx_thread *me,
			   const struct fx_lot_wait *wait);

/**
 * fx_lot_wake - wake up to @nr waiters of an address, the oldest first
 * @nr: may be 0: only @last is called
 * @tags: bits; those that have none of them are passed over
 * @last: called under the lock when it is known who is left, with whether
 *        any waiter remains; or NULL
 *
 * Return: how many were woken.
 */
unsigned fx_lot_wake(const void *key, unsigned nr, uint32_t tags,
		     void (*last)(void *arg, bool left), void *arg);

/* Call @change under the lock of an address. It must not wake or park. */
void fx_lot_locked(const void *key, void (*change)(void *arg), void *arg);

/* In the child of a fork: nobody waits. */
void fx_lot_after_fork(void);

#define FX_LOT_ANY UINT32_MAX

#endif /* FX_THREADS_LOT_H */
