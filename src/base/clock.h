/* SPDX-License-Identifier: MIT */
/* Time: nanoseconds of CLOCK_MONOTONIC, through the vDSO. */
#ifndef FX_BASE_CLOCK_H
#define FX_BASE_CLOCK_H

#include "base/types.h"

#include <time.h>

#define FX_NEVER UINT64_MAX

static inline uint64_t fx_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * FX_NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Milliseconds, good to a scheduler tick; wraps after 49 days. */
static inline uint32_t fx_now_ms_coarse(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint32_t)((uint64_t)ts.tv_sec * 1000 +
			  (uint64_t)ts.tv_nsec / FX_NS_PER_MS);
}

static inline struct timespec fx_timespec(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / FX_NS_PER_SEC),
		.tv_nsec = (long)(ns % FX_NS_PER_SEC),
	};
}

#endif /* FX_BASE_CLOCK_H */
