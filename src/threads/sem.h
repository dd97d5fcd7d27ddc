/* SPDX-License-Identifier: MIT */
/*
 * Semaphores of one process, on the C library's layout: value in the low half
 * of the first eight bytes, number of waiters in the high half. Those that
 * other processes share are the C library's, waited for at home.
 */
#ifndef FX_THREADS_SEM_H
#define FX_THREADS_SEM_H

#include "threads/thread.h"

#include <semaphore.h>

/*
 * As sem_wait(3), @deadline may be NULL. Return: 0, -1 with errno (no value
 * either, EAGAIN), or 1: the caller waits by the C library's function.
 */
int fx_sem_wait(struct fx_thread *me, sem_t *sem,
		const struct fx_deadline *deadline);
/* As sem_post(3); handlers of signals may call it. */
int fx_sem_post(sem_t *sem);

bool fx_sem_understood(void);

#endif /* FX_THREADS_SEM_H */
