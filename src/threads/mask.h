/* SPDX-License-Identifier: MIT */
/* The signal mask of the calling kernel thread, as the kernel has it. */
#ifndef FX_THREADS_MASK_H
#define FX_THREADS_MASK_H

#include "arch/arch.h"
#include "threads/relay.h"
#include "threads/thread.h"

#include <stdint.h>
#include <sys/syscall.h>

#define FX_MASK_ALL UINT64_MAX /* the kernel leaves out what it must */

/*
 * All that an application can handle. Not the two of the C library: it waits
 * for answers to them, with locks that its functions need.
 */
#define FX_MASK_HANDLED \
	(~(1ull << (FX_SIGNAL_CANCEL - 1) | 1ull << (FX_SIGNAL_SETXID - 1)))

/* Set it. Return: what it was. */
static inline uint64_t fx_mask_swap(uint64_t mask)
{
	uint64_t old = 0;

	fx_arch_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask,
			(long)&old, sizeof(mask), 0, 0);
	return old;
}

static inline void fx_mask_set(uint64_t mask)
{
	fx_arch_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0,
			sizeof(mask), 0, 0);
}

static inline uint64_t fx_mask_now(void)
{
	uint64_t mask = 0;

	fx_arch_syscall(SYS_rt_sigprocmask, SIG_SETMASK, 0, (long)&mask,
			sizeof(mask), 0, 0);
	return mask;
}

/*
 * The mask that the thread itself, inside, has for its own. The kernel has
 * another one on carriers, and while a signal is kept for it.
 */
static inline uint64_t fx_mask_of(const struct fx_thread *me)
{
	uint64_t mask = me->task.carrier ? 0 : fx_mask_now();

	if (me->task.carrier ||
	    fx_load_relaxed(&me->task.pending) & FX_PENDING_SIGNAL)
		mask = me->mask;
	return mask;
}

#endif /* FX_THREADS_MASK_H */
