/* SPDX-License-Identifier: MIT */
/*
 * Barriers of one process, on memory that is all ours between init and
 * destroy, and pthread_once(3).
 */
#ifndef FX_THREADS_ONCE_H
#define FX_THREADS_ONCE_H

#include "threads/thread.h"

int fx_barrier_init_own(pthread_barrier_t *barrier, unsigned count);
int fx_barrier_destroy_own(pthread_barrier_t *barrier);
int fx_barrier_wait(struct fx_thread *me, pthread_barrier_t *barrier);
/* Was it made by fx_barrier_init_own()? */
bool fx_barrier_is_own(const pthread_barrier_t *barrier);

int fx_once(struct fx_thread *me, int *once, void (*run)(void));

#endif /* FX_THREADS_ONCE_H */
