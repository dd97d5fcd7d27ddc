/* SPDX-License-Identifier: MIT */
/*
 * Keeping threads that returned from their start routine for the next
 * creation. Only one that a new thread could not tell from itself is kept:
 * default attributes but for the size of its stack, nothing changed that the
 * kernel keeps of it, no thread-local memory of modules that were loaded
 * later. Destructors of keys and of thread_local objects run, and the
 * thread-local memory of all modules but the C library and this one becomes
 * what it is at the beginning.
 */
#ifndef FX_THREADS_RECYCLE_H
#define FX_THREADS_RECYCLE_H

#include "threads/thread.h"

/**
 * fx_recycle - the start routine of the calling thread has returned
 *
 * Return: true if it has been given another one; false: it ends.
 */
bool fx_recycle(struct fx_thread *me, void *result);

/**
 * fx_recycle_take - let a kept thread run what @like is to run
 * @like: start, arg, stack_size, first_mask, life, worn, stays
 *
 * Return: false if none fits.
 */
bool fx_recycle_take(struct fx_thread *me, pthread_t *out,
		     const struct fx_thread *like);

/* It was joined or detached after it had ended. */
void fx_recycle_put(struct fx_thread *t);

/* Keys, so that their destructors are known. As pthread_key_create(3). */
int fx_key_create(pthread_key_t *key, void (*destructor)(void *));
int fx_key_delete(pthread_key_t key);

/* In the child of a fork: none is kept. */
void fx_recycle_after_fork(void);

#endif /* FX_THREADS_RECYCLE_H */
