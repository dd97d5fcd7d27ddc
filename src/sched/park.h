/* SPDX-License-Identifier: MIT */
/* Parking from inside of the scheduler. */
#ifndef FX_SCHED_PARK_H
#define FX_SCHED_PARK_H

#include "sched/carrier.h"

/**
 * fx_park_inside - fx_park() of a task that is armed and inside fx_enter()
 *
 * Leaves. What the caller did since fx_enter() comes before anything that is
 * done to the bundle by others.
 */
enum fx_reason fx_park_inside(struct fx_carrier *carrier, struct fx_task *me,
			      const char *where,
			      const struct fx_deadline *deadline,
			      uint32_t mask);

#endif /* FX_SCHED_PARK_H */
