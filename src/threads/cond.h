/* SPDX-License-Identifier: MIT */
/*
 * Condition variables. Of one that belongs to this process the first word says
 * whether anybody may wait; the C library's flags stay where it has them, and
 * tell its clock and whether it is shared with other processes: then it is the
 * C library's, waited for at home.
 */
#ifndef FX_THREADS_COND_H
#define FX_THREADS_COND_H

#include "threads/thread.h"

/* As pthread_cond_wait(3); @deadline may be NULL. */
int fx_cond_wait(struct fx_thread *me, pthread_cond_t *cond,
		 pthread_mutex_t *mutex, const struct fx_deadline *deadline);
int fx_cond_wake(struct fx_thread *me, pthread_cond_t *cond, unsigned nr);
int fx_cond_destroy(pthread_cond_t *cond);

/* The clock of pthread_cond_timedwait(3). */
clockid_t fx_cond_clock(const pthread_cond_t *cond);

/* Finds the C library's flags. False: they are not what we think. */
bool fx_cond_understood(void);

#endif /* FX_THREADS_COND_H */
