/* SPDX-License-Identifier: MIT */
/*
 * User work of a known length. Calibrated once by the fastest of several
 * tries, so that a disturbed moment does not make all work longer.
 */
#include "bench/work.h"

#include "bench/machine.h"

#define TRY_STEPS 20000u

void work_do(uint64_t steps)
{
	uint64_t x = steps | 1;

	for (uint64_t i = 0; i < steps; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		__asm__ volatile("" : "+r"(x));
	}
}

uint64_t work_steps(double ns)
{
	static double ns_a_step;

	for (int i = 0; i < 20 && !(i == 0 && ns_a_step > 0); i++) {
		uint64_t begin = ticks();
		double one;

		work_do(TRY_STEPS);
		one = ticks_ns(ticks() - begin, 1) / TRY_STEPS;
		if (i == 0 || one < ns_a_step)
			ns_a_step = one;
	}
	return (uint64_t)(ns / ns_a_step);
}
