/* SPDX-License-Identifier: MIT */
/*
 * Handlers that run when a thread is unwound. With -fexceptions those of
 * pthread_cleanup_push() are found by unwinding, which ends at the first
 * function without tables; the application may be full of them. These two are
 * in a list that the C library goes through in either case; an exception of
 * C++ passes them by.
 */
#ifndef FX_THREADS_CLEANUP_H
#define FX_THREADS_CLEANUP_H

#include <pthread.h>

/* In every C library with threads; headers have left them out since. */
void _pthread_cleanup_push(struct _pthread_cleanup_buffer *buffer,
			   void (*run)(void *), void *arg);
void _pthread_cleanup_pop(struct _pthread_cleanup_buffer *buffer, int execute);

#endif /* FX_THREADS_CLEANUP_H */
