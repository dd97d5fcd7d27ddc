/* SPDX-License-Identifier: MIT */
/*
 * Read-write locks of one process. The C library's layout is kept where the
 * caller can see it: whether it is shared, whom it prefers (both set by
 * pthread_rwlock_init()), who writes; its first words are one of our own:
 *
 *	bit 0 written, bit 1 a writer waits, bit 2 a reader waits, then readers
 *
 * As the C library does by default, readers are let in while writers wait,
 * unless the lock prefers writers.
 */
#ifndef FX_THREADS_RWLOCK_H
#define FX_THREADS_RWLOCK_H

#include "threads/thread.h"

enum fx_rw {
	FX_READ,
	FX_WRITE
};

/* Is it shared with other processes, and so the C library's? */
bool fx_rwlock_is_shared(const pthread_rwlock_t *lock);

/* As pthread_rwlock_rdlock(3) and the others; @deadline may be NULL. */
int fx_rwlock_lock(struct fx_thread *me, pthread_rwlock_t *lock, enum fx_rw how,
		   const struct fx_deadline *deadline);
int fx_rwlock_trylock(struct fx_thread *me, pthread_rwlock_t *lock,
		      enum fx_rw how);
int fx_rwlock_unlock(struct fx_thread *me, pthread_rwlock_t *lock);

bool fx_rwlock_understood(void);

#endif /* FX_THREADS_RWLOCK_H */
