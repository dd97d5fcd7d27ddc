/* SPDX-License-Identifier: MIT */
/*
 * Which threads of the application's there are: a process ends when the last
 * one does, although carriers are still there, which the C library counts too.
 */
#ifndef FX_THREADS_ALIVE_H
#define FX_THREADS_ALIVE_H

#include "threads/thread.h"

/* One more, before it is made or taken from the kept ones. */
void fx_alive_add(void);

/* It was not made after all. */
void fx_alive_undo(void);

/**
 * fx_alive_leave - the calling thread ends, or begins to wait to be taken
 *
 * Was it the last, its process ends with status 0, as POSIX wants: when
 * destructors of keys are through if @destructors are still to be run by the
 * C library, else now. At home then; not inside.
 */
void fx_alive_leave(struct fx_thread *me, bool destructors);

/* In the child of a fork. */
void fx_alive_after_fork(void);

#endif /* FX_THREADS_ALIVE_H */
