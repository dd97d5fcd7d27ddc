/* SPDX-License-Identifier: MIT */
/*
 * Alternate signal stacks. The kernel keeps one for each of its threads; a
 * thread's own is its home's. While the thread is away that of its home is the
 * parking stack, where signals are kept for it (threads/relay.h), and the
 * thread's record keeps what the home gets back.
 *
 * Carriers have each one of their own, for faults of threads whose stack is
 * full. What the kernel put there moves to where it would be natively, and the
 * thread takes the fault again at home (threads/fault.h).
 */
#ifndef FX_THREADS_ALTERNATE_H
#define FX_THREADS_ALTERNATE_H

#include "threads/thread.h"

/* sigaltstack(2). Any thread, in either place. */
int fx_alternate_change(const stack_t *stack, stack_t *old);

/* A thread begins: something may have set one before we are asked (ASan). */
void fx_alternate_begin(struct fx_thread *me);

/*
 * About to be lent, and at home again. Context: on the own kernel thread,
 * inside. fx_alternate_leave() returns false if the thread runs on it now.
 */
bool fx_alternate_leave(struct fx_thread *me);
void fx_alternate_back(struct fx_thread *me);

/* What the kernel is to be told of a thread that is away. */
stack_t fx_alternate_of(const struct fx_thread *me);

/* As the kernel sees it: the stack grows down. */
static inline bool fx_alternate_holds(const stack_t *stack, uintptr_t sp)
{
	uintptr_t low = (uintptr_t)stack->ss_sp;

	return sp > low && sp - low <= stack->ss_size;
}

#endif /* FX_THREADS_ALTERNATE_H */
