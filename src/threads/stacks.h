/* SPDX-License-Identifier: MIT */
/*
 * Stacks that the application provides. It may use one again when its thread
 * has ended, and of a detached one it cannot know when that is: it lets the
 * thread say so in its last lines, and goes on while the thread is still on the
 * stack. The C library's threads have left it soon, as a rule. Ours may be
 * late: who is woken here begins sooner, and beside other programs the thread
 * waits for a processor meanwhile. So the next creation on the same memory
 * waits until the kernel thread that had it is gone.
 *
 *	creator            thread             next creator
 *	-------            ------             ------------
 *	LIVES, range
 *	                   tid
 *	                   LEAVES, ends       overlaps: waits while there is tid
 *
 * Joined ones are forgotten at once.
 */
#ifndef FX_THREADS_STACKS_H
#define FX_THREADS_STACKS_H

#include "threads/thread.h"

struct fx_stack;

/**
 * fx_stack_claim - a thread is to be made on this memory
 *
 * Waits for who still uses it, up to a second: then it never ends, and the
 * application knows what it does. Context: @me inside.
 * Return: to be told of the thread; NULL for want of memory.
 */
struct fx_stack *fx_stack_claim(struct fx_thread *me, void *base, size_t size);

/* It was not made. */
void fx_stack_drop(struct fx_stack *stack);

/* By the thread. All take NULL. After the second one it leaves by itself. */
void fx_stack_begin(struct fx_stack *stack, pid_t tid);
void fx_stack_leave(struct fx_stack *stack);

/* It was joined: nothing of it is left. */
void fx_stack_joined(pthread_t thread);

/* In the child of a fork by who has @own, or NULL. */
void fx_stacks_after_fork(struct fx_stack *own);

#endif /* FX_THREADS_STACKS_H */
