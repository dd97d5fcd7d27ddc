/* SPDX-License-Identifier: MIT */
/*
 * Mutexes on the C library's own layout, word for word as it uses it (lock 0
 * free, 1 held, 2 held and wanted; owner, count, users), so that one may be
 * met by either. Only who waits differs: in the lot instead of the kernel.
 * Robust, priority-inheriting, priority-protected and process-shared ones stay
 * the C library's: a contended one is waited for at home.
 */
#ifndef FX_THREADS_MUTEX_H
#define FX_THREADS_MUTEX_H

#include "threads/thread.h"

static inline uint32_t *fx_mutex_word(pthread_mutex_t *mutex)
{
	return (uint32_t *)&mutex->__data.__lock;
}

static inline bool fx_mutex_is_usual(const pthread_mutex_t *mutex)
{
	return mutex->__data.__kind == PTHREAD_MUTEX_TIMED_NP;
}

/* Held, and somebody waits for it, or may. */
static inline bool fx_mutex_is_wanted(pthread_mutex_t *mutex)
{
	return fx_load_relaxed(fx_mutex_word(mutex)) == 2;
}

/* The usual one, and it is free. False: nothing happened. */
static inline bool fx_mutex_lock_fast(struct fx_thread *me,
				      pthread_mutex_t *mutex)
{
	uint32_t unlocked = 0;

	if (!fx_mutex_is_usual(mutex) ||
	    !fx_cas(fx_mutex_word(mutex), &unlocked, 1u))
		return false;
	mutex->__data.__owner = me->tid;
	mutex->__data.__nusers++;
	return true;
}

/* Give it back. Return: whether fx_mutex_wake() is to follow. */
static inline bool fx_mutex_give(pthread_mutex_t *mutex)
{
	mutex->__data.__owner = 0;
	mutex->__data.__nusers--;
	return fx_exchange(fx_mutex_word(mutex), 0u) == 2;
}

/* It was unlocked and somebody waits. @me: NULL for want of memory. */
void fx_mutex_wake(struct fx_thread *me, pthread_mutex_t *mutex);

/* As pthread_mutex_lock(3) and the others; @deadline may be NULL. */
int fx_mutex_lock(struct fx_thread *me, pthread_mutex_t *mutex,
		  const struct fx_deadline *deadline);
int fx_mutex_trylock(struct fx_thread *me, pthread_mutex_t *mutex);
int fx_mutex_unlock(struct fx_thread *me, pthread_mutex_t *mutex);

/* Would unlocking fail? Asked before a wait. Return: 0 or EPERM. */
int fx_mutex_check(struct fx_thread *me, const pthread_mutex_t *mutex);

/* Does the C library flag kinds as we think? Checked at start. */
bool fx_mutex_understood(void);

#endif /* FX_THREADS_MUTEX_H */
