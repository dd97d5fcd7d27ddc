/* SPDX-License-Identifier: MIT */
/* Sleeping on a carrier. */
#ifndef FX_THREADS_SLEEP_H
#define FX_THREADS_SLEEP_H

#include "threads/io.h"

#include <time.h>

/**
 * fx_thread_sleep - as clock_nanosleep(2)
 * @me: from fx_thread_lent()
 *
 * Return: 0, an error number, or FX_IO_PLAIN.
 */
int fx_thread_sleep(struct fx_thread *me, clockid_t clock, int flags,
		    const struct timespec *time, struct timespec *left);

#endif /* FX_THREADS_SLEEP_H */
