/* SPDX-License-Identifier: MIT */
/* The moments of POSIX calls as the scheduler takes them. */
#ifndef FX_THREADS_TIME_H
#define FX_THREADS_TIME_H

#include "base/clock.h"
#include "sched/sched.h"

#include <errno.h>

static inline clockid_t fx_clock_id(enum fx_clock clock)
{
	return clock == FX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

/* Nanoseconds; what lies before the clock's beginning is its beginning. */
static inline uint64_t fx_ns_of(const struct timespec *ts)
{
	if (ts->tv_sec < 0)
		return 0;
	if ((uint64_t)ts->tv_sec >= UINT64_MAX / FX_NS_PER_SEC / 2)
		return UINT64_MAX / 2;
	return (uint64_t)ts->tv_sec * FX_NS_PER_SEC + (uint64_t)ts->tv_nsec;
}

/**
 * fx_deadline_of - an absolute time of a POSIX call
 *
 * Return: 0, or EINVAL: no such clock here, or no such time.
 */
static inline int fx_deadline_of(struct fx_deadline *deadline, clockid_t clock,
				 const struct timespec *ts)
{
	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return EINVAL;
	if (ts->tv_nsec < 0 || ts->tv_nsec >= (long)FX_NS_PER_SEC)
		return EINVAL;
	deadline->clock = clock == CLOCK_REALTIME ? FX_CLOCK_REALTIME :
						    FX_CLOCK_MONOTONIC;
	deadline->at_ns = fx_ns_of(ts);
	return 0;
}

/* From now on. */
static inline void fx_deadline_in(struct fx_deadline *deadline, uint64_t ns)
{
	uint64_t now = fx_now_ns();

	deadline->clock = FX_CLOCK_MONOTONIC;
	deadline->at_ns = ns > UINT64_MAX / 2 - now ? UINT64_MAX / 2 : now + ns;
}

#endif /* FX_THREADS_TIME_H */
