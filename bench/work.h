/* SPDX-License-Identifier: MIT */
/* User work of a known length: arithmetic that touches no memory. */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include <stdint.h>

/* Steps that take so long when nothing disturbs them. */
uint64_t work_steps(double ns);
void work_do(uint64_t steps);

#endif /* BENCH_WORK_H */
