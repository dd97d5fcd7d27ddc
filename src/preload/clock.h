/* SPDX-License-Identifier: MIT */
/* CPU clocks of threads, for what waits on them. */
#ifndef FX_PRELOAD_CLOCK_H
#define FX_PRELOAD_CLOCK_H

#include <stdint.h>
#include <time.h>

/**
 * fx_clock_pin - the kernel is to wait on this clock
 *
 * If it is a thread's CPU clock, that thread stays at home from now on.
 *
 * Return: what the clock is ahead of the kernel's: its time on carriers.
 */
uint64_t fx_clock_pin(clockid_t clock);

/* A time of such a clock as the kernel's, never zero. */
struct timespec fx_clock_behind(const struct timespec *time, uint64_t ahead_ns);

#endif /* FX_PRELOAD_CLOCK_H */
