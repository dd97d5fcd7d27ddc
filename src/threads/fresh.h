/* SPDX-License-Identifier: MIT */
/* Making a thread look as if it had just been made. */
#ifndef FX_THREADS_FRESH_H
#define FX_THREADS_FRESH_H

#include "threads/thread.h"

/*
 * Before there are threads: dlsym() waits for whoever is loading a library,
 * and that may itself be waiting for a thread to end.
 */
void fx_fresh_start(void);

/* Is it possible with this thread, in this process? */
bool fx_fresh_can(struct fx_thread *me);

/*
 * Destructors of thread_local objects and keys run, which may do anything;
 * then thread-local memory, errno, locale, floating point and cancelation
 * state are those of a new thread.
 */
void fx_fresh_make(struct fx_thread *me);

#endif /* FX_THREADS_FRESH_H */
