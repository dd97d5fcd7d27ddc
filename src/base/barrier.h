/* SPDX-License-Identifier: MIT */
/*
 * The asymmetric barrier: a side that runs all the time pays nothing, the side
 * that is about to sleep pays for both.
 *
 *   busy side                     sleeper
 *   ---------                     -------
 *   store work                    store "sleeping"
 *   fx_barrier_light()            fx_barrier_heavy()
 *   load "sleeping"               load work, then sleep
 *
 * Without it the busy side would need a full fence between its store and its
 * load. heavy is membarrier(2), private expedited; where the kernel or a
 * seccomp filter refuses it, light becomes a full fence and heavy too.
 */
#ifndef FX_BASE_BARRIER_H
#define FX_BASE_BARRIER_H

#include "base/atomic.h"
#include "base/types.h"

#ifdef FX_MODEL

#define fx_barrier_init() true
#define fx_barrier_light() ((void)0)
#define fx_barrier_heavy() fx_model_membarrier()

#else

extern bool fx_barrier_symmetric __attribute__((visibility("hidden")));

/**
 * fx_barrier_init - register for membarrier(2), once a process
 *
 * Context: any thread, before its first light or heavy barrier; idempotent.
 * Return: true if the asymmetric form is in use, false if both sides fence.
 */
bool fx_barrier_init(void);

/* Forget the registration: a forked child starts over. */
void fx_barrier_after_fork(void);

void fx_barrier_heavy(void);

static inline void fx_barrier_light(void)
{
	if (fx_unlikely(fx_barrier_symmetric))
		fx_fence();
	else
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#endif /* FX_MODEL */

#endif /* FX_BASE_BARRIER_H */
